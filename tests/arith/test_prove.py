import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith import Facts, interval, modular, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import IntImm, Not, Var
from refcomp.ir.printer import print_expr
from tests.arith.evaluate_plain import evaluate
from tests.arith.facts_text import Scope
from tests.strategies.integer_facts import conditions, integer_exprs, known_integers

EXAMPLES = [
    ("i in 16; j in 4", "(i * 4 + j) // 4", "i"),
    ("i in 16; j in 4", "(i * 4 + j) % 4", "j"),
    ("i in 16; j in 4", "j + i * 4", "i * 4 + j"),
    ("i in 16; j in 64", "i * 64 + j < 1024", "true"),
    ("n; i in (n + 3) // 4; j in 4", "i * 4 + j < n", "i * 4 + j < n"),
    ("n; i in (n + 3) // 4; j in 4", "i * 4 < n", "true"),
    ("n; i in (n + 3) // 4; j in 4", "i * 4 + j < n + 3", "true"),
    ("n; i in n // 4; j in 4", "i * 4 + j < n", "true"),
    ("n; i in n // 4; j in 4", "(i * 4 + j) // 4 < n // 4", "true"),
    ("n, m; f in n * m", "f // m", "f // m"),
    ("n, m; f in n * m", "f // m < n", "true"),
    ("n, h, w; f in n * h * w", "f // w // h", "f // (h * w)"),
    ("n, h, w; f in n * h * w", "f // w // h < n", "true"),
    ("n, h, w; f in n * h * w", "f % (h * w) % w", "f % w"),
    ("n; i in (n + 3) // 4; j in min(4, n - i * 4)", "i * 4 + j < n", "true"),
    ("n, m; f in (n + 3) // 4 * m", "f // m * 4 < n", "true"),
    (
        "n, p; q in p; s in min((n + p - 1) // p, n - q * ((n + p - 1) // p))",
        "q * ((n + p - 1) // p) + s < n",
        "true",
    ),
    ("n, m; f in n * m", "f % m < m", "true"),
    ("n, m; f in n * m", "f // m * m + f % m", "f"),
    ("n, m; f in n * m", "f % m + m * (f // m) + 1", "f + 1"),
    ("n, m; i in n; j in m", "(i * m + j) // m", "i"),
    ("n, m; i in n; j in m", "(i * m + j) % m", "j"),
    ("n, m; i in n; j in m", "i * m + j < n * m", "true"),
    ("n; i in 4; j in n + 1", "(i * (n + 1) + j) // (n + 1)", "i"),
    ("n; i in 4; j in n + 1", "(i * (n + 1) + j) % (n + 1)", "j"),
    ("n, m, l; i in n; j in m; k in l", "((i * m + j) * l + k) // l", "i * m + j"),
    ("n, m, l; i in n; j in m; k in l", "((i * m + j) * l + k) // (m * l)", "i"),
    ("n, m, l; i in n; j in m; k in l", "((i * m + j) * l + k) // l % m", "j"),
    ("f in 60", "f // 20 * 20 + f // 4 % 5 * 4 + f % 4", "f"),
    ("f in 60", "f // 20 < 3", "true"),
    ("f in 60", "f // 4 % 5", "f % 20 // 4"),
    ("f in 60", "f // 4 // 5", "f // 20"),
    ("f in 60", "f % 20 // 4", "f % 20 // 4"),
    ("f in 60", "f % 20 % 4", "f % 4"),
    ("x in 8; y in 8", "(x * 8 + y) // 16", "x // 2"),
    ("x in 8; y in 8", "(x * 8 + y) % 16", "x % 2 * 8 + y"),
    ("x in 8; y in 8", "(x * 16 + y) // 4", "x * 4 + y // 4"),
    ("x in 8; y in 8", "(x * 6 + y // 2) // 4", "(x * 6 + y // 2) // 4"),
    ("x in 8; y in 3", "(x * 6 + y * 2) // 4", "(x * 3 + y) // 2"),
    ("x in 8; y in 8", "(x * 24 + y) // 16", "x * 3 // 2"),
    ("i in 16; j in 4", "min(i * 4 + j, 63)", "i * 4 + j"),
    ("i in 16; j in 4", "max(i * 4 + j, 0)", "i * 4 + j"),
    ("n; i in n", "min(i, n - 1)", "i"),
    ("n; i in n", "max(min(i, n - 1), 0)", "i"),
    ("n; i in n", "min(i, n) + max(i, n)", "i + n"),
    ("n; i in (n + 3) // 4", "min(4, n - i * 4)", "min(n - i * 4, 4)"),
    ("n; i in n // 4", "min(4, n - i * 4)", "4"),
    ("n; i in n", "i < n", "true"),
    ("n; i in n", "0 <= i", "true"),
    ("n; i in n", "i + n - n < 5", "i < 5"),
    ("n; i in n", "n - i > 0", "true"),
    ("n; i in n", "i == n", "false"),
    ("n; i in n", "i != n", "true"),
    ("n", "n // 4 * 4 <= n", "true"),
    ("n", "(n + 3) // 4 * 4 >= n", "true"),
    ("n", "(n + 3) // 4 * 4 < n + 4", "true"),
    ("n", "n // 4 <= n", "true"),
    ("n", "n % 4 < 4", "true"),
    ("n", "n - n // 4 * 4", "n % 4"),
    ("n", "n // 4 * 4 + n % 4", "n"),
    ("n; i in n", "n * 4 <= i * 4 + 3", "false"),
    ("n; i in n", "i * 4 + 3 < n * 4", "true"),
    ("n; i in n; j in 4", "i * 4 + j < n * 4", "true"),
    ("h in 8; rh in 3", "1 <= h + rh and h + rh < 9", "1 <= h + rh and h + rh < 9"),
    ("h in 8; rh in 3", "h + rh - 1 >= 0 and h + rh - 1 < 8", "1 <= h + rh and h + rh < 9"),
    ("h in 1..7; rh in 3", "1 <= h + rh and h + rh < 9", "true"),
    ("h in 8; rh in 3", "h + rh < 10", "true"),
    ("h in 8; rh in 3", "h * 2 + rh <= 16", "true"),
    ("n; i in n; i < 4", "i < 8", "true"),
    ("n; i in n; i < 4", "4 <= i", "false"),
    ("n; i in n; i + 4 <= n", "i + 3 < n", "true"),
    ("n, m; n < m", "n + 1 <= m", "true"),
    ("n, m; n < m; i in n", "i < m", "true"),
    ("n; n % 8 == 0", "n % 4", "0"),
    ("n; n % 8 == 0", "n // 8 * 8", "n"),
    ("n; n % 8 == 0; i in n // 8; j in 8", "i * 8 + j < n", "true"),
    ("n; i in n", "select(i < n, i, 0)", "i"),
    ("n; i in n", "select(n <= i, i, 0)", "0"),
    ("n; i in n", "if_then_else(i < n, i * 2 - i, 0)", "i"),
    ("n; i in n", "i < 4 and i < 4", "i < 4"),
    ("n; i in n", "i < 4 and i < 8", "i < 4"),
    ("n; i in n", "i < 8 and i < 4", "i < 4"),
    ("n; i in n", "i < 4 or 4 <= i", "true"),
    ("n; i in n", "not (i < 4)", "4 <= i"),
    ("n; i in n", "not (i < 4 and i == 2)", "i != 2"),
    ("i in 16", "i * 2 == 7", "false"),
    ("i in 16", "i * 2 == 8", "i == 4"),
    ("n; i in n", "i * 2 != n * 2 + 1", "true"),
    ("i in 4", "i * 0 + 3 - 3", "0"),
    ("i in 4", "(let t: i64 = i * 2 in t + t)", "(let t: i64 = i * 2 in t * 2)"),
    ("i in 4", "(let t: i64 = 3 in t + i)", "i + 3"),
    ("i in 4", "(let t: boolx2 = broadcast(true, 2) in not t)", "broadcast(false, 2)"),
    ("i in 1", "i * 7 + 2", "2"),
    ("i in 5..6", "i", "5"),
    ("n: i32; i in 4", "i64(n) * 4 + i", "i + i64(n) * 4"),
    ("x: i32", "x - x", "0i32"),
    ("x: i32", "x * 3i32 + x", "x * 4i32"),
    ("x: i32", "(x + 1i32) - 1i32", "x"),
    ("x: i32", "x + 1i32 > x", "x < x + 1i32"),
    ("x: i32", "(x * 4i32) // 4i32", "x * 4i32 // 4i32"),
    ("x: i32", "(x * 4i32 + 1i32) % 4i32", "1i32"),
    ("x: u8", "x < 0u8", "false"),
    ("x: u8", "x + 255u8", "x + 255u8"),
    ("x: u8", "i64(x) < 256", "true"),
    ("x: u8", "i64(x) // 256", "0"),
    ("x: i32 in 16i32", "(x * 4i32 + 3i32) // 4i32", "x"),
    ("x: i64", "(x * 4 + 3) // 4", "(x * 4 + 3) // 4"),
    ("x: i64", "(x & 7) // 8", "0"),
    ("x: i64", "truncdiv(x & 7, 4)", "(x & 7) // 4"),
    ("x: i64", "truncmod(x & 7, 8)", "x & 7"),
    ("x: i64", "i64(i32(x & 7))", "x & 7"),
    ("x: f32", "x * 1.0f32", "x"),
    ("x: f32", "x + 0.0f32", "x + 0.0f32"),
    ("x: f32", "x - 0.0f32", "x"),
    ("x: f32", "x - x", "x - x"),
    ("x: f32", "f32(1) + 2.5f32", "3.5f32"),
    ("i in 4", "ramp(i * 4, 1, 4) + broadcast(8, 4)", "ramp(i * 4 + 8, 1, 4)"),
    ("i in 4", "ramp(i * 4, 1, 4) < broadcast(16, 4)", "broadcast(true, 4)"),
    ("n; i in n // 4", "ramp(i * 4, 1, 4) < broadcast(n, 4)", "broadcast(true, 4)"),
    ("i in 4", "broadcast(i, 4) * broadcast(2, 4) + broadcast(1, 4)", "broadcast(i * 2 + 1, 4)"),
    ("n; o in n; i in 4; j in 4; o * 16 + i * 4 < n", "o * 16 + i * 4 + j < n + 3", "true"),
    ("n; o in (n + 15) // 16; i in 16; o * 16 + i < n", "(o * 16 + i) // 16 == o", "true"),
    ("n, m; i in n; j in m", "(j * n + i) % n", "i"),
    ("n; i in n; j in i..n", "j - i < n", "true"),
    ("n; i in n; j in i..n", "i <= j", "true"),
    ("i in 7; j in 3", "(i * 3 + j) // 3 * 3 + (i * 3 + j) % 3", "i * 3 + j"),
    ("n; i in n", "(i + n) % n", "i"),
    ("n; i in n", "(i + 2 * n) // n", "2"),
    ("n; i in n", "(n - 1 - i) // n", "0"),
    ("i in 16", "(i // 4 * 4 + i % 4) // 4", "i // 4"),
    ("i in 64", "i // 8 * 8 + i % 8 // 2 * 2 + i % 2", "i"),
]


