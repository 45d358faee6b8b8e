import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp
from refcomp.arith import Facts
from refcomp.foundation.dtype import I64
from refcomp.ir.expr import Div, FloorMod, IntImm, Max, Min, Select, Var
from refcomp.lowering.bounds.ranges import Range, RangeFinder, intersect, span_between, union
from refcomp.oracle.interpreter.interpret import evaluate_expr

OUTER, J, N = Var("i", I64), Var("j", I64), Var("n", I64)


def _number(value):
    return IntImm(value, I64)


def _facts():
    return Facts().nonnegative(N).bind(OUTER, _number(0), N)


def _finder(extent=4):
    return RangeFinder({J: Range(_number(0), _number(extent - 1), extent - 1)}, _facts())


@pytest.mark.parametrize(
    ("expr", "low", "high", "span"),
    [
        (OUTER * 4 + J, OUTER * 4, OUTER * 4 + 3, 3),
        (OUTER - J, OUTER - 3, OUTER, 3),
        (J * -2 + OUTER, OUTER - 6, OUTER, 6),
        (OUTER + N, OUTER + N, OUTER + N, 0),
        ((OUTER * 4 + J) // 4, OUTER, OUTER, 0),
        ((OUTER * 4 + J) % 4, _number(0), _number(3), 3),
        (FloorMod(OUTER - J, _number(3)), _number(0), _number(2), 2),
        (J % 8, _number(0), _number(3), 3),
        (Div(OUTER * 4 + J, _number(4)), OUTER, OUTER, 0),
        (Min(OUTER + J, N - 1), Min(OUTER, N - 1), Min(OUTER + 3, N - 1), 3),
        (Max(OUTER + J - 1, _number(0)), Max(OUTER - 1, _number(0)), OUTER + 2, 3),
        (Select(OUTER < 3, J, J + 2), _number(0), _number(5), 5),
    ],
    ids=str,
)
def test_ends_and_span(expr, low, high, span):
    found = _finder().of(expr)
    for mine, wanted in ((found.low, low), (found.high, high)):
        for n in (1, 5):
            for i in range(n):
                assert _value(mine, n, i) == _value(wanted, n, i)
    assert found.span is not None and found.span >= span


def _value(expr, n, i, j=0):
    return int(evaluate_expr(expr, {N: n, OUTER: i, J: j}))


def test_a_quotient_by_a_symbol_spans_no_more_than_what_is_divided():
    found = RangeFinder({J: Range(_number(0), _number(3), 3)}, _facts()).of((OUTER + J) // N)
    assert found.span == 3


def test_what_depends_on_memory_or_on_an_unknown_range_has_none():
    table = refcomp.placeholder((8,), "int64", "T")
    assert _finder().of(table[OUTER] + J) is None and _finder().of(table[J]) is None
    assert RangeFinder({J: None}, _facts()).of(OUTER + J) is None
    assert _finder().of((OUTER + J).astype("int32").astype("int64")) is None
    assert _finder().of((OUTER + J) // (J - 1)) is None  # a divisor that may be 0
    assert _finder().of((OUTER - J) % 4) is None  # which rounds to zero, from either side


def test_unions_hold_both_and_intersections_only_proved_ends():
    facts = _facts()
    a, b = Range(OUTER, OUTER + 3, 3), Range(OUTER + 1, OUTER + 6, 5)
    both = union(a, b, facts)
    assert (both.low == OUTER) and (both.high == OUTER + 6) and both.span == 6
    cut = intersect(a, Range(_number(0), N - 1, None), facts)
    assert (cut.low == OUTER) and (cut.high == OUTER + 3)  # n - 1 may be more
    assert intersect(a, b, facts).low == OUTER + 1


@pytest.mark.parametrize(
    ("low", "high", "span"),
    [
        (Max(OUTER * 4 - 1, _number(0)), Min(OUTER * 4, _number(15)) + 4, 5),
        (Min(OUTER, OUTER * 2) + 1, OUTER * 2, 3),
        (OUTER, Max(OUTER + 2, OUTER + 5), 5),
        (Min(OUTER, OUTER + 3), OUTER + 4, 4),
        (OUTER, N, None),
    ],
    ids=str,
)
def test_how_far_ends_are_apart_at_most(low, high, span):
    facts = Facts().nonnegative(N).bind(OUTER, _number(0), _number(5))
    assert span_between(low, high, facts) == span


@st.composite
def _index(draw, depth=3):
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([OUTER, J, N, _number(0), _number(1), _number(3)]))
    a, b = draw(_index(depth - 1)), draw(_index(depth - 1))
    c = draw(st.sampled_from([1, 2, 3, 4]))
    forms = [
        lambda: a + b,
        lambda: a - b,
        lambda: a * c,
        lambda: a * b,
        lambda: a // c,
        lambda: a % c,
        lambda: FloorMod(a, _number(c)),
        lambda: Div(a, _number(c)),
        lambda: Min(a, b),
        lambda: Max(a, b),
        lambda: a // (N + 1),
        lambda: Select(a < b, a, b),
    ]
    return draw(st.sampled_from(forms))()


@pytest.mark.search
@given(_index(), st.integers(1, 4))
def test_a_range_holds_all_values(expr, extent):
    found = _finder(extent).of(expr)
    if found is None:
        return
    for n in (1, 2, 5):
        for i in range(n):
            low, high = _value(found.low, n, i), _value(found.high, n, i)
            values = [_value(expr, n, i, j) for j in range(extent)]
            assert low <= min(values) and max(values) <= high
            assert found.span is None or high - low <= found.span


def test_constant_ends_are_compared_without_proofs(monkeypatch):
    monkeypatch.setattr(sys.modules[union.__module__], "prove", None)
    a = Range(_number(0), _number(7), 7)
    b = Range(_number(2), _number(9), 7)
    assert _ends(union(a, b, Facts())) == (0, 9, 9)
    assert _ends(intersect(a, b, Facts())) == (2, 7, 5)


def _ends(found):
    return found.low.value, found.high.value, found.span
