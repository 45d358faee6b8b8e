"""Equations between indices: what they force, and what they leave open."""

import itertools
from itertools import starmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith import Facts
from refcomp.foundation.dtype import I32, I64
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import FloorDiv, FloorMod, IntImm, Var
from refcomp.passes.analysis.index_equations import Equation, forces_equal


def _modulo(value, divisor):
    return value % divisor if isinstance(value, int) else FloorMod(value, IntImm(divisor, I64))


def _forces(equations, pairs, facts):
    """Sides are given in pairs."""
    return forces_equal(list(starmap(Equation, equations)), list(starmap(Equation, pairs)), facts)


def _variables(extents, dtype=I64):
    facts, found = Facts(), []
    for name, extent in extents.items():
        var = Var(name, dtype)
        facts = facts.bind(var, IntImm(0, dtype), IntImm(extent, dtype))
        found.append(var)
    return facts, found


def test_digits_of_a_number_are_equal_one_by_one():
    facts, (x, y, v, w) = _variables({"x": 16, "y": 4, "v": 16, "w": 4})
    assert _forces([(x * 4 + y, v * 4 + w)], [(x, v), (y, w)], facts)
    assert not _forces([(x * 3 + y, v * 3 + w)], [(x, v), (y, w)], facts)


def test_quotient_and_remainder_together_are_the_number():
    facts, (x, y) = _variables({"x": 99, "y": 99})
    quotients, remainders = (x // 7, y // 7), (_modulo(x, 7), _modulo(y, 7))
    assert _forces([quotients, remainders], [(x, y)], facts)
    assert not _forces([quotients], [(x, y)], facts)
    assert not _forces([remainders], [(x, y)], facts)


def test_quotients_and_remainders_of_one_number_in_three_dimensions():
    facts, (t, o, u, p) = _variables({"t": 3, "o": 16, "u": 3, "p": 16})
    x, y = t + o * 3, u + p * 3
    pairs = [(t, u), (o, p)]
    equations = [
        (x // 16, y // 16),
        (_modulo(x, 16) // 8, _modulo(y, 16) // 8),
        (_modulo(x, 8), _modulo(y, 8)),
    ]
    assert _forces(equations, pairs, facts)
    for missing in equations:
        assert not _forces([e for e in equations if e is not missing], pairs, facts)
    # The same, as simplifying writes it where a digit is out of reach of a quotient.
    equations = [
        (o // 2, p // 2),
        ((t + _modulo(o, 2) * 3) // 2, (u + _modulo(p, 2) * 3) // 2),
        (_modulo(t + o * 3, 2), _modulo(u + p * 3, 2)),
    ]
    assert _forces(equations, pairs, facts)
    assert not _forces(equations[:2], pairs, facts)


def test_a_quotient_that_simplifying_has_taken_apart():
    facts, (t, o, u, p) = _variables({"t": 4, "o": 2, "u": 4, "p": 2})
    # (t + o * 4) // 3 and its remainder
    equations = [
        (o + (t + o) // 3, p + (u + p) // 3),
        (_modulo(t + o, 3), _modulo(u + p, 3)),
    ]
    assert _forces(equations, [(t, u), (o, p)], facts)
    assert not _forces(equations[:1], [(t, u), (o, p)], facts)


def test_a_remainder_where_only_one_multiple_is_in_reach():
    facts, (x, y) = _variables({"x": 4, "y": 4})
    assert _forces([(_modulo(x + 1, 4), _modulo(y + 1, 4))], [(x, y)], facts)
    assert not _forces([(_modulo(x + 1, 3), _modulo(y + 1, 3))], [(x, y)], facts)
    assert _forces([(_modulo(x + 3, 4), x * 0 + 3)], [(x, x * 0)], facts)
    assert not _forces([(_modulo(x + 3, 3), x * 0 + 0)], [(x, x * 0)], facts)
    assert _forces([(_modulo(x + 1, 4), x)], [(x, y)], facts)  # never
    assert _forces([(_modulo(x + 3, 8), x * 0 + 1)], [(x, y)], facts)  # never


def test_a_symbolic_divisor():
    facts, (x, y) = _variables({"x": 99, "y": 99})
    n = Var("n", I64)
    facts = facts.nonnegative(n)
    parts = [(FloorDiv(x, n), FloorDiv(y, n)), (FloorMod(x, n), FloorMod(y, n))]
    assert _forces(parts, [(x, y)], facts)
    assert not _forces(parts[:1], [(x, y)], facts)


@pytest.mark.parametrize(
    "sides",
    [
        lambda x, y: (x, y + 8),  # ranges that do not meet
        lambda x, y: (x * 2, y * 2 + 1),  # even and odd
        lambda x, y: (_modulo(y - 1, 2), _modulo(y, 2)),  # the other one of two
        lambda x, y: (x * 0, y * 0 + 1),
    ],
)
def test_what_cannot_hold_forces_everything(sides):
    facts, (x, y) = _variables({"x": 8, "y": 8})
    assert _forces([sides(x, y)], [(x, y + 1)], facts)


def test_a_value_that_a_variable_takes_keeps_its_range():
    facts, (x, y, z) = _variables({"x": 4, "y": 8, "z": 8})
    # x = y - 4 makes y at least 4, and so z = y - 4 is x again.
    assert _forces([(x + 4, y), (z, y - 4)], [(x, z)], facts)
    assert _forces([(x + 4, y), (y, x * 0 + 3)], [(x, x + 1)], facts)
    assert not _forces([(x + 4, y)], [(x, z)], facts)


def test_memory_and_wrapping_arithmetic_force_nothing():
    facts, (x, y) = _variables({"x": 8, "y": 8})
    table = Buffer("T", I64, (IntImm(8, I64),))
    read = BufferLoad(table, (x,)), BufferLoad(table, (y,))
    assert not _forces([read], [(x, y)], facts)
    assert not _forces([(read[0], read[0] + 1)], [(x, y)], facts)
    a, b = Var("a", I32), Var("b", I32)  # nothing is known of them: a + 1 may wrap
    assert not _forces([(a * 4 + 1, b * 4)], [(a, b)], Facts())


def test_sides_of_two_dtypes():
    facts, (x,) = _variables({"x": 8}, I32)
    y = Var("y", I64)
    facts = facts.bind(y, IntImm(0, I64), IntImm(8, I64))
    assert _forces([(x, y + 8)], [(x, y)], facts)


_TERMS = st.tuples(*[st.integers(-5, 5)] * 4, st.integers(-6, 6))


@pytest.mark.search
@given(st.lists(_TERMS, min_size=1, max_size=3), st.sampled_from([0, 2, 3, 4]))
def test_what_is_forced_holds_for_all_solutions(rows, divisor):
    extents = {"a": 3, "b": 4, "c": 3, "d": 4}
    facts, names = _variables(extents)

    def side(values, row):
        total = sum(v * k for v, k in zip(values, row, strict=False)) + row[4]
        return _modulo(total, divisor) if divisor else total

    equations = [(side(names, row), names[0] * 0) for row in rows]
    pairs = [(names[0], names[2]), (names[1], names[3])]
    solutions = [
        values
        for values in itertools.product(*map(range, extents.values()))
        if all(side(values, row) == 0 for row in rows)
    ]
    if _forces(equations, pairs, facts):
        assert all(a == c and b == d for a, b, c, d in solutions)