@pytest.mark.parametrize(("scope", "text", "expected"), EXAMPLES)
def test_examples(scope, text, expected):
    """Strength: what schedules make comes out as a person would write it."""
    assert Scope(scope).simplified(text) == expected


@pytest.mark.parametrize(("scope", "text", "expected"), EXAMPLES)
def test_examples_are_simple_already(scope, text, expected):
    scope = Scope(scope)
    result = simplify(scope.expr(text), scope.facts)
    assert simplify(result, scope.facts) is result


def _assert_same_values(expr, result, points):
    for point in points:
        assert evaluate(result, point) == evaluate(expr, point), (
            f"{print_expr(expr)} became {print_expr(result)}, at "
            f"{ {var.name: value for var, value in point.items()} }"
        )


@pytest.mark.search
@given(st.data(), known_integers())
def test_simplified_expressions_have_the_same_values(data, known):
    expr = data.draw(integer_exprs(known.variables, 3))
    result = simplify(expr, known.facts)
    assert result.dtype == expr.dtype
    _assert_same_values(expr, result, known.points)


@pytest.mark.search
@given(st.data(), known_integers())
def test_conditions_keep_their_truth_under_assumptions(data, known):
    assumed = data.draw(conditions(known.variables, 1))
    points = [point for point in known.points if evaluate(assumed, point)]
    facts = known.facts.assume(assumed)
    expr = data.draw(conditions(known.variables, 2))
    _assert_same_values(expr, simplify(expr, facts), points)


