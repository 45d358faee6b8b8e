"""The ends of sums, products, quotients, minima and maxima of values whose ends are attained.

Each rule of `RULES` takes two operands that depend on no axis in common. The ends of its result are
attained as well. Ends are exact integers, in which nothing wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from refcomp.foundation.dtype import I64, DType
from refcomp.foundation.records import record
from refcomp.ir.expr import (
    Add,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Sub,
    Var,
)

Bound = int | Expr  # nearly all bounds are plain integers, which need no proof


@record
class Attained:
    """The ends of an expression, which are also values of it."""

    low: Bound
    high: Bound
    axes: frozenset[Var] = frozenset()  # the axes that the expression depends on
    # Conditions under which its arithmetic wraps around. The ends hold where none of them does.
    wraps: tuple[Expr, ...] = ()


SignTest = Callable[[Bound], bool]  # returns True if a bound is proved to be >= 0
Rule = Callable[[SignTest, Attained, Attained], Attained | None]


def as_expr(bound: Bound) -> Expr:
    """Return `bound` as an expression of i64, in which sums of ends are exact."""
    if isinstance(bound, int):
        return IntImm(bound, I64)
    return bound if bound.dtype == I64 else Cast(I64, bound)


def typed(bound: Bound, dtype: DType) -> Expr:
    """Return a plain integer as a constant of `dtype`, and an expression as it is."""
    return IntImm(bound, dtype) if isinstance(bound, int) else bound


def in_i64(values: Attained) -> Attained:
    """Return `values` with ends of i64, whose sums are exact."""
    low, high = values.low, values.high
    if not isinstance(low, int):
        low = as_expr(low)
    if not isinstance(high, int):
        high = as_expr(high)
    return replace(values, low=low, high=high)


def is_constant(*values: Attained) -> bool:
    """Return True if both ends of each value are plain integers."""
    return all(isinstance(v.low, int) and isinstance(v.high, int) for v in values)


def _sum(_is_nonnegative: SignTest, a: Attained, b: Attained) -> Attained:
    low = a.low + b.low
    high = a.high + b.high
    return Attained(low, high, a.axes | b.axes)


def _difference(_is_nonnegative: SignTest, a: Attained, b: Attained) -> Attained:
    low = a.low - b.high
    high = a.high - b.low
    return Attained(low, high, a.axes | b.axes)


def _product(is_nonnegative: SignTest, a: Attained, b: Attained) -> Attained | None:
    # Two operands with axes have four corners. The signs decide which of them are the ends.
    if a.axes and b.axes:
        if is_nonnegative(a.low) and is_nonnegative(b.low):
            return Attained(a.low * b.low, a.high * b.high, a.axes | b.axes)
        return None
    if not a.axes:
        a, b = b, a
    factor = b.low
    low = a.low * factor
    high = a.high * factor
    if is_nonnegative(factor):
        return Attained(low, high, a.axes)
    if isinstance(factor, int):
        return Attained(high, low, a.axes)
    # The sign of the factor is not known, so that either end may be the greater one.
    least = smaller(low, high)
    most = greater(low, high)
    return Attained(least, most, a.axes)


def _quotient(_is_nonnegative: SignTest, a: Attained, b: Attained) -> Attained | None:
    divisor = b.low
    if not isinstance(divisor, int) or divisor <= 0 or b.axes:
        return None
    return Attained(a.low // divisor, a.high // divisor, a.axes)


def _remainder(_is_nonnegative: SignTest, a: Attained, b: Attained) -> Attained | None:
    divisor = b.low
    if not isinstance(divisor, int) or divisor <= 0 or b.axes:
        return None
    if not (isinstance(a.low, int) and isinstance(a.high, int)):
        return None
    # The remainder is monotone within one period of the divisor only.
    if a.low // divisor != a.high // divisor:
        return None
    return Attained(a.low % divisor, a.high % divisor, a.axes)


def square(is_nonnegative: SignTest, axis: Attained) -> Attained | None:
    """Return the ends of the square of an axis that is not negative; None for any other."""
    if not is_nonnegative(axis.low):
        return None
    return replace(axis, low=axis.low * axis.low, high=axis.high * axis.high)


def remainder_of_axis(
    is_nonnegative: SignTest, axis: Attained, divisor: Attained
) -> Attained | None:
    """Return the ends of the remainder of an axis that counts from 0 by a symbol.

    Return None for any other axis, and for a divisor that is a constant or may be negative.
    """
    by = divisor.low
    counts = isinstance(axis.low, int) and axis.low == 0
    if not counts or divisor.axes or isinstance(by, int) or not is_nonnegative(by):
        return None
    # All values below the divisor are attained, as far as the axis goes. By 0, it is 0.
    return replace(axis, high=smaller(axis.high, greater(by - 1, 0)))


def _minimum(_is_nonnegative: SignTest, a: Attained, b: Attained) -> Attained:
    low = smaller(a.low, b.low)
    high = smaller(a.high, b.high)
    return Attained(low, high, a.axes | b.axes)


def _maximum(_is_nonnegative: SignTest, a: Attained, b: Attained) -> Attained:
    low = greater(a.low, b.low)
    high = greater(a.high, b.high)
    return Attained(low, high, a.axes | b.axes)


def smaller(a: Bound, b: Bound) -> Bound:
    """Return the minimum of two bounds, an integer if both are."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return Min(as_expr(a), as_expr(b))


def greater(a: Bound, b: Bound) -> Bound:
    """Return the maximum of two bounds, an integer if both are."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return Max(as_expr(a), as_expr(b))


RULES: dict[type[Expr], Rule] = {
    Add: _sum,
    Sub: _difference,
    Mul: _product,
    FloorDiv: _quotient,
    FloorMod: _remainder,
    Min: _minimum,
    Max: _maximum,
}
