"""Comparisons on all pairs of edge values, against Python's."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.emulator.ptx.instructions.edges import floats, grid, integers, signed
from tests.emulator.ptx.instructions.exact_floats import FORMATS
from tests.emulator.ptx.instructions.worded import bits, rule, run, undefined

ORDERED: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_integers_are_compared(kind: str) -> None:
    width = int(kind[1:])
    a, b = grid(integers(width), integers(width), kind=f"u{width // 8}")
    numbers = [a.tolist(), b.tolist()]
    if kind[0] == "s":
        numbers = [[signed(x, width) for x in axis] for axis in numbers]
    pairs = list(zip(*numbers, strict=True))
    for name, holds in ORDERED.items():
        found = run(f"setp.{name}.{kind} p, a, b", a, b)
        assert found.tolist() == [holds(x, y) for x, y in pairs]
    if kind[0] == "u":
        for name, other in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
            found = run(f"setp.{name}.{kind} p, a, b", a, b)
            assert found.tolist() == [ORDERED[other](x, y) for x, y in pairs]


def _number(kind: str, word: int) -> float:
    form = FORMATS[kind]
    if form.is_nan(word):
        return math.nan
    value = form.value(word)
    if value is None:
        return -math.inf if word & form.sign else math.inf
    return float(value)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_floats_are_compared_ordered_and_unordered(kind: str) -> None:
    form = FORMATS[kind]
    a, b = grid(floats(form, 8), floats(form, 8), kind=f"u{form.width // 8}")
    numbers = [[_number(kind, word) for word in axis.tolist()] for axis in (a, b)]
    pairs = list(zip(*numbers, strict=True))
    unordered = [math.isnan(x) or math.isnan(y) for x, y in pairs]
    for name, holds in ORDERED.items():
        expected = [holds(x, y) for x, y in pairs]
        zipped = list(zip(expected, unordered, strict=True))
        found = run(f"setp.{name}.{kind} p, a, b", a, b)
        assert found.tolist() == [e and not u for e, u in zipped], name
        found = run(f"setp.{name}u.{kind} p, a, b", a, b)
        assert found.tolist() == [e or u for e, u in zipped], name
    assert run(f"setp.nan.{kind} p, a, b", a, b).tolist() == unordered
    assert run(f"setp.num.{kind} p, a, b", a, b).tolist() == [not u for u in unordered]


def test_ftz_compares_denormals_as_0() -> None:
    tiny = np.array([1], np.uint32)
    assert run("setp.gt.f32 p, a, b", tiny, [0]).tolist() == [True]
    assert run("setp.gt.ftz.f32 p, a, b", tiny, [0]).tolist() == [False]


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_second_result_is_the_opposite_before_it_is_combined(name: str) -> None:
    combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[name]
    a = np.array([1, 1, 2, 2], np.int32)
    c = np.array([False, True, False, True])
    p, q = run(f"setp.lt.{name}.s32 p|q, a, b, c", a, np.full(4, 2, np.int32), c)
    assert p.tolist() == combine(a < 2, c).tolist()
    assert q.tolist() == combine(a >= 2, c).tolist()
    p, q = run("setp.lt.s32 p|q, a, b", a, np.full(4, 2, np.int32))
    assert q.tolist() == (~p).tolist()


def test_packed_halves_have_a_predicate_each() -> None:
    # 1.0 and 2.0 against 2.0 and 1.0; the lower half comes first.
    low, high = run("setp.lt.f16x2 p|q, a, b", [0x40003C00], [0x3C004000])
    assert (low.tolist(), high.tolist()) == ([True], [False])
    low, high = run("setp.lt.and.bf16x2 p|q, a, b, c", [0x40003F80], [0x3F804000], [False])
    assert (low.tolist(), high.tolist()) == ([False], [False])
    assert run("setp.lt.f16x2 p, a, b", [0x40003C00], [0x3C004000]).tolist() == [True]


def test_set_makes_masks_and_ones() -> None:
    a = np.array([1, 3], np.float32)
    b = np.array([2, 2], np.float32)
    assert bits(run("set.lt.u32.f32 d, a, b", a, b)) == [0xFFFFFFFF, 0]
    assert bits(run("set.lt.s32.f32 d, a, b", a, b)) == [0xFFFFFFFF, 0]
    assert run("set.lt.f32.f32 d, a, b", a, b).tolist() == [1, 0]
    assert run("set.gt.or.f32.s32 d, a, b, c", [1, 3], [2, 2], [True, False]).tolist() == [1, 1]
    assert bits(run("set.lt.f16x2.f16x2 d, a, b", [0x40003C00], [0x3C004000])) == [0x3C00]
    assert bits(run("set.lt.u32.f16x2 d, a, b", [0x40003C00], [0x3C004000])) == [0xFFFF]
    found = run("set.gt.xor.bf16x2.bf16x2 d, a, b, c", [0x40003F80], [0x3F804000], [True])
    assert bits(found) == [0x3F80]
    assert bits(run("set.eq.u16.f16 d, a, b", [1.0], [1.0])) == [0xFFFF]


def test_choices() -> None:
    chosen = [True, False]
    assert run("selp.s32 d, a, b, c", [-1, -2], [3, 4], chosen).tolist() == [-1, 4]
    assert bits(run("selp.f32 d, a, b, c", np.array([0xFFC12345], np.uint32), [1.0], [True])) == [
        0xFFC12345
    ]
    assert run("slct.u32.s32 d, a, b, c", [1, 1, 1], [2, 2, 2], [0, -1, 5]).tolist() == [1, 2, 1]
    signs = [-0.0, math.nan, 3]
    assert run("slct.u64.f32 d, a, b, c", [1, 1, 1], [2, 2, 2], signs).tolist() == [1, 2, 1]
    tiny = np.array([0x80000001], np.uint32)
    assert run("slct.b32.f32 d, a, b, c", [1], [2], tiny).tolist() == [2]
    assert run("slct.ftz.b32.f32 d, a, b, c", [1], [2], tiny).tolist() == [1]


def test_undefined_choice_keeps_the_bits_that_both_have() -> None:
    text = "selp.b32 d, a, b, c"
    assert undefined(text, [0b1100, 0b1010, 1], [0, 0, 1]) == 0b0110
    assert undefined(text, [0, 0, 1], [0b01, 0b10, 0]) == 0b01
    assert undefined(text, [0, 0, 0], [0b01, 0b10, 0]) == 0b10
    assert undefined("selp.f32 d, a, b, c", [5, 5, 1], [0, 0, 1]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("setp.lt.b32 p, a, b", "setp needs one of .eq, .ne"),
        ("setp.lo.s32 p, a, b", "setp needs one of .eq, .ne, .lt"),
        ("setp.lt.f16 p|q, a, b", "setp.f16 does not have a second result"),
        ("set.lt.f32 d, a, b", "set does not have the type of the result"),
        ("set.lt.u16.f32 d, a, b", "set does not have the type of the result"),
        ("set.lt.f16.f16x2 d, a, b", "set does not have the type of the result"),
        ("slct.f16.s32 d, a, b, c", "slct does not choose between .f16"),
        ("slct.f32 d, a, b, c", "slct needs the type of its result"),
        ("setp.lt.and.s32 p, a, b", "setp has 3 operands here, and needs 4"),
    ],
)
def test_forms_that_ptx_lacks_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule(text)


def test_halves_are_compared_whatever_the_others_are():
    assert undefined("setp.lt.f16x2 p|q, a, b", [0, 0], [0x10000, 0]) == (0, 1)
    assert undefined("setp.lt.f16x2 p, a, b", [0, 0], [0x10000, 0]) == 0
    assert undefined("setp.lt.and.bf16x2 p|q, a, b, c", [0, 0, 0], [0, 1, 0]) == (1, 0)
    assert undefined("setp.lt.and.f16x2 p|q, a, b, c", [0, 0, 0], [0, 0, 1]) == (1, 1)
    assert undefined("set.eq.f16x2.f16x2 d, a, b", [0, 0], [0, 1]) == 0xFFFF
    assert undefined("set.eq.u32.f16x2 d, a, b", [0, 0], [1 << 31, 0]) == 0xFFFF0000
