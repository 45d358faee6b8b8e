"""The interval and the remainder of an expression, from what is known of its variables.

`Bounds` holds what is known and evaluates representatives that are simplified (see `linear`).
Intervals hold the value as the nodes define it, wrapping included. Whether arithmetic may be
reasoned about as if it were that of the integers is decided here, by `is_exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from refcomp.arith.intern import bottom_up
from refcomp.arith.interval import Interval
from refcomp.arith.linear import Key, Monomial, Sum, SumTable, direction, is_summable
from refcomp.arith.modular import Modular
from refcomp.foundation.dtype import I64, DType
from refcomp.ir.constants import as_int
from refcomp.ir.expr import (
    Add,
    BitAnd,
    Broadcast,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IfThenElseExpr,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Select,
    ShiftRight,
    Sub,
    Var,
)
from refcomp.ir.rewrite import children

_T = TypeVar("_T")
_MOST_CHOICES = 8  # deeper ones would be evaluated anew under the facts of each branch
_INDEX_FACTOR = 1 << 32
_INDEX_NODES = (Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max)


@cache
def range_of_dtype(dtype: DType) -> Interval:
    """All values of an integer or bool type."""
    return Interval(dtype.min_value, dtype.max_value)


class Bounds:
    """Intervals of variables (`ranges`, by id), of sums (`known`), remainders (`residues`);
    `indices` are the ids of the variables that index arithmetic is made of."""

    def __init__(
        self,
        table: SumTable,
        ranges: Mapping[int, Interval],
        indices: frozenset[int],
        known: Mapping[Key, Interval],
        residues: Mapping[Key, Modular],
    ) -> None:
        self.table, self.ranges, self.indices = table, ranges, indices
        self.known, self.residues = known, residues
        self._intervals: dict[int, Interval] = {}
        self._moduli: dict[int, Modular] = {}
        self._exact: dict[int, Sum | None] = {}
        self._lets: dict[
            int, Expr
        ] = {}  # by variable, of the lets whose bodies are evaluated
        self._is_made_of_indices: dict[int, bool] = {}

    def interval(self, expr: Expr) -> Interval:
        """The values of a representative; unbounded for anything but integers and bools."""
        return self._evaluated(expr, self._intervals, self._interval)

    def modular(self, expr: Expr) -> Modular:
        """The remainder of a representative."""
        return self._evaluated(expr, self._moduli, self._modular)

    def is_index(self, expr: Expr) -> bool:
        """Whether a representative is made of declared variables and constants only."""
        return self._evaluated(expr, self._is_made_of_indices, self._is_index)

    def interval_of_sum(self, total: Sum) -> Interval:
        """The values of a Sum over the integers."""
        low: int | None = 0
        high: int | None = 0
        for monomial, k in total.terms.items():
            part = self._interval_of_product(monomial)
            least, most = (part.low, part.high) if k > 0 else (part.high, part.low)
            low = None if low is None or least is None else low + k * least
            high = None if high is None or most is None else high + k * most
        result = Interval(low, high)
        if self.known and total.terms:
            key, factor = direction(total)
            if key in self.known:
                result = result.intersect(self.known[key].scale(factor))
        return result.shift(total.const)

    def modular_of_sum(self, total: Sum) -> Modular:
        """The remainder of a Sum over the integers."""
        result = Modular.point(total.const)
        for monomial, k in total.terms.items():
            result = result + self._modular_of_product(monomial).scale(k)
        if self.residues and total.terms:
            key, factor = direction(total)
            if key in self.residues:
                known = self.residues[key].scale(factor).shift(total.const)
                result = known if known.coefficient > result.coefficient > 0 else result
        return result

    def exact_sum(self, expr: Expr) -> Sum | None:
        """The Sum of a scalar integer representative, None where it is not exact."""
        if id(expr) not in self._exact:
            total = self.table.sum_of(expr)
            self._exact[id(expr)] = total if self.is_exact(total, expr.dtype) else None
        return self._exact[id(expr)]

    def is_exact(self, total: Sum, dtype: DType) -> bool:
        """Whether a value of `dtype` that is congruent to `total` modulo 2^bits is `total`.

        So it is when all values of the Sum fit. A side without a bound is taken to fit where
        facts.py says so: in i64, for sums of declared variables with factors below 2^32.
        """
        return self._is_exact_in(self.interval_of_sum(total), total, dtype)

    def _is_exact_in(self, interval: Interval, total: Sum, dtype: DType) -> bool:
        """As `is_exact`, where the values of the Sum are known already."""
        if not interval.lies_in_or_open(range_of_dtype(dtype)):
            return False
        if interval.is_finite:
            return True
        if dtype != I64 or not all(
            abs(k) < _INDEX_FACTOR for k in total.terms.values()
        ):
            return False
        atoms = (atom for monomial in total.terms for atom in monomial)
        return all(self.is_index(self.table.expr(atom)) for atom in atoms)

    def _evaluated(
        self, expr: Expr, memo: dict[int, _T], compute: Callable[[Expr], _T]
    ) -> _T:
        found = memo.get(id(expr))
        if found is None:
            bottom_up(expr, self._parts, memo, compute)
            found = memo[id(expr)]
        return found

    def _parts(self, expr: Expr) -> Iterable[Any]:
        """What the value of `expr` is computed from: the atoms of a sum, else the children."""
        if self.is_too_deep(expr):
            return ()
        if isinstance(expr, Let):
            self._lets[id(expr.var)] = expr.value
        if not self._is_sum(expr):
            return children(expr)
        atoms = (
            atom for monomial in self.table.sum_of(expr).terms for atom in monomial
        )
        return [self.table.expr(atom) for atom in atoms]

    def is_too_deep(self, expr: Expr) -> bool:
        """Whether nothing is said of a choice, as it holds too many others."""
        return (
            isinstance(expr, IfThenElseExpr)
            and self.table.choices(expr) > _MOST_CHOICES
        )

    def _is_sum(self, expr: Expr) -> bool:
        if not isinstance(expr, Add | Sub | Mul) or not is_summable(expr.dtype):
            return False
        return self.table.sum_of(expr).sole_atom() is None

    def _is_index(self, expr: Expr) -> bool:
        if isinstance(expr, Var):
            return id(expr) in self.indices
        if isinstance(expr, Cast):
            return self.is_index(expr.value) and self.interval(expr.value).lies_in(
                range_of_dtype(expr.dtype)
            )
        if isinstance(expr, Select | IfThenElseExpr):
            if self.is_too_deep(expr):
                return False
            return self.is_index(expr.true_value) and self.is_index(expr.false_value)
        if not isinstance(expr, _INDEX_NODES):
            return isinstance(expr, IntImm)
        if self._is_sum(expr) and self.exact_sum(expr) is None:
            return False
        return all(self._is_made_of_indices[id(part)] for part in self._parts(expr))

    # Intervals

    def _interval(self, expr: Expr) -> Interval:
        if isinstance(expr, IntImm):
            return Interval.point(expr.value)
        if not expr.dtype.is_int:
            return Interval(0, 1) if expr.dtype.is_bool else Interval()
        if isinstance(expr, Var) and id(expr) in self.ranges:
            found = self.ranges[id(expr)]
        elif id(expr) in self._lets:
            return self.interval(self._lets[id(expr)])
        elif self._is_sum(expr):
            return self._interval_of_wrapped(self.table.sum_of(expr), expr.dtype)
        else:
            evaluate = _INTERVALS.get(type(expr))
            full = range_of_dtype(expr.dtype)
            found = full if evaluate is None else evaluate(self, expr)
            if not (found.lies_in(full) or self._may_be_open(found, expr)):
                found = full
        if not self.known:
            return found
        known = self.known.get((((self.table.serial(expr),), 1),))
        return found if known is None else found.intersect(known)

    def _may_be_open(self, interval: Interval, expr: Expr) -> bool:
        fits = interval.lies_in_or_open(range_of_dtype(expr.dtype))
        return fits and expr.dtype == I64 and self.is_index(expr)

    def _interval_of_wrapped(self, total: Sum, dtype: DType) -> Interval:
        interval = self.interval_of_sum(total)
        return (
            interval
            if self._is_exact_in(interval, total, dtype)
            else range_of_dtype(dtype)
        )

    def _interval_of_product(self, monomial: Monomial) -> Interval:
        result = self.interval(self.table.expr(monomial[0]))
        for atom in monomial[1:]:
            result = result * self.interval(self.table.expr(atom))
        if len(monomial) > 1 and self.known:
            known = self.known.get(((monomial, 1),))
            result = result if known is None else result.intersect(known)
        return result

    # Remainders

    def _modular(self, expr: Expr) -> Modular:
        if isinstance(expr, IntImm):
            return Modular.point(expr.value)
        if not expr.dtype.is_int:
            return Modular()
        if self._is_sum(expr):
            total = self.table.sum_of(expr)
            found = self.modular_of_sum(total)
            return (
                found
                if self.is_exact(total, expr.dtype)
                else found.wrapped(expr.dtype.bits)
            )
        if self.residues:
            known = self.residues.get((((self.table.serial(expr),), 1),))
            if known is not None:
                return known
        evaluate = _MODULI.get(type(expr))
        return Modular() if evaluate is None else evaluate(self, expr)

    def _modular_of_product(self, monomial: Monomial) -> Modular:
        result = Modular.point(1)
        for atom in monomial:
            result = result * self.modular(self.table.expr(atom))
        return result


def _interval_of_cast(bounds: Bounds, expr: Any) -> Interval:
    source = expr.value.dtype
    if not (source.is_int or source.is_bool):
        return range_of_dtype(expr.dtype)
    # Where it does not fit, the caller takes the whole type.
    return bounds.interval(expr.value)


def _interval_of_choice(bounds: Bounds, expr: Any) -> Interval:
    if bounds.is_too_deep(expr):
        return range_of_dtype(expr.dtype)
    return bounds.interval(expr.true_value).union(bounds.interval(expr.false_value))


def _interval_of_truncated(bounds: Bounds, expr: Any) -> Interval:
    a = bounds.interval(expr.a)
    b = bounds.interval(expr.b)
    if a.is_at_least(0) and isinstance(expr, Mod) and not b.is_at_least(0):
        # The remainder has the sign of `a`, and is no greater.
        return Interval(0, a.high)
    if not (a.is_at_least(0) and b.is_at_least(0)):
        return range_of_dtype(expr.dtype)
    return a.floordiv(b) if isinstance(expr, Div) else a.floormod(b)


def _interval_of_and(bounds: Bounds, expr: Any) -> Interval:
    """Clearing bits of a value that is not negative makes it no greater."""
    sides = [bounds.interval(expr.a), bounds.interval(expr.b)]
    highs = [
        side.high for side in sides if side.is_at_least(0) and side.high is not None
    ]
    return Interval(0, min(highs)) if highs else range_of_dtype(expr.dtype)


def _interval_of_shift(bounds: Bounds, expr: Any) -> Interval:
    amount = bounds.interval(expr.b)
    if not (amount.is_at_least(0) and amount.is_at_most(expr.dtype.bits - 1)):
        return range_of_dtype(expr.dtype)
    assert amount.low is not None and amount.high is not None
    return bounds.interval(expr.a).floordiv(Interval(1 << amount.low, 1 << amount.high))


def _interval_of_ramp(bounds: Bounds, expr: Any) -> Interval:
    steps = bounds.interval(expr.stride) * Interval(0, expr.lanes - 1)
    return bounds.interval(expr.base) + steps


def _interval_of_call(bounds: Bounds, expr: Any) -> Interval:
    if expr.name in ("popcount", "clz"):
        return Interval(0, expr.dtype.bits)
    return range_of_dtype(expr.dtype)


def _product_interval(bounds: Bounds, expr: Any) -> Interval:
    return bounds.interval(expr.a) * bounds.interval(expr.b)


_INTERVALS: dict[type[Expr], Callable[[Bounds, Any], Interval]] = {
    Add: lambda bounds, e: bounds.interval(e.a) + bounds.interval(e.b),
    Sub: lambda bounds, e: bounds.interval(e.a) + bounds.interval(e.b).scale(-1),
    Mul: _product_interval,
    FloorDiv: lambda bounds, e: bounds.interval(e.a).floordiv(bounds.interval(e.b)),
    FloorMod: lambda bounds, e: bounds.interval(e.a).floormod(bounds.interval(e.b)),
    Div: _interval_of_truncated,
    Mod: _interval_of_truncated,
    Min: lambda bounds, e: bounds.interval(e.a).minimum(bounds.interval(e.b)),
    Max: lambda bounds, e: bounds.interval(e.a).maximum(bounds.interval(e.b)),
    BitAnd: _interval_of_and,
    ShiftRight: _interval_of_shift,
    Cast: _interval_of_cast,
    Select: _interval_of_choice,
    IfThenElseExpr: _interval_of_choice,
    Broadcast: lambda bounds, e: bounds.interval(e.value),
    Ramp: _interval_of_ramp,
    Let: lambda bounds, e: bounds.interval(e.body),
    Call: _interval_of_call,
}


def _modular_of_choice(bounds: Bounds, expr: Any) -> Modular:
    if bounds.is_too_deep(expr):
        return Modular()
    return bounds.modular(expr.true_value).union(bounds.modular(expr.false_value))


def _modular_of_cast(bounds: Bounds, expr: Any) -> Modular:
    source = expr.value.dtype
    if not source.is_int:
        return Modular()
    found = bounds.modular(expr.value)
    fits = bounds.interval(expr.value).lies_in(range_of_dtype(expr.dtype))
    return found if fits else found.wrapped(expr.dtype.bits)


def _modular_of_division(bounds: Bounds, expr: Any) -> Modular:
    divisor = as_int(expr.b)
    if divisor is None or divisor < 0:
        return Modular()
    found = bounds.modular(expr.a)
    return (
        found.floordiv(divisor)
        if isinstance(expr, FloorDiv)
        else found.floormod(divisor)
    )


def _modular_of_either(bounds: Bounds, expr: Any) -> Modular:
    return bounds.modular(expr.a).union(bounds.modular(expr.b))


_MODULI: dict[type[Expr], Callable[[Bounds, Any], Modular]] = {
    Mul: lambda bounds, e: (bounds.modular(e.a) * bounds.modular(e.b)).wrapped(
        e.dtype.bits
    ),
    FloorDiv: _modular_of_division,
    FloorMod: _modular_of_division,
    Min: _modular_of_either,
    Max: _modular_of_either,
    Cast: _modular_of_cast,
    Select: _modular_of_choice,
    IfThenElseExpr: _modular_of_choice,
    Broadcast: lambda bounds, e: bounds.modular(e.value),
    Let: lambda bounds, e: bounds.modular(e.body),
}
