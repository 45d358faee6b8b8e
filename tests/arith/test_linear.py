import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith import linear
from refcomp.arith.intern import LOOP_RANK, SYMBOL_RANK
from refcomp.arith.linear import (
    Sum,
    SumTable,
    addends,
    collect,
    direction,
    multiply,
    number,
    wrapped,
)
from refcomp.foundation.dtype import I64, as_dtype
from refcomp.ir.expr import Add, IntImm, Mul, Sub, Var
from refcomp.ir.parser import parse_expr
from refcomp.ir.printer import print_expr
from tests.arith.evaluate_plain import evaluate, wrap
from tests.arith.facts_text import Scope

NAMES = {name: Var(name, I64) for name in ("i", "j", "n", "x", "y")}
U8 = as_dtype("u8")


def _table():
    table = SumTable()
    table.declare(NAMES["n"], SYMBOL_RANK)
    for name in ("i", "j"):
        table.declare(NAMES[name], LOOP_RANK)
    return table


def _rebuilt(text):
    table = _table()
    expr = table.intern(parse_expr(text, NAMES))
    return print_expr(table.build(table.sum_of(expr), I64))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n - 1 + j + 64 * i", "i * 64 + j + n - 1"),
        ("j * 4 - i", "j * 4 - i"),
        ("0 - i", "0 - i"),
        ("3 - i - j", "3 - i - j"),
        ("i * 2 + i * 3 - 5 * i", "0"),
        ("n * j + n * i", "i * n + j * n"),
        ("y + x + y", "y * 2 + x"),
        ("i // 2 + (i - 1) // 2", "i // 2 + (i - 1) // 2"),
        ("j // 2 + i", "i + j // 2"),
        ("4 + i - (2 - (j - i))", "j + 2"),
    ],
)
def test_sums_read_in_a_stable_order(text, expected):
    assert _rebuilt(text) == expected
    assert _rebuilt(expected) == expected


@pytest.mark.search
@given(st.data(), st.sampled_from(["i8", "u8", "i64"]))
def test_collected_sums_have_the_value(data, text):
    dtype = as_dtype(text)
    xs = [Var(name, dtype) for name in "abc"]

    def leaf():
        low, high = (dtype.min_value, dtype.max_value) if dtype.bits == 8 else (-9, 9)
        return st.sampled_from(xs) | st.integers(low, high).map(lambda v: IntImm(v, dtype))

    def grow(inner):
        sums = st.builds(Add, inner, inner) | st.builds(Sub, inner, inner)
        return sums | st.builds(Mul, inner, leaf().filter(lambda e: isinstance(e, IntImm)))

    expr = data.draw(st.recursive(leaf(), grow, max_leaves=8))
    table = SumTable()
    rebuilt = table.build(table.sum_of(table.intern(expr)), dtype)
    values = {x: wrap(data.draw(st.integers(-9, 260)), dtype) for x in xs}
    assert evaluate(rebuilt, values) == evaluate(expr, values)


def test_arithmetic_of_sums():
    a, b = Sum({(0,): 2}, 1), Sum({(0,): -2, (1,): 1}, 3)
    assert a.plus(b).equals(Sum({(1,): 1}, 4))
    assert a.times(b).equals(Sum({(0, 0): -4, (0, 1): 2, (0,): 4, (1,): 1}, 3))
    assert a.scale(0).equals(number(0)) and a.scale(-1).shift(1).equals(Sum({(0,): -2}))
    assert Sum({(0,): 1}).sole_atom() == 0
    assert Sum({(0,): 2}).sole_atom() is None and number(1).sole_atom() is None


@pytest.mark.parametrize("divisor", [-4, -1, 2, 3, 8])
def test_split_by_a_number(divisor):
    total = Sum({(0,): 8, (1,): -6, (0, 1): 5}, -7)
    quotient, rest = total.split(divisor)
    assert quotient.scale(divisor).plus(rest).equals(total)
    assert 0 <= rest.const < abs(divisor)
    assert all(k % divisor for k in rest.terms.values())


def test_split_by_an_atom():
    total = Sum({(0, 1): 3, (1,): 2, (0,): 5, (1, 1): 7}, 4)
    quotient, rest = total.split_factor(1)
    assert quotient.equals(Sum({(0,): 3, (1,): 7}, 2)) and rest.equals(Sum({(0,): 5}, 4))


def test_directions_are_shared_by_multiples():
    total = Sum({(0,): 4, (1,): -6}, 1)
    key, factor = direction(total)
    assert direction(total.scale(-3)) == (key, -3 * factor) and factor == 2


def test_products_that_are_too_long_are_refused():
    eight = Sum({tuple(range(8)): 1})
    assert multiply(eight, number(3)).equals(eight.scale(3))
    assert multiply(eight, Sum({(9,): 1})) is None


def test_large_numbers_are_reduced():
    assert wrapped(Sum({(0,): 256, (1,): 257}, -1), U8).equals(Sum({(1,): 1}, -1))
    assert wrapped(number(200), as_dtype("i8")).const == -56


def test_a_shared_sum_is_read_in_linear_time():
    x = expr = Var("x", I64)
    for _ in range(62):
        expr = Add(expr, expr)
    inner, leaves = addends(expr)
    assert len(inner) == 62 and leaves == [x]
    assert collect(expr, lambda _: Sum({(7,): 1})).terms == {(7,): 1 << 62}


@pytest.mark.search
def test_a_long_product_is_one_atom():
    table = SumTable()
    expr = Var("x0", I64)
    for k in range(1, 3000):
        expr = table.make(Mul, table.intern(expr), table.intern(Var(f"x{k}", I64)))
        assert len(table.sum_of(expr).terms) == 1
    assert table.sum_of(expr).sole_atom() is not None


@pytest.mark.search
@given(st.data(), st.sampled_from(["i8", "u8", "i64"]))
def test_what_is_remembered_of_a_sum_that_was_built_is_what_would_be_read(data, text):
    dtype = as_dtype(text)
    table = SumTable()
    names = [table.intern(Var(name, dtype)) for name in "abc"]
    atoms = [*names, table.make(Mul, *names[:2]), table.make(Add, *names[1:])]
    factors = st.integers(-dtype.max_value, dtype.max_value)
    chosen = data.draw(st.lists(st.tuples(st.sampled_from(atoms), factors), max_size=4))
    terms = {(table.serial(atom),): k for atom, k in chosen if k}
    expr = table.build(Sum(terms, data.draw(factors)), dtype)
    remembered, read = table.sum_of(expr), collect(expr, table._sum_of_leaf)
    assert remembered.equals(read) and list(remembered.terms) == list(read.terms)


def test_a_sum_is_built_once_and_read_once_for_all_facts(monkeypatch):
    scope = Scope("i in 4; j in 8")
    expr = scope.expr("i * 8 + j")
    built = _counted(monkeypatch, SumTable, "_build")
    listed = _counted(monkeypatch, linear, "addends")
    inside = scope.facts.assume(scope.expr("i < 2"))
    del built[:], listed[:]
    for facts in (scope.facts, inside):
        assert print_expr(facts.simplifier.simplify(expr)) == "i * 8 + j"
    assert len(built) == len(listed) == 1


def _counted(monkeypatch, owner, name):
    """Return the arguments of all later calls of a function."""
    calls, function = [], getattr(owner, name)

    def count(*args):
        calls.append(args)
        return function(*args)

    monkeypatch.setattr(owner, name, count)
    return calls
