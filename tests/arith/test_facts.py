import pytest

from refcomp.arith import Facts, Interval, interval, prove, simplify
from refcomp.foundation.dtype import I64, as_dtype
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import LT, Add, IntImm, Mul, Var
from refcomp.ir.printer import print_expr
from tests.arith.facts_text import Scope


def _const(value):
    return IntImm(value, I64)


def test_facts_are_immutable():
    facts, x = Facts(), Var("x", I64)
    bound = facts.bind(x, _const(0), _const(4))
    assert prove(x < 4, bound) and prove(x >= 0, bound)
    assert not prove(x < 4, facts) and not prove(x >= 0, facts)


@pytest.mark.parametrize(
    ("scope", "condition"),
    [
        ("n; i in n", "1 <= n"),
        ("n, m; f in n * m", "1 <= n and 1 <= m"),
        ("n, m; n == m", "n <= m and m <= n"),
        ("n; n != 0", "1 <= n"),
        ("n; n != 0; n != 1", "2 <= n"),
        ("n, m; not (n < m)", "m <= n"),
        ("n, m; not (n < m or n < 4)", "m <= n and 4 <= n"),
        ("n, m; n < m and m < 9", "n < 8"),
        ("n; n % 4 == 1", "(n + 3) % 4 == 0"),
        ("x: i64; y: i64; x == y", "x == y"),
        ("x: i64; y: i64; x < y", "not (y <= x)"),
        ("x: i32; 0i32 <= x; x < 10i32", "x * 3i32 <= 27i32"),
        ("x: i64; 0 <= x; x < 10", "x + 1 <= 10"),
        ("n; i in n; i: i64 in 5", "i < 5"),
    ],
)
def test_what_follows(scope, condition):
    assert Scope(scope).proves(condition)


@pytest.mark.parametrize(
    ("scope", "condition"),
    [
        ("x: i64; 5 < x", "6 < x + 1"),  # x + 1 may wrap
        ("n, m; n < m or n < 4", "n < m"),
        ("n; n != 5", "6 <= n"),
        ("x: i32; y: i32; x < y", "0i32 < y - x"),
        ("n; i in (n + 3) // 4", "4 <= n"),
    ],
)
def test_what_does_not(scope, condition):
    assert not Scope(scope).proves(condition)


def test_a_range_is_refined_by_a_second_one():
    x = Var("x", I64)
    facts = Facts().bind(x, _const(0), _const(16)).bind(x, _const(4), _const(100))
    assert interval(x, facts) == Interval(4, 15)


def test_nothing_is_assumed_of_memory():
    buffer, x = Buffer("A", I64, (_const(4),)), Var("x", I64)
    load = BufferLoad(buffer, (_const(0),))
    facts = Facts().assume(LT(load, _const(5))).bind(x, _const(0), load)
    assert not prove(load < 5, facts) and not prove(x < load, facts)
    assert prove(x >= 0, facts)


def test_index_arithmetic_does_not_overflow_but_data_wraps():
    n, x = Var("n", I64), Var("x", I64)
    facts = Facts().nonnegative(n)
    assert prove(n < n + 1, facts) and not prove(x < x + 1, facts)
    assert not prove(n * (1 << 40) >= 0, facts)
    assert not prove(x + n >= x, facts)
    buffer = Buffer("A", I64, (_const(4),))
    load = BufferLoad(buffer, (_const(0),))
    assert not prove(load + n >= load, facts)


def test_narrow_symbols_keep_within_their_type():
    n = Var("n", as_dtype("i32"))
    facts = Facts().nonnegative(n)
    assert interval(n, facts) == Interval(0, 2**31 - 1)
    assert prove(n.astype(I64) + 1 > n.astype(I64), facts) and not prove(n + 1 > n, facts)


def test_definitions_are_written_in_place():
    x, y = Var("x", I64), Var("y", I64)
    facts = Facts().define(x, Add(y, _const(1)))
    assert print_expr(simplify(Mul(x, _const(2)), facts)) == "y * 2 + 2"


def test_lets_keep_their_name_and_tell_their_range():
    scope = Scope("n; i in n")
    t = Var("t", I64)
    facts = scope.facts.let(t, scope.expr("i * 4"))
    assert simplify(t, facts) is t
    assert prove(t < scope.vars["n"] * 4, facts) and prove(t + 1 > t, facts)
    data = Facts().let(t, Var("x", I64))
    assert not prove(t + 1 > t, data)
    assert Facts().let(Var("f", as_dtype("f32")), Var("g", as_dtype("f32"))) is not None


def test_facts_of_vectors_are_not_used():
    v = Var("v", as_dtype("i64x4"))
    facts = Facts().assume(LT(v, v))
    assert not prove(Var("p", as_dtype("bool")), facts)


def test_contradictory_facts_do_no_harm():
    scope = Scope("n; n < 4; 8 <= n")
    assert print_expr(simplify(scope.vars["n"], scope.facts)) in ("n", "3", "8")


def test_the_same_extension_of_facts_is_the_same_object():
    facts, x, n = Facts(), Var("x", I64), Var("n", I64)
    bound = facts.bind(x, _const(0), n)
    assert facts.bind(x, _const(0), n) is bound
    assert facts.bind(x, _const(0), _const(4)) is not bound
    assert bound.assume(x < 3) is bound.assume(x < 3)
    assert bound.assume(x < 3) is not bound.assume(x < 2)
    assert not prove(x < 2, bound.assume(x < 3))
