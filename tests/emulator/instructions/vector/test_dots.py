"""Sums of products, held against exact sums of Python's integers and floats."""

import math

import numpy as np
import pytest

from refcomp.emulator.execution.program import bind
from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import get, instruction, make_waves, put, run, two_halves

# Besides those that the ledgers compare with a reference, saturated and not.
_INTEGERS = [
    (name, int(count), signed, accumulates)
    for name, count, signed, accumulates in [
        ("v_dot2_i32_i16", 2, True, False),
        ("v_dot2_u32_u16", 2, False, False),
        ("v_dot2c_i32_i16", 2, True, True),
        ("v_dot4c_i32_i8", 4, True, True),
        ("v_dot8c_i32_i4", 8, True, True),
    ]
]


def _parts(word, count, is_signed):
    bits = 32 // count
    pieces = [word >> bits * n & (1 << bits) - 1 for n in range(count)]
    return [p - (1 << bits) if is_signed and p >> bits - 1 else p for p in pieces]


def _signed(x, is_signed):
    return x - (1 << 32) if is_signed and x >> 31 else x


def _drawn():
    rng = np.random.default_rng(5)
    words = rng.integers(0, 1 << 32, (3, 64), dtype=np.uint64).astype(np.uint32)
    words[:, :4] = [[0xFFFFFFFF, 0x80008000, 0x88888888, 0x80808080]] * 3
    words[2, 4:8] = [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0]
    return words


@pytest.mark.parametrize(("name", "count", "is_signed", "accumulates"), _INTEGERS)
@pytest.mark.parametrize("clamp", ["", " clamp"])
def test_integers(name, count, is_signed, accumulates, clamp):
    if accumulates and clamp:
        name = f"{name}_e64"
    words = _drawn()
    waves = make_waves()
    for n in range(3):
        put(waves, (1 + n) % 3 if accumulates else 1 + n, words[n])
    run(waves, f"{name} v0, v1, v2{'' if accumulates else ', v3'}{clamp}")
    low, high = (-(1 << 31), (1 << 31) - 1) if is_signed else (0, (1 << 32) - 1)
    wanted = []
    for a, b, c in words.T.tolist():
        pairs = zip(_parts(a, count, is_signed), _parts(b, count, is_signed), strict=True)
        total = sum(x * y for x, y in pairs) + _signed(c, is_signed)
        wanted.append((min(max(total, low), high) if clamp else total) & 0xFFFFFFFF)
    assert get(waves, 0).tolist() == wanted


def _halves():
    rng = np.random.default_rng(8)
    halves = np.ldexp(rng.normal(size=(2, 64, 2)), rng.integers(-10, 8, (2, 64, 2)))
    sums = np.ldexp(rng.normal(size=64), rng.integers(-24, 8, 64)).astype(np.float32)
    return halves.astype(np.float16), sums


def test_floats_round_once():
    halves, sums = _halves()
    waves = make_waves()
    for n in range(2):
        put(waves, 1 + n, np.ascontiguousarray(halves[n]).view(np.uint32)[:, 0])
    put(waves, 3, sums)
    put(waves, 0, sums)
    run(waves, "v_dot2_f32_f16 v4, v1, v2, v3", "v_dot2c_f32_f16_e32 v0, v1, v2")
    a, b = halves.astype(np.float64)
    exact = [math.fsum([*x, c]) for x, c in zip(a * b, sums.astype(np.float64), strict=True)]
    assert get(waves, 4, "f32").tolist() == np.float32(exact).tolist()
    assert get(waves, 0, "f32").tolist() == get(waves, 4, "f32").tolist()


def test_upper_halves_of_f32():
    """bf16, as RDNA3 has it."""
    waves = make_waves(lanes=32)
    numbers = np.array([[1.5, -2.0, 0.25, 3.0], [4.0, 0.5, -8.0, 1.0]], np.float32)
    halves = numbers.view(np.uint32) >> 16
    for n in range(2):
        put(waves, 1 + n, np.full(32, halves[n, 0] | halves[n, 1] << 16))
    put(waves, 3, np.full(32, 10.0, np.float32))
    run(waves, "v_dot2_f32_bf16 v0, v1, v2, v3", of=GENERATIONS["gfx1100"])
    assert get(waves, 0, "f32")[0] == 1.5 * 4 - 2 * 0.5 + 10
    run(waves, "v_dot2_f32_bf16 v0, v1, v2, v3 op_sel:[1,0,0]", of=GENERATIONS["gfx1100"])
    assert get(waves, 0, "f32")[0] == -2 * 4 - 2 * 0.5 + 10
    run(waves, "v_dot2_f32_bf16 v0, v1, 2.0, v3", of=GENERATIONS["gfx1100"])
    assert get(waves, 0, "f32")[0] == 1.5 * 2 + 10


def test_halves_are_chosen_and_negated():
    waves = make_waves(
        v1=two_halves(2.0, 3.0),
        v2=two_halves(5.0, 7.0),
        v3=np.float32(1.0),
    )
    run(waves, "v_dot2_f32_f16 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[0,1,1]")
    assert get(waves, 0, "f32")[0] == 3 * 5 + 2 * 7 + 1
    run(waves, "v_dot2_f32_f16 v0, v1, v2, v3 neg_lo:[1,0,1] neg_hi:[0,1,0]")
    assert get(waves, 0, "f32")[0] == -2 * 5 - 3 * 7 - 1
    run(waves, "v_dot2_f32_f16 v0, v1, v2, v3 neg_lo:[1,0,0]")
    assert get(waves, 0, "f32")[0] == -2 * 5 + 3 * 7 + 1
    run(waves, "v_dot2_f32_f16 v0, v1, 2.0, v3 op_sel_hi:[1,0,1] clamp")
    assert get(waves, 0, "f32")[0] == 1.0
    run(waves, "v_dot2_f32_f16 v0, v1, 2.0, 0 op_sel_hi:[1,0,1]")
    assert get(waves, 0, "f32")[0] == 2 * 2 + 3 * 2
    put(waves, 1, np.full(64, 0x0002_0003, np.uint32))
    run(waves, "v_dot2_i32_i16 v0, v1, v1, 1 op_sel:[1,0,0] op_sel_hi:[0,1,1]")
    assert get(waves, 0)[0] == 2 * 3 + 3 * 2 + 1


def test_gfx90a_drops_denormals():
    waves = make_waves(
        v1=two_halves(2.0**-20, 1.0),
        v2=two_halves(1.0, 2.0**-14),
        v3=np.float32(-(2.0**-130)),
    )
    for gpu, wanted in (("gfx942", 2.0**-20 + 2.0**-14), ("gfx90a", 2.0**-14)):
        of = GENERATIONS[gpu]
        bind(instruction("v_dot2_f32_f16 v0, v1, v2, v3", of), of)(waves)
        assert get(waves, 0, "f32")[0] == wanted
    bind(instruction("v_dot2_f32_f16 v0, 0, v2, v3", of), of)(waves)
    assert get(waves, 0, "f32")[0] == 0


def test_other_names_are_refused():
    with pytest.raises(Unsupported, match="does not support the instruction v_dot2_f32_fp8"):
        bind(instruction("v_dot2_f32_fp8 v0, v1, v2, v3"))
    with pytest.raises(Unsupported, match="does not support the instruction v_dot8_i32_i8"):
        bind(instruction("v_dot8_i32_i8 v0, v1, v2, v3"))
