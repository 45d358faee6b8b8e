"""Ends of indices over boxes are attained, and nothing lies beyond them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith import Facts
from refcomp.arith.attained import Box, Judgement
from refcomp.arith.ends import Attained
from refcomp.foundation.dtype import I32, I64, U64, DType
from refcomp.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Cast,
    Expr,
    FloorDiv,
    IntImm,
    Min,
    Mul,
    Not,
    Or,
    Sub,
    Var,
)
from refcomp.ir.parser import parse_expr
from refcomp.ir.printer import print_expr
from refcomp.ir.rewrite import substitute
from refcomp.oracle.interpreter.interpret import evaluate_expr

N, M, K, T = (Var(name, I64) for name in "nmkt")
AXIS, J, S = Var("i", I64), Var("j", I64), Var("s", I32)
B, U, W = Var("b", DType("int", 8)), Var("u", DType("uint", 32)), Var("w", U64)
NAMES = {var.name: var for var in (N, M, K, T, AXIS, J, S, B, U, W)}


def _expr(text: str) -> Expr:
    return parse_expr(text, NAMES)


def _box(i: str, j: str = "3", first: str = "0") -> Box:
    facts = Facts().nonnegative(N).nonnegative(M)
    box = Box(facts, frozenset((N, M, K, T, S, B, U, W)))
    return box.with_axis(AXIS, _expr(first), _expr(i)).with_axis(J, IntImm(0, I64), _expr(j))


@pytest.mark.parametrize(
    ("index", "ends"),
    [
        ("i", (0, 4)),
        ("i * 3 + j - 1", (-1, 13)),
        ("7 - i", (3, 7)),
        ("i * -2", (-8, 0)),
        ("(i - 9) // 2", (-5, -3)),
        ("min(i, 2) + max(j, 1)", (1, 4)),
        ("(i + 5) % 10", (5, 9)),
        ("(i + 5) % 5", (0, 4)),
        ("i * 3 % 4 + 1", (1, 4)),
        ("i - i", (0, 0)),
        ("i * j", (0, 8)),
        ("7 // (i - 2)", (-7, 7)),
        ("select(i < 3, i, 9 - j)", (0, 9)),
    ],
)
def test_ends_of_constant_boxes(index, ends):
    found = _box("5").attained(_expr(index))
    assert found is not None and (found.low, found.high) == ends


@pytest.mark.parametrize(
    "index", ["i - i", "i + i", "(i - 1) * j", "i // j", "i % 3", "(i + 1) % m", "i % k", "i ^ j"]
)
def test_an_index_whose_ends_may_not_be_attained_is_not_followed(index):
    assert _box("m").attained(_expr(index)) is None
    assert _box("4097").attained(_expr(index)) is None


def test_a_sum_that_wraps_in_its_type_is_not_followed():
    i = Var("i", DType("int", 8))
    box = Box(Facts(), frozenset()).with_axis(i, IntImm(100, i.dtype), IntImm(20, i.dtype))
    assert box.attained(i) == Attained(100, 119, frozenset((i,)))
    assert box.attained(i + i) == Attained(-56, -18, frozenset((i,)))  # enumerated
    assert box.attained(i + IntImm(8, i.dtype)) == Attained(108, 127, frozenset((i,)))
    assert box.attained(i + IntImm(9, i.dtype)) == Attained(-128, 127, frozenset((i,)))


@pytest.mark.parametrize(
    ("i", "index", "dim", "conditions"),
    [
        ("m", "i", "n", ["m - 1 < n"]),
        ("m", "i", "m", []),
        ("m", "i + 1", "n", ["m <= 0 or m < n"]),
        ("m", "i * n + j", "m * n + 3", []),
        ("m", "k", "n", ["m <= 0 or 0 <= k", "m <= 0 or k < n"]),
        ("m", "i + n", "n * 2", ["n + m - 1 < n * 2"]),
        ("k", "i", "n", ["k <= 0 or k - 1 < n"]),
        ("m", "s", "9", ["m <= 0 or 0 <= i64(s)", "m <= 0 or i64(s) < 9"]),
        ("m", "i - 1 + k", "n", ["m <= 0 or 0 <= k - 1", "m <= 0 or k + m - 2 < n"]),
        ("3", "i", "n", ["2 < n"]),
        ("k + 3 - k", "i", "n", ["2 < n"]),
        ("8", "i * 3 % 8", "n", ["7 < n"]),
        ("8", "i * 3 % 8 + k", "n", ["0 <= k", "k + 7 < n"]),
        ("max(m - 2, 0)", "i + 2", "m", []),
        ("3", "i * k", "n", ["0 <= min(k * 2, 0)", "max(k * 2, 0) < n"]),
        ("m", "i * j", "n", ["m * 2 - 2 < n"]),
        ("m", "i * i", "n", ["m <= 0 or (m - 1) * (m - 1) < n"]),
        ("m", "i * j + i * j", "n", []),
        ("3", "i % n", "m", ["min(max(n - 1, 0), 2) < m"]),
        ("m", "i % n", "n + 1", []),
        ("m", "truncmod(i, n)", "3", ["min(m - 1, max(n - 1, 0)) < 3"]),
    ],
)
def test_conditions_over_symbols(i, index, dim, conditions):
    judgement = _box(i).judge(_expr(index), _expr(dim))
    assert judgement.beyond is None
    assert [*map(print_expr, judgement.conditions)] == conditions


@pytest.mark.parametrize(
    ("i", "index", "dim", "beyond"),
    [
        ("5", "i", "4", 4),
        ("5", "i - 1", "9", -1),
        ("n", "i + 1", "n", "n"),
        ("n", "n", "n", "n"),
        ("n", "i - 1", "n", -1),
        ("8", "i * 3 % 8", "7", 7),
        ("5", "i * i - i", "12", 12),
    ],
)
def test_an_index_that_is_certainly_beyond(i, index, dim, beyond):
    found = _box(i).judge(_expr(index), _expr(dim)).beyond
    assert (print_expr(found) if isinstance(found, Expr) else found) == beyond


def test_nothing_is_said_where_an_axis_has_no_values_or_unknown_ones():
    assert _box("0").judge(_expr("9"), _expr("4")) == Judgement()
    box = Box(Facts(), frozenset()).with_axis(AXIS, IntImm(0, I64), N)
    assert not box.is_known and box.judge(_expr("9"), _expr("4")) == Judgement()
    unknown = _box("5").with_axis(Var("t", I64), IntImm(0, I64), N * AXIS)
    assert not unknown.is_known
    assert not _box("0").with_axis(Var("t", I64), IntImm(0, I64), AXIS).is_known


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(
    ("minimum", "extent"),
    [
        ("0", "i + 1"),
        ("0", "i"),
        ("i", "5 - i"),
        ("i - 2", "3"),
        ("0", "3 - i"),
        ("i * 2", "i + 1"),
    ],
)
@pytest.mark.parametrize("index", ["t", "i", "i - t", "t - i * 2", "t * 3 + j", "t // 2", "i + t"])
def test_ends_are_attained_where_an_extent_depends_on_an_axis(count, minimum, extent, index):
    tile = Var("t", I64)
    given = _expr(minimum), _expr(extent)
    box = _box(str(count)).with_axis(tile, *given)
    expr = parse_expr(index, {**NAMES, "t": tile})
    values = []
    for i, j in itertools.product(range(count), range(3)):
        first, number = (int(evaluate_expr(bound, {AXIS: i})) for bound in given)
        for t in range(first, first + number):
            values.append(int(evaluate_expr(expr, {AXIS: i, J: j, tile: t})))
    if not values:
        assert not box.is_known
    else:
        found = box.attained(expr)
        assert found is not None and (found.low, found.high) == (min(values), max(values))


def test_a_triangle_of_unknown_size_has_conditions():
    tile = Var("t", I64)
    box = _box("m").with_axis(tile, IntImm(0, I64), AXIS + 1)
    for index in (tile, AXIS - tile):
        (condition,) = box.judge(index, N).conditions
        assert print_expr(condition) == "m - 1 < n"
    assert box.judge(AXIS - tile - 1, N).beyond == -1
    # Row 0 has no iteration here, so that index -1 does not occur.
    below = _box("m").with_axis(tile, IntImm(0, I64), AXIS)
    assert not below.judge(AXIS - tile - 1, M).conditions


def test_an_axis_that_begins_at_another_is_not_independent_of_it():
    tile, box = Var("t", I64), _box("5")
    box = box.with_axis(tile, _expr("i * 4"), IntImm(4, I64))
    assert box.attained(tile) == Attained(0, 19, frozenset((AXIS, tile)))
    assert box.attained(tile - AXIS) == Attained(0, 15, frozenset((AXIS, tile)))
    assert box.attained(tile * AXIS) is None


@pytest.mark.parametrize(
    ("index", "conditions"),
    [
        ("i64(s + 1i32)", ["0 <= i64(s + 1i32)", "i64(s + 1i32) < n"]),
        ("s * s - 1i32", ["0 <= i64(s * s - 1i32)", "i64(s * s - 1i32) < n"]),
        ("i64(s - 1i32) + i", ["0 <= i64(s - 1i32)", "i64(s - 1i32) + 2 < n"]),
        ("i64(u - 1u32)", ["i64(u - 1u32) < n"]),
        ("i64(w // 2u64)", ["i64(w // 2u64) < n"]),
        ("i64(w - 1u64) + i", ["0 <= i64(w) - 1", "i64(w) + 1 < n"]),
        ("i64(b * 2i8)", ["0 <= i64(b * 2i8)", "i64(b * 2i8) < n"]),
        ("i64(i8(k))", ["0 <= i64(i8(k))", "i64(i8(k)) < n"]),
        ("i64(i32(i) + s)", ["0 <= i64(s)", "2147483647 < i64(s) + 2 or i64(s) + 2 < n"]),
        ("i64(u32(i) - u)", ["0 - i64(u) < 0 or 2 - i64(u) < n"]),
        ("i64(i32(i) + i32(b))", ["0 <= i64(b)", "i64(b) + 2 < n"]),
        ("i64(i8(i) * 50i8)", ["100 < n"]),
        ("i64(u32(i) + u32(w))", ["4294967295 < i64(u32(w)) + 2 or i64(u32(w)) + 2 < n"]),
    ],
)
def test_narrow_arithmetic_wraps_around(index, conditions):
    judgement = _box("3").judge(_expr(index), N)
    assert judgement.beyond is None
    assert [*map(print_expr, judgement.conditions)] == conditions


def test_an_index_that_may_wrap_is_not_certainly_beyond():
    conditions = _box("3").judge(_expr("i64(i8(t) + i8(i)) + 200"), IntImm(50, I64)).conditions
    assert all(evaluate_expr(c, {T: 126, N: 0, M: 0, K: 0, S: 0}) for c in conditions)
    assert not all(evaluate_expr(c, {T: 3, N: 0, M: 0, K: 0, S: 0}) for c in conditions)
    box = Box(Facts(), frozenset()).with_axis(AXIS, IntImm(0, I64), _expr("i64(s)"))
    assert not box.is_known


def test_a_let_is_followed():
    name = Var("x", I64)
    box = _box("5").with_let(name, _expr("i * 2"))
    assert box.attained(name + J) == Attained(0, 10, frozenset((AXIS, J)))
    assert box.attained(name + AXIS) == Attained(0, 12, frozenset((AXIS,)))
    assert _box("m").with_let(name, _expr("i * 2")).attained(name + AXIS) is None


def test_the_value_of_a_let_is_named_by_its_symbols():
    name = Var("x", I64)
    conditions = _box("5").with_let(name, _expr("k + 1")).judge(name * 2, N).conditions
    assert [*map(print_expr, conditions)] == ["0 <= k * 2 + 2", "k * 2 + 2 < n"]


@st.composite
def indices(draw: st.DrawFn, depth: int = 2) -> Expr:
    """An index over i and j, the size m, and t of any sign."""
    if depth == 0 or draw(st.booleans()):
        leaves = [AXIS, J, M, T, *(IntImm(v, I64) for v in (-3, 0, 2, 5))]
        return draw(st.sampled_from(leaves))
    operator = draw(st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]))
    a, b = draw(indices(depth - 1)), draw(indices(depth - 1))
    text = f"{operator}(a, b)" if operator in ("min", "max") else f"(a) {operator} (b)"
    names = {"a": Var("a", I64), "b": Var("b", I64)}
    return substitute(parse_expr(text, names), {names["a"]: a, names["b"]: b})


@pytest.mark.search
@given(
    indices(),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 5),
    st.integers(-3, 3),
    st.integers(-2, 9),
    st.booleans(),
)
def test_conditions_hold_exactly_where_all_elements_are_there(index, i, j, m, t, size, is_constant):
    """Where an index is followed, the judgement on a box is that of a walk over it."""
    box = _box(str(i) if is_constant else "n", str(j))
    if box.attained(index) is None:
        return
    judgement = box.judge(index, K)
    values = [
        evaluate_expr(index, {AXIS: a, J: b, M: m, T: t})
        for a, b in itertools.product(range(i), range(j))
    ]
    is_inside = all(0 <= value < size for value in values)
    sizes = {N: i, M: m, T: t, K: size}
    if judgement.beyond is not None:
        assert not is_inside
    else:
        assert is_inside == all(evaluate_expr(c, sizes) for c in judgement.conditions)


@st.composite
def narrow_indices(draw: st.DrawFn, dtype: DType, leaves: list[Expr], depth: int = 2) -> Expr:
    """An index of i8 or u8 over `leaves`, which are converted to the type."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        leaf = draw(st.sampled_from([*leaves, IntImm(3, dtype), IntImm(100, dtype)]))
        return leaf if leaf.dtype == dtype else Cast(dtype, leaf)
    operator = draw(st.sampled_from([Add, Sub, Mul, FloorDiv, Min]))
    inner = draw(st.sampled_from([dtype, dtype, DType("int", 8), DType("uint", 8)]))
    a, b = (draw(narrow_indices(inner, leaves, depth - 1)) for _ in range(2))
    return operator(a, b) if inner == dtype else Cast(dtype, operator(a, b))


