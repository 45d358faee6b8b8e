"""The range of one variable in which a comparison certainly holds.

Loops with guards are partitioned at the ends of such ranges:

Before:  i * 32 + j < n      with j in [0, 32)
After:   holds for every j where i < n // 32

The coefficient of the variable may be symbolic, but its sign must be known. The range must not name
some variables, such as those of inner loops. They are replaced by the end of their own range at
which the condition is hardest to satisfy. The result is None for conditions that read memory, that
are not linear in the variable, or whose sides may wrap (see `refcomp.arith.facts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.arith.facts import Facts
from refcomp.arith.intern import free_of
from refcomp.arith.linear import Sum, number
from refcomp.foundation.dtype import I64
from refcomp.ir.expr import LE, LT, Expr, FloorDiv, IntImm, Sub, Var


@dataclass(frozen=True, slots=True)
class HalfOpenRange:
    """The integers in [low, high)."""

    low: Expr | None  # None: no bound
    high: Expr | None
    is_exact: bool  # True if the condition holds for no other value of the variable


def solve(
    condition: Expr, var: Var, hidden: Sequence[Var], facts: Facts
) -> HalfOpenRange | None:
    """Return values of `var` for which `condition` holds whatever the `hidden` variables are.

    Args:
        condition: a comparison.
        var: the variable to solve for, of i64.
        hidden: variables that the result must not name, innermost first: the range of each may
            name the variables that follow.
        facts: facts that hold where the condition is evaluated, with the ranges of all variables.
    """
    difference = _difference(condition, facts)
    if difference is None or var.dtype != I64:
        return None
    least = _least(difference, hidden, facts)
    if least is None:
        return None
    table = facts.table
    factor, rest = least.split_factor(table.serial(table.intern(var)))
    # A square, or a division of the variable, is not linear.
    if not (_is_free(factor, var, facts) and _is_free(rest, var, facts)):
        return None
    return _nonnegative_range(factor, rest, least is difference, facts)


def _difference(condition: Expr, facts: Facts) -> Sum | None:
    """Return a Sum that is >= 0 if and only if `condition` holds."""
    known = facts.simplifier.representative(condition)
    if not isinstance(known, LT | LE) or known.a.dtype != I64:
        return None
    if facts.table.reads_memory(known):
        return None
    a = facts.bounds.exact_sum(known.a)
    b = facts.bounds.exact_sum(known.b)
    if a is None or b is None:
        return None
    difference = b.plus(a, -1)
    return difference.shift(-1) if isinstance(known, LT) else difference


def _least(total: Sum, hidden: Sequence[Var], facts: Facts) -> Sum | None:
    """Return a lower bound of `total` without hidden variables, `total` itself if it has none."""
    table = facts.table
    for var in hidden:
        factor, rest = total.split_factor(table.serial(table.intern(var)))
        end = _end(var, factor, facts)
        if end is not None:
            total = rest.plus(end.times(factor))
    # Terms in which a hidden variable is part of an atom, such as j // 4, or has no known end.
    for monomial, k in list(total.terms.items()):
        term = Sum({monomial: k})
        if not all(_is_free(term, var, facts) for var in hidden):
            low = facts.bounds.interval_of_sum(term).low
            if low is None:
                return None
            total = total.plus(term, -1).shift(low)
    return total


def _end(var: Var, factor: Sum, facts: Facts) -> Sum | None:
    """Return the end of the range of `var` at which factor * var is least."""
    if not factor.length:
        return None
    sign = facts.bounds.interval_of_sum(factor)
    variable = facts.table.intern(var)
    serial = facts.table.serial(variable)
    values = facts.bounds.interval(variable)
    if sign.is_at_least(0):
        symbolic = facts.lower.get(serial)
        constant = values.low
    elif sign.is_at_most(0):
        symbolic = facts.upper.get(serial)
        constant = values.high
    else:
        return None
    return symbolic if constant is None else number(constant)


def _is_free(total: Sum, var: Var, facts: Facts) -> bool:
    atoms = (atom for monomial in total.terms for atom in monomial)
    return all(free_of(facts.table.expr(atom), var) for atom in atoms)


def _nonnegative_range(
    factor: Sum, rest: Sum, is_exact: bool, facts: Facts
) -> HalfOpenRange | None:
    """Return the range of a variable in which factor * variable + rest >= 0."""
    sign = facts.bounds.interval_of_sum(factor)
    if sign.is_at_least(1):
        # variable >= ceil(-rest / factor) = -floor(rest / factor)
        quotient = _quotient(rest, factor, facts)
        if quotient is None:
            return None
        return HalfOpenRange(Sub(IntImm(0, I64), quotient), None, is_exact)
    if sign.is_at_most(-1):
        # variable <= floor(rest / step), so that the end is floor(rest / step) + 1.
        step = factor.scale(-1)
        end = _quotient(rest.plus(step), step, facts)
        return None if end is None else HalfOpenRange(None, end, is_exact)
    return None


def _quotient(total: Sum, divisor: Sum, facts: Facts) -> Expr | None:
    """Return the floor of the quotient; None if the dividend may wrap."""
    if not facts.bounds.is_exact(total, I64):
        return None
    build = facts.table.build
    return FloorDiv(build(total, I64), build(divisor, I64))
