"""Products of matrices in waves of RDNA3, held against numpy on whole matrices."""

import numpy as np
import pytest

from refcomp.emulator.execution.program import bind
from refcomp.emulator.generations.generation import GFX1100
from refcomp.foundation.errors import Unsupported
from tests.emulator.instructions.matrix.wave_matrix_kernels import (
    decode,
    factor_words,
    place_of_sum,
    sum_words,
)
from tests.emulator.snippets import get, instruction, make_waves, put, run, set_mask, undefined

_A, _B, _C = 2, 10, 20
_EACH = pytest.mark.parametrize("lanes", [32, 64])


def _put_words(waves, index, words):
    """[lane, register]."""
    for number, word in enumerate(words.T):
        put(waves, index + number, word)
    return f"v[{index}:{index + words.shape[1] - 1}]"


def _put_factor(waves, index, matrix, element):
    return _put_words(waves, index, factor_words(matrix, element, waves.lanes))


def _put_sums(waves, matrix, kind):
    return _put_words(waves, _C, sum_words(matrix, kind, waves.lanes))


def _sums(waves, kind, half=0):
    found = np.zeros((16, 16))
    for row, column in np.ndindex(16, 16):
        lane, number = place_of_sum(row, column, waves.lanes)
        found[row, column] = decode(get(waves, _C + number)[lane], kind, half)
    return found


def _product(name, lanes, modifiers="", low=-7):
    """A, B, C and what the instruction makes of them; few lanes are active, which is nothing."""
    kind, element = name.split("_")[2], name.split("_")[4]
    rng = np.random.default_rng(5)
    a, b = rng.integers(low, 8, (2, 16, 16))
    c = rng.integers(-9, 10, (16, 16))
    waves = make_waves(vectors=40, lanes=lanes)
    factors = [_put_factor(waves, n, m, element) for n, m in ((_A, a), (_B, b.T))]
    sums = _put_sums(waves, c, kind)
    set_mask(waves, np.arange(lanes) < 3)
    run(waves, f"{name} {sums}, {', '.join(factors)}, {sums} {modifiers}".strip(), of=GFX1100)
    assert not any(undefined(waves, _C + n).any() for n in range(256 // lanes))
    return a, b, c, waves


@_EACH
@pytest.mark.parametrize(
    ("name", "modifiers"),
    [
        ("v_wmma_f32_16x16x16_f16", ""),
        ("v_wmma_f32_16x16x16_bf16", ""),
        ("v_wmma_f16_16x16x16_f16", ""),
        ("v_wmma_bf16_16x16x16_bf16", ""),
        ("v_wmma_i32_16x16x16_iu8", "neg_lo:[1,1,0]"),
        ("v_wmma_i32_16x16x16_iu4", "neg_lo:[1,1,0]"),
    ],
)
def test_products_agree_with_numpy(name, modifiers, lanes):
    a, b, c, waves = _product(name, lanes, modifiers)
    wanted = a @ b + c
    if "wmma_bf16" in name:  # eight bits
        wanted = np.array([[float(np.float32(_rounded(v))) for v in row] for row in wanted])
    np.testing.assert_array_equal(_sums(waves, name.split("_")[2]), wanted)


def _rounded(value):
    bits = int(np.float32(value).view(np.uint32))
    return np.uint32((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def test_integers_without_a_sign():
    a, b, c, waves = _product("v_wmma_i32_16x16x16_iu4", 32, "neg_lo:[0,1,0]")
    np.testing.assert_array_equal(_sums(waves, "i32"), (a & 15) @ b + c)
    a, b, c, waves = _product("v_wmma_i32_16x16x16_iu8", 32)
    np.testing.assert_array_equal(_sums(waves, "i32"), (a & 255) @ (b & 255) + c)


@pytest.mark.parametrize(("start", "stopped"), [(2**31 - 5, 2**31 - 1), (-(2**31) + 5, -(2**31))])
def test_sums_of_integers_wrap_or_stop(start, stopped):
    waves = make_waves(vectors=40, lanes=32)
    step = 1 if start > 0 else -1
    factors = [_put_factor(waves, _A, np.full((16, 16), step), "iu8")]
    factors.append(_put_factor(waves, _B, np.ones((16, 16)), "iu8"))
    line = f"v_wmma_i32_16x16x16_iu8 v[20:27], {', '.join(factors)}, v[20:27] neg_lo:[1,1,0]"
    for more, wanted in (("", start + 16 * step - step * 2**32), (" clamp", stopped)):
        for number in range(8):
            put(waves, _C + number, np.full(32, start, np.int32))
        run(waves, line + more, of=GFX1100)
        assert (_sums(waves, "i32") == wanted).all()


def test_factors_and_sums_may_be_negated():
    modifiers = "neg_lo:[1,0,1] neg_hi:[1,0,0]"
    a, b, c, waves = _product("v_wmma_f32_16x16x16_f16", 32, modifiers)
    np.testing.assert_array_equal(_sums(waves, "f32"), -a @ b - c)


def test_narrow_sums_may_stand_in_the_upper_halves():
    waves = make_waves(vectors=40, lanes=32)
    ones = np.ones((16, 16))
    factors = [_put_factor(waves, n, ones, "f16") for n in (_A, _B)]
    for number in range(8):
        put(waves, _C + number, np.full(32, 0x40001234, np.uint32))
    line = f"v_wmma_f16_16x16x16_f16 v[20:27], {', '.join(factors)}, v[20:27] op_sel:[0,0,1]"
    run(waves, line, of=GFX1100)
    assert (_sums(waves, "f16", half=1) == 18).all()
    assert (get(waves, _C) & 0xFFFF == 0x1234).all()


def test_sums_may_begin_with_a_constant():
    waves = make_waves(vectors=40, lanes=32)
    factors = [_put_factor(waves, n, np.eye(16), "bf16") for n in (_A, _B)]
    run(waves, f"v_wmma_f32_16x16x16_bf16 v[20:27], {', '.join(factors)}, 1.0", of=GFX1100)
    np.testing.assert_array_equal(_sums(waves, "f32"), np.eye(16) + 1)


@_EACH
def test_rows_that_differ_where_they_stand_twice_are_undefined(lanes):
    waves = make_waves(vectors=40, lanes=lanes)
    factors = [_put_factor(waves, n, np.ones((16, 16)), "f16") for n in (_A, _B)]
    word = get(waves, _A)
    word[19] ^= 1  # row 3, where it stands for the second time
    put(waves, _A, word)
    count = 256 // lanes
    total = f"v[{_C}:{_C + count - 1}]"
    run(waves, f"v_wmma_f32_16x16x16_f16 {total}, {', '.join(factors)}, 0", of=GFX1100)
    shadow = np.zeros((16, 16), bool)
    for row, column in np.ndindex(16, 16):
        lane, number = place_of_sum(row, column, lanes)
        shadow[row, column] = undefined(waves, _C + number)[lane] != 0
    assert shadow[3].all() and not np.delete(shadow, 3, axis=0).any()


def test_what_is_not_known_is_refused():
    line = "v_wmma_f32_16x16x16_f16 v[20:27], v[2:9], v[10:17], v[20:27] neg_lo:[1,0,0]"
    with pytest.raises(Unsupported, match="does not support negating a part of a matrix"):
        bind(instruction(line, GFX1100, 32), GFX1100)
    line = "v_wmma_f32_16x16x16_f16 v[20:27], v[2:9], v[10:17], v[20:27] clamp"
    with pytest.raises(Unsupported, match="does not support this product of matrices"):
        bind(instruction(line, GFX1100, 32), GFX1100)