@pytest.mark.search
@given(st.data(), st.integers(1, 4), st.integers(-128, 127), st.integers(0, 2**64 - 1))
def test_conditions_on_narrow_indices_are_necessary(data, i, b, w):
    """And sufficient, where no axis is in the index, or nothing wraps around."""
    has_axis = data.draw(st.booleans())
    dtype = data.draw(st.sampled_from([DType("int", 8), DType("uint", 8)]))
    index = data.draw(narrow_indices(dtype, [B, W, *([AXIS] if has_axis else [])]))
    box = _box(data.draw(st.sampled_from(["n", str(i)])))
    found = box.attained(Cast(I64, index))
    if found is None:
        assert has_axis
        return
    judgement = box.judge(Cast(I64, index), K)
    size = data.draw(st.integers(0, 260))
    sizes = {N: i, K: size, M: 0, T: 0, S: 0, B: b, W: w, U: 0}
    values = [evaluate_expr(Cast(I64, index), sizes | {AXIS: at}) for at in range(i)]
    is_inside = all(0 <= value < size for value in values)
    holds = judgement.beyond is None
    holds = holds and all(evaluate_expr(c, sizes) for c in judgement.conditions)
    wraps = any(evaluate_expr(wrap, sizes) for wrap in found.wraps)
    assert holds == is_inside if not wraps else holds or not is_inside


