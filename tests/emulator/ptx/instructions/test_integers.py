"""Each instruction on all pairs of edge values, against Python's integers."""

from collections.abc import Callable

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.emulator.ptx.instructions.edges import grid, integers, signed
from tests.emulator.ptx.instructions.worded import bits, rule, run, undefined

TYPES = ("u16", "u32", "u64", "s16", "s32", "s64")


def _quotient(a: int, b: int) -> int:
    if b == 0:
        return -1
    size = abs(a) // abs(b)
    return -size if (a < 0) != (b < 0) else size


def _remainder(a: int, b: int) -> int:
    return -1 if b == 0 else a - b * _quotient(a, b)


TWO: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "div": _quotient,
    "rem": _remainder,
    "min": min,
    "max": max,
}


def value(number: int, kind: str) -> int:
    width = int(kind[1:])
    return signed(number, width) if kind[0] == "s" else number


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", TWO)
def test_instruction_of_two_integers_agrees_with_python(name: str, kind: str) -> None:
    width = int(kind[1:])
    a, b = grid(integers(width), integers(width), kind=f"u{width // 8}")
    found = bits(run(f"{name}.{kind} d, a, b", a, b))
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    mask = (1 << width) - 1
    assert found == [TWO[name](value(x, kind), value(y, kind)) & mask for x, y in pairs]


@pytest.mark.parametrize("name", ["add", "min", "max"])
@pytest.mark.parametrize("kind", ["u16", "s16"])
def test_packed_instruction_works_on_each_half(name: str, kind: str) -> None:
    a, b = grid(integers(16, 3), integers(16, 3), kind="u2")
    low = np.array(run(f"{name}.{kind} d, a, b", a, b)).view(np.uint16).astype(np.uint32)
    high = np.array(run(f"{name}.{kind} d, a, b", b, a)).view(np.uint16).astype(np.uint32)
    first = a.astype(np.uint32) | b.astype(np.uint32) << 16
    second = b.astype(np.uint32) | a.astype(np.uint32) << 16
    found = run(f"{name}.{kind}x2 d, a, b", first, second)
    assert bits(found) == (low | high << np.uint32(16)).tolist()


def test_sums_and_differences_saturate() -> None:
    a, b = grid(integers(32), integers(32), kind="u4")
    for name in ("add", "sub"):
        found = run(f"{name}.sat.s32 d, a, b", a, b).tolist()
        for x, y, z in zip(a.view("i4").tolist(), b.view("i4").tolist(), found, strict=True):
            assert z == max(-(2**31), min(2**31 - 1, TWO[name](x, y)))


def test_relu_makes_an_extreme_at_least_0() -> None:
    a, b = grid(integers(32), integers(32), kind="u4")
    found = run("min.relu.s32 d, a, b", a, b)
    assert found.tolist() == np.maximum(np.minimum(a.view("i4"), b.view("i4")), 0).tolist()
    assert bits(run("max.relu.s16x2 d, a, b", [0x8000_0001], [0x8001_FFFF])) == [1]


def test_absolute_value_and_negation_wrap() -> None:
    for kind in ("s16", "s32", "s64"):
        width = int(kind[1:])
        a = np.array(integers(width), f"u{width // 8}")
        mask = (1 << width) - 1
        numbers = [value(x, kind) for x in a.tolist()]
        assert bits(run(f"abs.{kind} d, a", a)) == [abs(x) & mask for x in numbers]
        assert bits(run(f"neg.{kind} d, a", a)) == [-x & mask for x in numbers]


@pytest.mark.parametrize("kind", TYPES)
def test_sad_adds_a_distance(kind: str) -> None:
    width = int(kind[1:])
    a, b, c = grid(integers(width, 4), integers(width, 4), [0, 5], kind=f"u{width // 8}")
    found = bits(run(f"sad.{kind} d, a, b, c", a, b, c))
    triples = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    mask = (1 << width) - 1
    expected = [(z + abs(value(x, kind) - value(y, kind))) & mask for x, y, z in triples]
    assert found == expected


