"""Products and carries, against Python's integers."""

import numpy as np
import pytest

from refcomp.emulator.ptx.instructions.wide import upper_product, wide_of
from refcomp.foundation.errors import UserError
from tests.emulator.ptx.instructions.edges import grid, integers, signed
from tests.emulator.ptx.instructions.worded import bits, rule, run

TYPES = ("u16", "u32", "u64", "s16", "s32", "s64")


def _value(number: int, kind: str) -> int:
    return signed(number, int(kind[1:])) if kind[0] == "s" else number


def _pairs(kind: str) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    width = int(kind[1:])
    a, b = grid(integers(width), integers(width), kind=f"u{width // 8}")
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return a, b, [(_value(x, kind), _value(y, kind)) for x, y in pairs]


@pytest.mark.parametrize("kind", TYPES)
def test_products_agree_with_python(kind: str) -> None:
    width = int(kind[1:])
    mask = (1 << width) - 1
    a, b, pairs = _pairs(kind)
    assert bits(run(f"mul.lo.{kind} d, a, b", a, b)) == [x * y & mask for x, y in pairs]
    assert bits(run(f"mul.hi.{kind} d, a, b", a, b)) == [x * y >> width & mask for x, y in pairs]
    if width < 64:
        wide = (1 << 2 * width) - 1
        assert bits(run(f"mul.wide.{kind} d, a, b", a, b)) == [x * y & wide for x, y in pairs]


@pytest.mark.parametrize("kind", TYPES)
def test_multiply_adds_agree_with_python(kind: str) -> None:
    width = int(kind[1:])
    mask = (1 << width) - 1
    a, b, pairs = _pairs(kind)
    c = np.full_like(a, mask - 4)
    low = [x * y + mask - 4 & mask for x, y in pairs]
    assert bits(run(f"mad.lo.{kind} d, a, b, c", a, b, c)) == low
    high = [(x * y >> width) + mask - 4 & mask for x, y in pairs]
    assert bits(run(f"mad.hi.{kind} d, a, b, c", a, b, c)) == high
    if width < 64:
        wide = (1 << 2 * width) - 1
        found = run(f"mad.wide.{kind} d, a, b, c", a, b, np.full(a.shape, wide, f"u{width // 4}"))
        assert bits(found) == [x * y - 1 & wide for x, y in pairs]


def test_multiply_add_saturates() -> None:
    found = run(
        "mad.hi.sat.s32 d, a, b, c", [2**31 - 1, -(2**31)], [2**31 - 1] * 2, [2**31 - 1, -9]
    )
    assert found.tolist() == [2**31 - 1, -(2**30) - 9]


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("name", ["add", "sub"])
def test_sums_carry_in_and_out(name: str, kind: str) -> None:
    width = int(kind[1:])
    mask = (1 << width) - 1
    a, b = grid(integers(width), integers(width), kind=f"u{width // 8}")
    for carry in (0, 1):
        flag = np.full(a.shape, bool(carry))
        result, carried = run(f"{name}c.cc.{kind} d, a, b", a, b, flag)
        alone = run(f"{name}c.{kind} d, a, b", a, b, flag)
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        totals = [x + y + carry if name == "add" else x - y - carry for x, y in pairs]
        assert bits(result) == bits(alone) == [total & mask for total in totals]
        assert carried.tolist() == [not 0 <= total <= mask for total in totals]
    result, carried = run(f"{name}.cc.{kind} d, a, b", a, b)
    first, second = run(f"{name}c.cc.{kind} d, a, b", a, b, np.zeros(a.shape, bool))
    assert bits(result) == bits(first)
    assert bits(carried) == bits(second)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("part", ["lo", "hi"])
def test_multiply_adds_carry(part: str, kind: str) -> None:
    width = int(kind[1:])
    mask = (1 << width) - 1
    a, b, pairs = _pairs(kind)
    c = np.full_like(a, mask - 4)
    flag = np.arange(a.size) % 2 == 1
    result, carried = run(f"madc.{part}.cc.{kind} d, a, b, c", a, b, c, flag)
    shift = width if part == "hi" else 0
    products = [x * y >> shift & mask for x, y in pairs]
    totals = [x + mask - 4 + int(f) for x, f in zip(products, flag.tolist(), strict=True)]
    assert bits(result) == [total & mask for total in totals]
    assert carried.tolist() == [total > mask for total in totals]
    result, carried = run(f"mad.{part}.cc.{kind} d, a, b, c", a, b, c)
    assert carried.tolist() == [x + mask - 4 > mask for x in products]


def test_carry_is_a_source_or_a_result_of_its_own() -> None:
    assert rule("add.cc.u32 d, a, b").results == ("u32", "%cc")
    assert rule("addc.u32 d, a, b").sources == ("u32", "u32", "%cc")
    assert rule("madc.hi.u32 d, a, b, c").results == ("u32",)


def test_upper_product_takes_numbers_without_axes() -> None:
    assert upper_product(np.array(-1, np.int64), np.array(1, np.int64)) == -1
    assert wide_of("s16") == "s32"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mul.wide.u64 d, a, b", "mul.wide needs a type of 16 or 32 bits"),
        ("mul.u32 d, a, b", "mul needs one of .lo, .hi, .wide"),
        ("mad.lo.sat.s32 d, a, b, c", ".sat needs mad.hi.s32"),
        ("mad.lo.cc.u16 d, a, b, c", "mad with a carry needs a type of 32 or 64 bits"),
        ("add.cc.u16 d, a, b", "add needs one of the types .s32, .s64, .u32, .u64"),
    ],
)
def test_forms_that_ptx_lacks_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule(text)
