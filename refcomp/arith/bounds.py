"""Intervals and congruences of expressions, from the facts about their variables.

`Bounds` evaluates simplified representatives (see `linear`). An interval holds the value as the
nodes define it, wrapping included. `is_exact` decides whether arithmetic may be reasoned about as
if it were over the unbounded integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from refcomp.arith.intern import bottom_up
from refcomp.arith.interval import Interval
from refcomp.arith.linear import Key, Sum, SumTable, direction, is_summable
from refcomp.arith.modular import Modular
from refcomp.foundation.dtype import I64, DType
from refcomp.ir.constants import as_int
from refcomp.ir.expr import (
    Add,
    BinaryExpr,
    BitAnd,
    BitOr,
    BitXor,
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
# More deeply nested choices get the range of their type. The simplifier evaluates each branch under
# separate facts, so the time would be exponential in the depth.
_MAX_CHOICES = 8
# Indices are multiplied by smaller constants only: the rule on overflow in facts.py.
_INDEX_FACTOR = 1 << 32
_INDEX_NODES = (Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max)


@cache
def range_of_dtype(dtype: DType) -> Interval:
    """Return all values of an integer or bool type."""
    return Interval(dtype.min_value, dtype.max_value)


class Bounds:
    """The intervals and congruences of all expressions under one set of facts."""

    def __init__(
        self,
        table: SumTable,
        ranges: Mapping[int, Interval],
        indices: frozenset[int],
        known: Mapping[Key, Interval],
        residues: Mapping[Key, Modular],
    ) -> None:
        self.table = table
        self.ranges = ranges  # id of a variable -> its values
        self.indices = indices  # ids of the variables that indices are made of
        self.known = known  # direction of a Sum (see `direction`) -> its values
        self.residues = residues  # direction of a Sum -> a congruence that it satisfies
        # Memos by the id of a representative.
        self._intervals: dict[int, Interval] = {}
        self._moduli: dict[int, Modular] = {}
        self._exact: dict[int, Sum | None] = {}
        self._is_made_of_indices: dict[int, bool] = {}
        # id of a variable -> its value, for each let whose body is evaluated
        self._lets: dict[int, Expr] = {}

    def interval(self, expr: Expr) -> Interval:
        """Return the values of a representative; unbounded unless it is an integer or a bool."""
        found = self._intervals.get(id(expr))
        if found is not None:
            return found
        if isinstance(expr, Var | IntImm):
            found = self._intervals[id(expr)] = self._interval(expr)
            return found
        return self._evaluated(expr, self._intervals, self._interval)

    def modular(self, expr: Expr) -> Modular:
        """Return a congruence that a representative satisfies."""
        return self._evaluated(expr, self._moduli, self._modular)

    def is_index(self, expr: Expr) -> bool:
        """Return True if a representative is made of declared variables and constants only."""
        return self._evaluated(expr, self._is_made_of_indices, self._is_index)

    def interval_of_sum(self, total: Sum) -> Interval:
        """Return the values of a Sum over the unbounded integers."""
        if not total.terms:
            return Interval.point(total.const)
        low: int | None = total.const
        high: int | None = total.const
        for monomial, k in total.terms.items():
            product = self.interval(self.table.expr(monomial[0]))
            if len(monomial) > 1:
                for atom in monomial[1:]:
                    product = product * self.interval(self.table.expr(atom))
                known = self.known.get(((monomial, 1),))
                if known is not None:
                    product = product.intersect(known)
            # The interval of the term k * product. A negative factor exchanges the ends.
            at_low, at_high = product.low, product.high
            if k < 0:
                at_low, at_high = at_high, at_low
            low = None if low is None or at_low is None else low + k * at_low
            high = None if high is None or at_high is None else high + k * at_high
        result = Interval(low, high)
        if self.known:
            key, factor = direction(total)
            known = self.known.get(key)
            if known is not None:
                result = result.intersect(known.scale(factor).shift(total.const))
        return result

    def modular_of_sum(self, total: Sum) -> Modular:
        """Return a congruence that a Sum over the unbounded integers satisfies."""
        result = Modular.point(total.const)
        for monomial, k in total.terms.items():
            term = Modular.point(k)
            for atom in monomial:
                term = term * self.modular(self.table.expr(atom))
            result = result + term
        if self.residues and total.terms:
            key, factor = direction(total)
            if key in self.residues:
                known = self.residues[key].scale(factor).shift(total.const)
                # The greater modulus is the stronger congruence. Modulus 0 is a single value, which
                # is the strongest.
                if known.coefficient > result.coefficient > 0:
                    result = known
        return result

    def exact_sum(self, expr: Expr) -> Sum | None:
        """Return the Sum of a scalar integer representative; None if it is not exact."""
        if id(expr) not in self._exact:
            total = self.table.sum_of(expr)
            self._exact[id(expr)] = total if self.is_exact(total, expr.dtype) else None
        return self._exact[id(expr)]

    def is_exact(self, total: Sum, dtype: DType) -> bool:
        """Return True if a value of `dtype` that is congruent to `total` modulo 2^bits equals it.

        This is so if all values of the Sum fit in `dtype`. A side without a bound is assumed to
        fit by the rule on overflow in facts.py.
        """
        if total.is_const:
            return range_of_dtype(dtype).contains(total.const)
        return self._is_exact_in(self.interval_of_sum(total), total, dtype)

    def _is_exact_in(self, interval: Interval, total: Sum, dtype: DType) -> bool:
        """Return `is_exact` of a Sum whose values are `interval`."""
        if not interval.lies_in_or_open(range_of_dtype(dtype)):
            return False
        if interval.is_finite:
            return True
        if dtype != I64:
            return False
        if not all(abs(k) < _INDEX_FACTOR for k in total.terms.values()):
            return False
        atoms = (atom for monomial in total.terms for atom in monomial)
        return all(self.is_index(self.table.expr(atom)) for atom in atoms)

    def _evaluated(
        self, expr: Expr, memo: dict[int, _T], compute: Callable[[Expr], _T]
    ) -> _T:
        if id(expr) not in memo:
            bottom_up(expr, self._parts, memo, compute)
        return memo[id(expr)]

    def _parts(self, expr: Expr) -> Iterable[Expr]:
        """Return the expressions from whose values the value of `expr` is computed.

        These are the atoms of a sum, and the children of any other node.
        """
        if isinstance(expr, Var | IntImm) or self.is_too_deep(expr):
            return ()
        if isinstance(expr, Let):
            self._lets[id(expr.var)] = expr.value
        if not self._is_sum(expr):
            return children(expr)
        terms = self.table.sum_of(expr).terms
        return [self.table.expr(atom) for monomial in terms for atom in monomial]

    def is_too_deep(self, expr: Expr) -> bool:
        """Return True for a choice with so many nested choices that it is not evaluated."""
        if not isinstance(expr, IfThenElseExpr):
            return False
        return self.table.choices(expr) > _MAX_CHOICES

    def _is_sum(self, expr: Expr) -> bool:
        if not isinstance(expr, Add | Sub | Mul) or not is_summable(expr.dtype):
            return False
        return self.table.sum_of(expr).sole_atom() is None

    def _is_index(self, expr: Expr) -> bool:
        if isinstance(expr, Var):
            return id(expr) in self.indices
        if isinstance(expr, Cast):
            if not self.is_index(expr.value):
                return False
            return self.interval(expr.value).lies_in(range_of_dtype(expr.dtype))
        if isinstance(expr, Select | IfThenElseExpr):
            if self.is_too_deep(expr):
                return False
            return self.is_index(expr.true_value) and self.is_index(expr.false_value)
        if not isinstance(expr, _INDEX_NODES):
            return isinstance(expr, IntImm)
        if self._is_sum(expr) and self.exact_sum(expr) is None:
            return False
        return all(self._is_made_of_indices[id(part)] for part in self._parts(expr))

    def _interval(self, expr: Expr) -> Interval:
        if isinstance(expr, IntImm):
            return Interval.point(expr.value)
        if not expr.dtype.is_int:
            return Interval(0, 1) if expr.dtype.is_bool else Interval()
        full = range_of_dtype(expr.dtype)
        if isinstance(expr, Var) and id(expr) in self.ranges:
            found = self.ranges[id(expr)]
        elif id(expr) in self._lets:
            return self.interval(self._lets[id(expr)])
        elif self._is_sum(expr):
            total = self.table.sum_of(expr)
            found = self.interval_of_sum(total)
            return found if self._is_exact_in(found, total, expr.dtype) else full
        else:
            found = self._interval_over_integers(expr)
            if not found.lies_in(full):
                # The operation may wrap, unless the rule on overflow excludes that.
                may_be_open = expr.dtype == I64 and found.lies_in_or_open(full)
                if not (may_be_open and self.is_index(expr)):
                    found = full
        if not self.known:
            return found
        known = self.known.get(self._key(expr))
        return found if known is None else found.intersect(known)

    def _key(self, expr: Expr) -> Key:
        """Return the direction of the Sum whose only term is `expr`."""
        monomial = (self.table.serial(expr),)
        return ((monomial, 1),)

    def _interval_over_integers(self, expr: Expr) -> Interval:
        combine = _COMBINATIONS.get(type(expr))
        if combine is not None:
            assert isinstance(expr, BinaryExpr)
            return combine(self.interval(expr.a), self.interval(expr.b))
        evaluate = _INTERVALS.get(type(expr))
        if evaluate is None:
            return range_of_dtype(expr.dtype)
        return evaluate(self, expr)

    def _modular(self, expr: Expr) -> Modular:
        if isinstance(expr, IntImm):
            return Modular.point(expr.value)
        if not expr.dtype.is_int:
            return Modular()
        if self._is_sum(expr):
            total = self.table.sum_of(expr)
            found = self.modular_of_sum(total)
            if self.is_exact(total, expr.dtype):
                return found
            return found.wrapped(expr.dtype.bits)
        if self.residues:
            known = self.residues.get(self._key(expr))
            if known is not None:
                return known
        evaluate = _MODULI.get(type(expr))
        return Modular() if evaluate is None else evaluate(self, expr)


# The functions below return the interval of a node over the unbounded integers, from those of its
# operands. `Bounds._interval` replaces a result that may wrap by the range of the type.


def _interval_of_cast(bounds: Bounds, expr: Cast) -> Interval:
    source = expr.value.dtype
    if not (source.is_int or source.is_bool):
        return range_of_dtype(expr.dtype)
    return bounds.interval(expr.value)


def _interval_of_choice(bounds: Bounds, expr: Select | IfThenElseExpr) -> Interval:
    if bounds.is_too_deep(expr):
        return range_of_dtype(expr.dtype)
    return bounds.interval(expr.true_value).union(bounds.interval(expr.false_value))


def _interval_of_truncated(bounds: Bounds, expr: Div | Mod) -> Interval:
    a = bounds.interval(expr.a)
    b = bounds.interval(expr.b)
    if a.is_at_least(0) and isinstance(expr, Mod) and not b.is_at_least(0):
        # The remainder has the sign of `a`, and is at most `a`.
        return Interval(0, a.high)
    if not (a.is_at_least(0) and b.is_at_least(0)):
        return range_of_dtype(expr.dtype)
    return a.floordiv(b) if isinstance(expr, Div) else a.floormod(b)


def _interval_of_and(bounds: Bounds, expr: BitAnd) -> Interval:
    # Clearing bits of a value >= 0 makes it no greater, whatever the other operand is.
    highs: list[int] = []
    for side in (bounds.interval(expr.a), bounds.interval(expr.b)):
        if side.is_at_least(0) and side.high is not None:
            highs.append(side.high)
    return Interval(0, min(highs)) if highs else range_of_dtype(expr.dtype)


def _interval_of_bits(bounds: Bounds, expr: BitOr | BitXor) -> Interval:
    a = bounds.interval(expr.a)
    b = bounds.interval(expr.b)
    full = range_of_dtype(expr.dtype)
    if not (a.is_at_least(0) and b.is_at_least(0)):
        return full
    if a.high is None or b.high is None:
        return Interval(0, full.high)
    # The result has no bit above the highest one of both operands.
    return Interval(0, (1 << max(a.high, b.high).bit_length()) - 1)


def _interval_of_shift(bounds: Bounds, expr: ShiftRight) -> Interval:
    amount = bounds.interval(expr.b)
    if not amount.lies_in(Interval(0, expr.dtype.bits - 1)):
        return range_of_dtype(expr.dtype)
    assert amount.low is not None and amount.high is not None
    # An arithmetic shift rounds down, as floor division by the power of two does.
    divisors = Interval(1 << amount.low, 1 << amount.high)
    found = bounds.interval(expr.a).floordiv(divisors)
    return found.intersect(
        range_of_dtype(expr.dtype)
    )  # a shift to the right never wraps


def _interval_of_ramp(bounds: Bounds, expr: Ramp) -> Interval:
    steps = bounds.interval(expr.stride) * Interval(0, expr.lanes - 1)
    return bounds.interval(expr.base) + steps


def _interval_of_call(bounds: Bounds, expr: Call) -> Interval:
    full = range_of_dtype(expr.dtype)
    if expr.name in ("popcount", "clz"):
        return Interval(0, expr.dtype.bits)
    # The absolute value of the least integer is itself.
    if expr.name == "abs" and bounds.interval(expr.args[0]).is_at_least(
        expr.dtype.min_value + 1
    ):
        return Interval(0, full.high)
    return full


_COMBINATIONS: dict[type[Expr], Callable[[Interval, Interval], Interval]] = {
    Add: Interval.__add__,
    Sub: Interval.__sub__,
    Mul: Interval.__mul__,
    FloorDiv: Interval.floordiv,
    FloorMod: Interval.floormod,
    Min: Interval.minimum,
    Max: Interval.maximum,
}
_INTERVALS: dict[type[Expr], Callable[[Bounds, Any], Interval]] = {
    Div: _interval_of_truncated,
    Mod: _interval_of_truncated,
    BitAnd: _interval_of_and,
    BitOr: _interval_of_bits,
    BitXor: _interval_of_bits,
    ShiftRight: _interval_of_shift,
    Cast: _interval_of_cast,
    Select: _interval_of_choice,
    IfThenElseExpr: _interval_of_choice,
    Broadcast: lambda bounds, e: bounds.interval(e.value),
    Ramp: _interval_of_ramp,
    Let: lambda bounds, e: bounds.interval(e.body),
    Call: _interval_of_call,
}


# The functions below return a congruence of the wrapped value.


def _modular_of_choice(bounds: Bounds, expr: Select | IfThenElseExpr) -> Modular:
    if bounds.is_too_deep(expr):
        return Modular()
    return bounds.modular(expr.true_value).union(bounds.modular(expr.false_value))


def _modular_of_cast(bounds: Bounds, expr: Cast) -> Modular:
    if not expr.value.dtype.is_int:
        return Modular()
    found = bounds.modular(expr.value)
    if bounds.interval(expr.value).lies_in(range_of_dtype(expr.dtype)):
        return found
    return found.wrapped(expr.dtype.bits)


def _modular_of_product(bounds: Bounds, expr: Mul) -> Modular:
    product = bounds.modular(expr.a) * bounds.modular(expr.b)
    return product.wrapped(expr.dtype.bits)


def _modular_of_division(bounds: Bounds, expr: FloorDiv | FloorMod) -> Modular:
    divisor = as_int(expr.b)
    if divisor is None or divisor < 0:
        return Modular()
    dividend = bounds.modular(expr.a)
    if isinstance(expr, FloorDiv):
        return dividend.floordiv(divisor)
    return dividend.floormod(divisor)


def _modular_of_extreme(bounds: Bounds, expr: Min | Max) -> Modular:
    return bounds.modular(expr.a).union(bounds.modular(expr.b))


_MODULI: dict[type[Expr], Callable[[Bounds, Any], Modular]] = {
    Mul: _modular_of_product,
    FloorDiv: _modular_of_division,
    FloorMod: _modular_of_division,
    Min: _modular_of_extreme,
    Max: _modular_of_extreme,
    Cast: _modular_of_cast,
    Select: _modular_of_choice,
    IfThenElseExpr: _modular_of_choice,
    Broadcast: lambda bounds, e: bounds.modular(e.value),
    Let: lambda bounds, e: bounds.modular(e.body),
}
