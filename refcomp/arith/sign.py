"""Whether a Sum is never negative: the one question behind every proof about integers.

An atom with a symbolic bound is replaced by that bound, in the direction that makes the Sum no
greater, innermost loops first; what is left is decided by its interval:

    j in [0, 4), i in [0, n // 4):   n - 1 - (i * 4 + j) >= n - 4 - i * 4 >= n - n // 4 * 4 >= 0

Assumed conditions are subtracted where they share a term. The search is bounded by a budget, so
that an answer of False means "not proved". Reasoning is over the integers: callers pass Sums
whose atoms stand for their values, and every bound used here is checked to be exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

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

_MOST_DEPTH = 2  # assumptions subtracted and cases distinguished, one inside another
_MOST_TERMS = 24  # longer sums are decided by their interval alone


class Known(Protocol):
    """What a search reads of `Facts`."""

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


Make = Callable[[type[Any], Expr, Expr], Expr]


class SignSearch:
    """One search of at most `budget` steps. `make` builds a simplified binary node."""

    def __init__(self, known: Known, make: Make, budget: int) -> None:
        self._known, self._make, self._budget = known, make, budget
        self._table, self._bounds = known.table, known.bounds

    def is_nonnegative(self, total: Sum, depth: int = 0) -> bool:
        """Whether `total` is proved >= 0."""
        interval = self._bounds.interval_of_sum(total)
        if interval.is_at_least(0):
            return True
        if (
            interval.is_at_most(-1)
            or len(total.terms) > _MOST_TERMS
            or self._budget <= 0
        ):
            return False
        self._budget -= 1
        return self._by_bounds(total, depth) or self._by_assumptions(total, depth)

    def _by_bounds(self, total: Sum, depth: int) -> bool:
        pivot = self._pivot(total)
        if pivot is None:
            return False
        factor, rest = total.split_factor(pivot)
        sign = self._bounds.interval_of_sum(factor)
        if not (sign.is_at_least(0) or sign.is_at_most(0)):
            return False
        is_low = sign.is_at_least(0)
        expr = self._table.expr(pivot)
        if isinstance(expr, Min | Max | Select | IfThenElseExpr):
            return self._by_cases(expr, factor, rest, is_low, depth)
        scaled = self._scaled(expr, factor, rest, is_low)
        bounds = self._bounds_of(pivot, is_low)
        candidates = [rest.plus(factor.times(bound)) for bound in bounds]
        return any(self.is_nonnegative(c, depth) for c in [*candidates, *scaled])

    def _pivot(self, total: Sum) -> int | None:
        """The atom to replace next: of the innermost loop, and compound before plain."""
        atoms = {atom for monomial in total.terms for atom in monomial}
        fitting = [atom for atom in atoms if self._is_bounded(total, atom)]
        return max(fitting, key=self._depth, default=None)

    def _is_bounded(self, total: Sum, atom: int) -> bool:
        if any(monomial.count(atom) > 1 for monomial in total.terms):
            return False
        expr = self._table.expr(atom)
        if isinstance(expr, FloorDiv | FloorMod | Min | Max | Select | IfThenElseExpr):
            return True
        return atom in self._known.lower or atom in self._known.upper

    def _depth(self, atom: int) -> tuple[int, int, bool, int]:
        expr = self._table.expr(atom)
        kind, order = self._table.span(expr)[1]
        is_loop = kind == LOOP_RANK
        return is_loop, order if is_loop else 0, atom not in self._known.lower, atom

    def _by_cases(
        self, expr: Any, factor: Sum, rest: Sum, is_low: bool, depth: int
    ) -> bool:
        """min(a, b) from above is either operand, from below both must do; max mirrored."""
        if isinstance(expr, Min | Max):
            a, b = expr.a, expr.b
            needs_both = isinstance(expr, Min) == is_low
        else:
            a, b, needs_both = expr.true_value, expr.false_value, True
        if depth >= _MOST_DEPTH:
            return False
        combine = all if needs_both else any
        sums = (self._bounds.exact_sum(side) for side in (a, b))
        cases = [rest.plus(factor.times(total)) for total in sums if total is not None]
        if needs_both and len(cases) < 2:
            return False
        return combine(self.is_nonnegative(case, depth + 1) for case in cases)

    def _scaled(
        self, expr: Expr, factor: Sum, rest: Sum, is_low: bool
    ) -> Iterator[Sum]:
        """c * total >= c * rest + factor * (the bound of c * (x // c)), without a division."""
        if (
            not isinstance(expr, FloorDiv)
            or not isinstance(expr.b, IntImm)
            or expr.b.value <= 0
        ):
            return
        divided = self._bounds.exact_sum(expr.a)
        divisor = expr.b.value
        if divided is not None:
            bound = divided.shift(1 - divisor) if is_low else divided
            yield rest.scale(divisor).plus(factor.times(bound))

    def _bounds_of(self, atom: int, is_low: bool) -> list[Sum]:
        """Symbolic bounds of an atom from below or above, the strongest first."""
        expr = self._table.expr(atom)
        found = (self._known.lower if is_low else self._known.upper).get(atom)
        if found is not None:
            return [found]
        if isinstance(expr, FloorMod):
            return self._bounds_of_remainder(expr, is_low)
        if isinstance(expr, FloorDiv):
            return self._bounds_of_quotient(expr, is_low)
        return []

    def _bounds_of_remainder(self, expr: FloorMod, is_low: bool) -> list[Sum]:
        divisor = self._bounds.exact_sum(expr.b)
        if divisor is None or not self.is_nonnegative(divisor.shift(-1)):
            return []
        if is_low:
            return [number(0)]
        divided = self._bounds.exact_sum(expr.a)
        is_plain = divided is not None and self._bounds.interval(expr.a).is_at_least(0)
        return (
            [divisor.shift(-1), divided]
            if is_plain and divided
            else [divisor.shift(-1)]
        )

    def _bounds_of_quotient(self, expr: FloorDiv, is_low: bool) -> list[Sum]:
        """x // m is monotone in x where m > 0."""
        divided = self._bounds.exact_sum(expr.a)
        divisor = self._bounds.exact_sum(expr.b)
        if divided is None or divisor is None:
            return []
        bound = self._extreme(divided, is_low)
        if bound is None or not self.is_nonnegative(divisor.shift(-1)):
            return []
        if not self._bounds.is_exact(bound, expr.dtype):
            return []
        quotient = self._make(FloorDiv, self._table.build(bound, expr.dtype), expr.b)
        return [self._table.sum_of(quotient)]

    def _extreme(self, total: Sum, is_low: bool) -> Sum | None:
        """`total` with loop variables replaced by their bounds; None when there are none."""
        changed = False
        while self._budget > 0:
            atoms = {atom for monomial in total.terms for atom in monomial}
            ends = self._known.lower if is_low else self._known.upper
            loops = [atom for atom in atoms if atom in self._known.upper]
            pivot = max(loops, key=self._depth, default=None)
            if pivot is None or any(m.count(pivot) > 1 for m in total.terms):
                break
            self._budget -= 1
            factor, rest = total.split_factor(pivot)
            sign = self._bounds.interval_of_sum(factor)
            if sign.is_at_most(0):
                ends = self._known.upper if is_low else self._known.lower
            elif not sign.is_at_least(0):
                return None
            if pivot not in ends:
                return None
            total = rest.plus(factor.times(ends[pivot]))
            changed = True
        return total if changed else None

    def _by_assumptions(self, total: Sum, depth: int) -> bool:
        """total >= 0 follows from assumed >= 0 and total - k * assumed >= 0, for k > 0."""
        if depth >= _MOST_DEPTH:
            return False
        for assumed in self._known.assumed:
            for monomial, k in assumed.terms.items():
                ours = total.terms.get(monomial, 0)
                if ours * k > 0 and ours % k == 0:
                    rest = total.plus(assumed, -(ours // k))
                    if self.is_nonnegative(rest, depth + 1):
                        return True
                    break
        return False