@pytest.mark.parametrize(
    ("guard", "index", "conditions"),
    [
        ("i < 3", "i", ["min(m - 1, 2) < n"]),
        ("i == 7", "i", ["m - 7 <= 0 or 7 < n"]),
        ("i * 2 < k and 1 <= i", "i", None),
        ("s < 4i32", "i64(s)", None),
        ("i + j < 3", "i", ["min(m - 1, 2) < n"]),
        ("j < i", "j", ["min(m - 2, 2) < n"]),
        ("i < j", "i", ["min(m - 1, 1) < n"]),
        ("j < i", "i - j", []),
        ("j * 2 < i", "i", []),
        ("i % 2 == 0", "i", []),
        ("i64(u) < m", "i64(u)", ["m - i64(u) <= 0 or i64(u) < n"]),
    ],
)
def test_a_guard_cuts_the_box(guard, index, conditions):
    box = _box("m").with_guard(_expr(guard))
    found = [*map(print_expr, box.judge(_expr(index), N).conditions)]
    assert found if conditions is None else found == conditions


def test_nothing_is_said_of_axes_that_depend_on_a_guarded_one():
    box = _box("5").with_axis(Var("t", I64), _expr("i * 4"), IntImm(4, I64))
    assert not box.with_guard(_expr("i < 3")).is_known
    assert box.with_guard(_expr("j < 1")).is_known
    assert not _box("5").with_guard(_expr("i > 7")).is_known


