"""Where in one variable a comparison surely holds: the cuts that divide a loop by its guards.

Before:  i * 32 + j < n      with j in [0, 32)
After:   holds for every j where i < n // 32

What the variable is multiplied by must be known not to change its sign, and may be symbolic. Other
variables that the answer may not speak of (those of inner loops) are replaced by the end of their
range at which the condition is hardest to meet. Nothing is said (None) of conditions that read
memory, that are not linear in the variable, or whose sides may wrap (see `refcomp.arith.facts`).
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
    """All integers from `low` to before `high`; None: no end on that side. `is_exact`: the
    condition holds for no other value of the variable."""

    low: Expr | None
    high: Expr | None
    is_exact: bool


def solve(
    condition: Expr, var: Var, hidden: Sequence[Var], facts: Facts
) -> HalfOpenRange | None:
    """Values of the i64 `var` for which `condition` holds whatever the `hidden` variables are.

    `facts` know the ranges of all of them, and hold where the condition is evaluated; `hidden` are
    innermost first, so that the range of each may be given in terms of those behind it.
    """
    difference = _difference(condition, facts)
    if difference is None or var.dtype != I64:
        return None
    least = _least(difference, hidden, facts)
    if least is None:
        return None
    table = facts.table
    factor, rest = least.split_factor(table.serial(table.intern(var)))
    if not (_is_free(factor, var, facts) and _is_free(rest, var, facts)):
        return None
    return _range(factor, rest, least is difference, facts)


def _difference(condition: Expr, facts: Facts) -> Sum | None:
    """What is at least 0 just where the condition holds."""
    known = facts.simplifier.representative(condition)
    if (
        not isinstance(known, LT | LE)
        or known.a.dtype != I64
        or facts.table.reads_memory(known)
    ):
        return None
    a = facts.bounds.exact_sum(known.a)
    b = facts.bounds.exact_sum(known.b)
    if a is None or b is None:
        return None
    return b.plus(a, -1).shift(-1 if isinstance(known, LT) else 0)


def _least(total: Sum, hidden: Sequence[Var], facts: Facts) -> Sum | None:
    """A lower bound of `total` that speaks of no hidden variable; `total` where it does not."""
    for var in hidden:
        factor, rest = total.split_factor(facts.table.serial(facts.table.intern(var)))
        end = _end(var, factor, facts)
        if end is not None:
            total = rest.plus(end.times(factor))
    return _without(total, hidden, facts)


def _end(var: Var, factor: Sum, facts: Facts) -> Sum | None:
    """The end of the variable's range at which its product with `factor` is least."""
    if factor.is_const and factor.const == 0:
        return None
    sign = facts.bounds.interval_of_sum(factor)
    serial = facts.table.serial(facts.table.intern(var))
    values = facts.bounds.interval(facts.table.expr(serial))
    if sign.is_at_least(0):
        symbolic = facts.lower.get(serial)
        constant = values.low
    elif sign.is_at_most(0):
        symbolic = facts.upper.get(serial)
        constant = values.high
    else:
        return None
    if constant is not None:
        return number(constant)
    return symbolic


def _without(total: Sum, hidden: Sequence[Var], facts: Facts) -> Sum | None:
    """`total` with the least value of each term that still speaks of a hidden variable."""
    for monomial, k in list(total.terms.items()):
        term = Sum({monomial: k})
        if not all(_is_free(term, var, facts) for var in hidden):
            low = facts.bounds.interval_of_sum(term).low
            if low is None:
                return None
            total = total.plus(term, -1).shift(low)
    return total


def _is_free(total: Sum, var: Var, facts: Facts) -> bool:
    atoms = (atom for monomial in total.terms for atom in monomial)
    return all(free_of(facts.table.expr(atom), var) for atom in atoms)


def _range(
    factor: Sum, rest: Sum, is_exact: bool, facts: Facts
) -> HalfOpenRange | None:
    """Where factor * variable + rest is at least 0."""
    sign = facts.bounds.interval_of_sum(factor)
    if sign.is_at_least(1):
        least = _quotient(rest, factor, facts)
        return (
            None
            if least is None
            else HalfOpenRange(Sub(IntImm(0, I64), least), None, is_exact)
        )
    if sign.is_at_most(-1):
        # One past the last: floor(rest / step) + 1.
        step = factor.scale(-1)
        end = _quotient(rest.plus(step), step, facts)
        return None if end is None else HalfOpenRange(None, end, is_exact)
    return None


def _quotient(total: Sum, divisor: Sum, facts: Facts) -> Expr | None:
    """The floor of the quotient, None where the dividend may wrap."""
    if not facts.bounds.is_exact(total, I64):
        return None
    return FloorDiv(facts.table.build(total, I64), facts.table.build(divisor, I64))