@pytest.mark.search
@given(st.data(), known_integers())
def test_nothing_false_is_proved(data, known):
    condition = data.draw(conditions(known.variables, 2))
    truths = {evaluate(condition, point) for point in known.points}
    if prove(condition, known.facts):
        assert 0 not in truths, print_expr(condition)
    if prove(Not(condition), known.facts):
        assert 1 not in truths, print_expr(condition)


@pytest.mark.search
@given(st.data(), known_integers())
def test_intervals_and_remainders_hold_all_values(data, known):
    expr = data.draw(integer_exprs(known.variables, 3))
    values, residues = interval(expr, known.facts), modular(expr, known.facts)
    for point in known.points:
        value = evaluate(expr, point)
        assert values.contains(value) and residues.contains(value), print_expr(expr)


def test_unchanged_expressions_come_back_as_the_same_object():
    scope = Scope("n; i in n; j in 4")
    expr = scope.expr("i * 4 + j < n and select(n < 3, i, j) == 2")
    assert simplify(expr, scope.facts) is expr
    assert simplify(expr, scope.facts) is expr


def test_only_scalar_bools_can_be_proved():
    with pytest.raises(UserError, match="only a scalar bool can be proved, not .* dtype i64"):
        prove(Var("x", I64))
    with pytest.raises(UserError, match="dtype boolx4"):
        prove(Scope("i in 4").expr("ramp(i, 1, 4) < broadcast(8, 4)"))


def test_without_facts():
    assert prove(IntImm(3, I64) < 4) and not prove(Var("x", I64) < 4)
    assert interval(IntImm(3, I64), Facts()).is_point and modular(Var("x", I64) * 2).base == 0
