"""Guards are followed as conjunctions of comparisons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith.guards import comparisons, linear
from refcomp.foundation.dtype import I64, U64
from refcomp.ir.expr import Var
from refcomp.ir.parser import parse_expr
from refcomp.ir.printer import print_expr
from refcomp.oracle.interpreter.interpret import evaluate_expr

AXIS, N, U = Var("i", I64), Var("n", I64), Var("u", U64)
NAMES = {"i": AXIS, "n": N, "u": U}


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("a", range(-1, 3))
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
def test_each_comparison_and_its_opposite(operator, a, holds):
    condition = parse_expr(f"i {operator} n", NAMES)
    parts = comparisons(condition, holds)
    if operator == ("!=" if holds else "=="):
        assert parts is None
        return
    assert parts is not None
    at = {AXIS: a, N: 1}
    result = all(evaluate_expr(p.small, at) + p.gap <= evaluate_expr(p.large, at) for p in parts)
    assert result == (bool(evaluate_expr(condition, at)) == holds)


@pytest.mark.parametrize(
    ("condition", "count", "count_of_opposite"),
    [
        ("0 <= i and i < n", 2, None),
        ("i < 0 or n <= i", None, 2),
        ("not (i < 0 or n <= i)", 2, None),
        ("0 <= i and (i < n or n < 3)", None, None),
        ("u < 3u64", None, None),
        ("true", None, None),
    ],
)
def test_conjunctions_are_followed(condition, count, count_of_opposite):
    expr = parse_expr(condition, NAMES)
    for holds, expected in ((True, count), (False, count_of_opposite)):
        parts = comparisons(expr, holds)
        assert (None if parts is None else len(parts)) == expected


@pytest.mark.parametrize(
    ("expr", "factor"),
    [
        *[("i", 1), ("n", 0), ("i * 3 - n", 3), ("n - i * 2 + i", -1), ("-2 * (i + n)", -2)],
        *[("i * n", None), ("i // 2", None), ("(i + n) // 2 + i", None), ("i64(i32(i))", None)],
        ("i64(u)", 0),
    ],
)
def test_linear_expressions(expr, factor):
    found = linear(parse_expr(expr, NAMES), AXIS)
    assert (None if found is None else found.factor) == factor
    if found is not None:
        assert AXIS.name not in print_expr(found.rest).replace("i64", "")
    assert linear(U, AXIS) is None


@given(*(st.integers(-9, 9) for _ in range(4)))
def test_a_factor_and_a_rest_are_the_value(a, b, i, n):
    expr = (AXIS * a + N) * b - (N - AXIS)
    found = linear(expr, AXIS)
    assert found is not None
    rest = evaluate_expr(found.rest, {N: n})
    assert found.factor * i + rest == evaluate_expr(expr, {AXIS: i, N: n})