@pytest.mark.parametrize("part", ["lo", "hi"])
@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_product_of_24_bits_ignores_the_upper_byte(kind: str, part: str) -> None:
    def short(x: int) -> int:
        return signed(x & 0xFFFFFF, 24) if kind == "s32" else x & 0xFFFFFF

    a, b = grid(integers(32), [*integers(24), 0xFF800000], kind="u4")
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    shift = 16 if part == "hi" else 0
    products = [(short(x) * short(y)) >> shift & 0xFFFFFFFF for x, y in pairs]
    assert bits(run(f"mul24.{part}.{kind} d, a, b", a, b)) == products
    found = bits(run(f"mad24.{part}.{kind} d, a, b, c", a, b, np.full_like(a, 9)))
    assert found == [x + 9 & 0xFFFFFFFF for x in products]


def test_product_of_24_bits_saturates() -> None:
    found = run("mad24.hi.sat.s32 d, a, b, c", [0x7FFFFF, 1], [0x7FFFFF, 1], [0x7FFFFFFF, 3])
    assert found.tolist() == [0x7FFFFFFF, 3]


@pytest.mark.parametrize("second", ["u32", "s32"])
@pytest.mark.parametrize("first", ["u32", "s32"])
def test_dot_products_agree_with_python(first: str, second: str) -> None:
    def parts(word: int, kind: str, width: int) -> list[int]:
        found = [word >> place & (1 << width) - 1 for place in range(0, 32, width)]
        return [signed(x, width) for x in found] if kind == "s32" else found

    words = [0, 0x01020304, 0xFF80_7F01, 0xFFFFFFFF, 0x80008000]
    for a in words:
        for b in words:
            four = zip(parts(a, first, 8), parts(b, second, 8), strict=True)
            total = 5 + sum(x * y for x, y in four) & 0xFFFFFFFF
            source = [np.array([x], np.uint32) for x in (a, b, 5)]
            assert bits(run(f"dp4a.{first}.{second} d, a, b, c", *source)) == [total]
            for half in ("lo", "hi"):
                octets = parts(b, second, 8)[:2] if half == "lo" else parts(b, second, 8)[2:]
                two = zip(parts(a, first, 16), octets, strict=True)
                total = 5 + sum(x * y for x, y in two) & 0xFFFFFFFF
                assert bits(run(f"dp2a.{half}.{first}.{second} d, a, b, c", *source)) == [total]


def test_quotient_by_0_is_undefined() -> None:
    assert undefined("div.u32 d, a, b", [5, 0], [0, 0]) == 0xFFFFFFFF
    assert undefined("rem.s32 d, a, b", [5, 0], [0, 0]) == 0xFFFFFFFF
    assert undefined("div.u32 d, a, b", [5, 2], [0, 0]) == 0
    assert undefined("div.u32 d, a, b", [5, 2], [1, 0]) == 0xFFFFFFFF


def test_uniform_operands_have_no_axes() -> None:
    assert run("add.s32 d, a, b", np.array([1, 2]), 5).tolist() == [6, 7]
    assert run("add.s16x2 d, a, b", 0x00020003, 0x0001FFFF) == 0x00030002


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add.sat.u32 d, a, b", "add.sat needs the type .s32"),
        ("min.relu.u32 d, a, b", "min.relu needs the type .s32 or .s16x2"),
        ("mad24.lo.sat.s32 d, a, b, c", ".sat needs mad24.hi.s32"),
        ("mul24.s32 d, a, b", "mul24 needs one of .hi, .lo"),
        ("dp4a.u32 d, a, b, c", "dp4a needs the types of both factors"),
        ("dp4a.u8.u32 d, a, b, c", "the factors of dp4a are .u32 or .s32"),
    ],
)
def test_forms_that_ptx_lacks_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule(text)