@st.composite
def guards(draw: st.DrawFn, depth: int = 2) -> Expr:
    """A condition over i, j, m, t and the scalar b of i8."""
    kind = draw(st.sampled_from(["and", "or", "not"])) if depth and draw(st.booleans()) else ""
    if kind == "not":
        return Not(draw(guards(depth - 1)))
    if kind:
        return (And if kind == "and" else Or)(draw(guards(depth - 1)), draw(guards(depth - 1)))
    sides = [
        AXIS,
        J,
        AXIS * 2 - M,
        3 - J * 3,
        M,
        T,
        Cast(I64, B),
        IntImm(1, I64),
        AXIS + J,
        AXIS,
        J,
    ]
    a, b = draw(st.sampled_from(sides)), draw(st.sampled_from(sides))
    return draw(st.sampled_from([LT, LE, GT, GE, EQ, NE]))(a, b)


@pytest.mark.search
@given(st.data(), st.integers(1, 4), st.integers(0, 5), st.integers(-3, 3), st.integers(-2, 9))
def test_conditions_below_guards_are_those_of_a_walk(data, i, m, t, size):
    """Where guards and an index are followed, the judgement is that of a walk over the box."""
    is_constant, holds = data.draw(st.booleans()), data.draw(st.booleans())
    conditions = [data.draw(guards()) for _ in range(data.draw(st.integers(1, 2)))]
    box = _box(str(i) if is_constant else "n")
    for guard in conditions:
        box = box.with_guard(guard, holds)
    index = data.draw(indices())
    sizes = {N: i, M: m, T: t, K: size, B: data.draw(st.integers(-3, 3)), S: 0, W: 0, U: 0}
    points = [sizes | {AXIS: a, J: b} for a, b in itertools.product(range(i), range(3))]
    reached = [p for p in points if all(evaluate_expr(g, p) == holds for g in conditions)]
    if not box.is_known or box.attained(index) is None:
        return
    judgement = box.judge(index, K)
    assert judgement.beyond is None
    is_inside = all(0 <= evaluate_expr(index, p) < size for p in reached)
    assert is_inside == all(evaluate_expr(c, sizes) for c in judgement.conditions)
