"""Proofs that a Sum is never negative, to which all proofs about integers are reduced.

An atom with a symbolic bound is replaced by that bound, in the direction that makes the Sum no
greater, innermost loops first. The interval of the result decides:

    j in [0, 4), i in [0, n // 4):   n - 1 - (i * 4 + j) >= n - 4 - i * 4 >= n - n // 4 * 4 >= 0

Assumed inequalities are subtracted if they share a term with the Sum. A budget of steps limits the
search, so that False means "not proved". Reasoning is over the unbounded integers: the atoms of
Sums stand for their values, and each bound that is used here is checked to be exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from refcomp.arith.bounds import Bounds
from refcomp.arith.intern import LOOP_RANK
from refcomp.arith.linear import Sum, SumTable, number
from refcomp.ir.expr import (
    Expr,
    FloorDiv,
    FloorMod,
    IfThenElseExpr,
    IntImm,
    Max,
    Min,
    Select,
)

# Nested proof steps that subtract an assumption or distinguish cases.
_MAX_DEPTH = 2
_MAX_TERMS = 24  # longer sums are decided by their interval alone


class Known(Protocol):
    """The attributes of `Facts` that a search reads."""

    @property
    def table(self) -> SumTable: ...
    @property
    def bounds(self) -> Bounds: ...
    @property
    def lower(self) -> dict[int, Sum]: ...
    @property
    def upper(self) -> dict[int, Sum]: ...
    @property
    def assumed(self) -> tuple[Sum, ...]: ...


Make = Callable[[type[Expr], Expr, Expr], Expr]


class SignSearch:
    """One search for a proof.

    Args:
        known: the facts to use.
        make: builds a simplified binary node of a class.
        budget: maximum number of steps, each of which examines or transforms a Sum.
    """

    def __init__(self, known: Known, make: Make, budget: int) -> None:
        self._known = known
        self._table = known.table
        self._bounds = known.bounds
        self._make = make
        self._budget = budget

    def is_nonnegative(self, total: Sum, depth: int = 0) -> bool:
        """Return True if `total` is proved to be >= 0."""
        interval = self._bounds.interval_of_sum(total)
        if interval.is_at_least(0):
            return True
        return not interval.is_at_most(-1) and self.is_derived(total, depth)

    def is_derived(self, total: Sum, depth: int = 0) -> bool:
        """Return True if `total`, whose interval does not decide, is proved to be >= 0."""
        if len(total.terms) > _MAX_TERMS or self._budget <= 0:
            return False
        self._budget -= 1
        return self._by_bounds(total, depth) or self._by_assumptions(total, depth)

    def _by_bounds(self, total: Sum, depth: int) -> bool:
        """Return True if `total` is proved >= 0 with one atom replaced by one of its bounds."""
        atoms = {atom for monomial in total.terms for atom in monomial}
        bounded = [atom for atom in atoms if self._is_bounded(total, atom)]
        pivot = max(bounded, key=self._replacement_order, default=None)
        if pivot is None:
            return False
        factor, rest = total.split_factor(pivot)
        sign = self._bounds.interval_of_sum(factor)
        is_low = sign.is_at_least(0)  # then a lower bound of the pivot is needed
        if not (is_low or sign.is_at_most(0)):
            return False
        expr = self._table.expr(pivot)
        if isinstance(expr, Min | Max | Select | IfThenElseExpr):
            if depth >= _MAX_DEPTH:
                return False
            return self._by_cases(expr, factor, rest, is_low=is_low, depth=depth + 1)
        bounds = self._bounds_of(pivot, is_low)
        candidates = [rest.plus(factor.times(bound)) for bound in bounds]
        if isinstance(expr, FloorDiv) and isinstance(expr.b, IntImm):
            divided = self._bounds.exact_sum(expr.a)
            divisor = expr.b.value
            if divided is not None and divisor > 0:
                # For pivot = x // c and c > 0, c * total = c * rest + factor * (c * (x // c)) has
                # the sign of total. And x - c + 1 <= c * (x // c) <= x needs no division.
                bound = divided.shift(1 - divisor) if is_low else divided
                candidates.append(rest.scale(divisor).plus(factor.times(bound)))
        return any(self.is_nonnegative(candidate, depth) for candidate in candidates)

    def _is_bounded(self, total: Sum, atom: int) -> bool:
        # A replacement is monotone only if the Sum is linear in the atom, so squares are refused.
        for monomial in total.terms:
            if len(monomial) > 1 and monomial.count(atom) > 1:
                return False
        expr = self._table.expr(atom)
        if isinstance(expr, FloorDiv | FloorMod | Min | Max | Select | IfThenElseExpr):
            return True
        return atom in self._known.lower or atom in self._known.upper

    def _replacement_order(self, atom: int) -> tuple[int, int, bool, int]:
        """Return a sort key: the atom with the greatest key is replaced first.

        Atoms of an inner loop come before atoms of outer loops, since the bounds of an inner loop
        may contain variables of outer loops. In one loop, compound atoms come before the loop
        variable.
        """
        expr = self._table.expr(atom)
        kind, order = self._table.span(expr)[1]
        is_compound = atom not in self._known.lower
        if kind == LOOP_RANK:
            return True, order, is_compound, atom
        return False, 0, is_compound, atom

    def _by_cases(
        self,
        expr: Min | Max | Select | IfThenElseExpr,
        factor: Sum,
        rest: Sum,
        *,
        is_low: bool,
        depth: int,
    ) -> bool:
        """Return True if factor * expr + rest is proved >= 0 by the operands of `expr`.

        `is_low` means factor >= 0, so that a lower bound of `expr` is needed. Then both operands
        of min(a, b) must be proved, since either may be the value. Otherwise one proof is enough,
        since min(a, b) is at most a and at most b. For max, the two rules are exchanged. For a
        choice, both branches must always be proved.
        """
        if isinstance(expr, Min | Max):
            sides = (expr.a, expr.b)
            needs_both = isinstance(expr, Min) == is_low
        else:
            sides = (expr.true_value, expr.false_value)
            needs_both = True
        cases: list[Sum] = []
        for side in sides:
            total = self._bounds.exact_sum(side)
            if total is not None:
                cases.append(rest.plus(factor.times(total)))
        if not needs_both:
            return any(self.is_nonnegative(case, depth) for case in cases)
        if len(cases) < 2:
            return False
        return all(self.is_nonnegative(case, depth) for case in cases)

    def _bounds_of(self, atom: int, is_low: bool) -> list[Sum]:
        """Return symbolic bounds of an atom from below or above, the strongest first."""
        known = self._known.lower if is_low else self._known.upper
        if atom in known:
            return [known[atom]]
        expr = self._table.expr(atom)
        if isinstance(expr, FloorDiv):
            return self._bounds_of_quotient(expr, is_low)
        if not isinstance(expr, FloorMod):
            return []
        divisor = self._bounds.exact_sum(expr.b)
        if divisor is None or not self.is_nonnegative(divisor.shift(-1)):
            return []
        if is_low:
            return [number(0)]
        bounds = [divisor.shift(-1)]
        divided = self._bounds.exact_sum(expr.a)
        if divided is not None and self._bounds.interval(expr.a).is_at_least(0):
            bounds.append(divided)
        return bounds

    def _bounds_of_quotient(self, expr: FloorDiv, is_low: bool) -> list[Sum]:
        # x // m is monotone in x if m > 0, so that a bound of x gives a bound of the quotient.
        divided = self._bounds.exact_sum(expr.a)
        divisor = self._bounds.exact_sum(expr.b)
        if divided is None or divisor is None:
            return []
        bound = self._extreme(divided, is_low)
        if bound is None or not self.is_nonnegative(divisor.shift(-1)):
            return []
        if not self._bounds.is_exact(bound, expr.dtype):
            return []
        dividend = self._table.build(bound, expr.dtype)
        quotient = self._make(FloorDiv, dividend, expr.b)
        return [self._table.sum_of(quotient)]

    def _extreme(self, total: Sum, is_low: bool) -> Sum | None:
        """Return a bound of `total`, in which each loop variable is replaced by its own bound.

        Return None if `total` has no loop variables, or if a loop variable has no bound.
        """
        changed = False
        while self._budget > 0:
            atoms = {atom for monomial in total.terms for atom in monomial}
            loops = [atom for atom in atoms if atom in self._known.upper]
            pivot = max(loops, key=self._replacement_order, default=None)
            if pivot is None or any(m.count(pivot) > 1 for m in total.terms):
                break
            self._budget -= 1
            factor, rest = total.split_factor(pivot)
            sign = self._bounds.interval_of_sum(factor)
            is_falling = sign.is_at_most(0)
            if not (is_falling or sign.is_at_least(0)):
                return None
            ends = self._known.upper if is_falling == is_low else self._known.lower
            if pivot not in ends:
                return None
            total = rest.plus(factor.times(ends[pivot]))
            changed = True
        return total if changed else None

    def _by_assumptions(self, total: Sum, depth: int) -> bool:
        # total >= 0 follows from assumed >= 0 and total - k * assumed >= 0 for k > 0.
        if depth >= _MAX_DEPTH:
            return False
        for assumed in self._known.assumed:
            for monomial, k in assumed.terms.items():
                coefficient = total.terms.get(monomial, 0)
                # The multiple of `assumed` that removes this term must be a positive integer.
                if coefficient * k > 0 and coefficient % k == 0:
                    rest = total.plus(assumed, -(coefficient // k))
                    if self.is_nonnegative(rest, depth + 1):
                        return True
                    break
        return False
