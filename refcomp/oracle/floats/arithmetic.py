"""The arithmetic operators on floats that carry an error, each as a rule.

A rule takes two operands and the dtype of both, and returns the legal results. See
`refcomp.oracle.floats.operations` for the error model and its source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from operator import and_

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.oracle.floats.legal_values import (
    MARGIN,
    MINUS_INF,
    MINUS_ZERO,
    NAN,
    NO_OTHERS,
    PLUS_INF,
    PLUS_ZERO,
    Approx,
    code_of,
    pick,
    where_bit,
)
from refcomp.oracle.floats.rounded_results import (
    rounded,
    rounded_without_overflow,
    with_overflow,
)
from refcomp.oracle.floats.rounding import (
    INFINITY,
    WIDE,
    ZERO,
    overflow_limit,
    product_residual,
)
from refcomp.oracle.tensors import arrays
from refcomp.oracle.tensors.arrays import Array

_Rule = Callable[[Approx, Approx, DType], Approx]


def _scaled(size: Array, error: Array) -> Array:
    """Return |size| * error; 0 for an exact operand, even if `size` is infinite."""
    scaled = np.abs(size) * error
    return np.where(error == 0, ZERO, scaled)


def not_zero(a: Approx) -> Array:
    """Return where no legal value is 0 or has the other sign."""
    return a.absolute > a.error * MARGIN


def _same_sign(a: Approx, b: Approx) -> Array:
    """Return where no two legal values have different signs."""
    same_sign = a.is_negative == b.is_negative
    return reduce(and_, [a.keeps_sign, b.keeps_sign, same_sign])


def _add(a: Approx, b: Approx, dtype: DType) -> Approx:
    return rounded(sum_of(a, b), dtype)


def sum_of(a: Approx, b: Approx) -> Approx:
    """Return the sum before it is rounded."""
    return Approx(
        value=a.value + b.value,
        error=a.error + b.error,
        doubtful=a.doubtful | b.doubtful,
        magnitude=a.magnitude + b.magnitude,
        keeps_sign=_same_sign(a, b),
    )


def _subtract(a: Approx, b: Approx, dtype: DType) -> Approx:
    return _add(a, replace(b, value=-b.value), dtype)


def _multiply(a: Approx, b: Approx, dtype: DType) -> Approx:
    raw = product_of(a, b)
    residual = ZERO
    if dtype.bits == 64:  # Products of narrower types are exact in WIDE.
        residual = product_residual(a.value, b.value, raw.value)
    unlimited = rounded_without_overflow(raw, dtype, residual=np.abs(residual))
    result = with_overflow(raw, unlimited, dtype, 0.5)
    if result is unlimited:
        return result
    return replace(result, contracted=unlimited)


def product_of(a: Approx, b: Approx) -> Approx:
    """Return the product before it is rounded."""
    value = a.value * b.value
    error = _scaled(a.value, b.error) + _scaled(b.value, a.error)
    error = error + a.error * b.error
    keeps_sign = a.keeps_sign & b.keeps_sign
    others = NO_OTHERS
    infinite = np.isinf(a.value) | np.isinf(b.value)
    if np.any(infinite):
        infinite = infinite & ~a.is_unbounded & ~b.is_unbounded
        error = np.where(infinite, ZERO, error)
        # Infinity times an interval with 0 is NaN, or an infinity whose sign may be known.
        has_error = ~(a.is_exact & b.is_exact)
        meets_zero = infinite & has_error & ~(not_zero(a) & not_zero(b))
        is_known = keeps_sign & ~np.isnan(value)
        infinities = np.where(is_known, code_of(value), PLUS_INF | MINUS_INF)
        others = np.where(meets_zero, infinities | NAN, NO_OTHERS)
    doubtful = a.doubtful | b.doubtful
    return Approx(
        value=value,
        error=error,
        doubtful=doubtful,
        magnitude=a.magnitude * b.magnitude,
        others=others,
        keeps_sign=keeps_sign,
    )


def _divide(a: Approx, b: Approx, dtype: DType) -> Approx:
    size = b.absolute
    value = a.value / b.value
    least_divisor = size - b.error
    scaled = a.error + _scaled(value, b.error)
    error = np.where(least_divisor > 0, scaled / least_divisor, INFINITY)
    is_exact = np.isinf(a.value) & not_zero(b) | (scaled == 0)
    error = np.where(is_exact, ZERO, error)
    raw = Approx(
        value=value,
        error=error,
        doubtful=a.doubtful | b.doubtful | np.isinf(error),
        magnitude=a.magnitude / size * (b.magnitude / size),
        keeps_sign=a.keeps_sign & b.keeps_sign,
    )
    result = rounded(raw, dtype)
    may_be_pole = ~b.is_exact & ~not_zero(b)
    if np.any(may_be_pole | np.isinf(error)):
        return _at_pole(a, b, result, dtype)
    return result


def _at_pole(a: Approx, b: Approx, result: Approx, dtype: DType) -> Approx:
    """Make a quotient infinite if its divisor is 0, or so small that the quotient overflows.

    0 / 0 may be NaN.
    """
    least_dividend = a.absolute - a.error
    least = least_dividend / (b.absolute + b.error)
    # The factor is a margin for the rounding errors in `least`.
    overflows = least * WIDE(1 - 2.0**-40) >= overflow_limit(dtype)
    overflows &= result.is_unbounded
    is_negative = a.is_negative != b.is_negative
    either = ~(a.keeps_sign & b.keeps_sign)
    other_infinity = np.where(is_negative, PLUS_INF, MINUS_INF)
    other_zero = np.where(is_negative, PLUS_ZERO, MINUS_ZERO)
    may_be_pole = ~b.is_exact & ~not_zero(b)
    of_zero = (a.value == 0) & a.is_exact & may_be_pole
    others = np.where(overflows & either, other_infinity, NO_OTHERS)
    others |= np.where(of_zero & either, other_zero, NO_OTHERS)
    others |= where_bit(of_zero, NAN)
    infinity = np.where(is_negative, -INFINITY, INFINITY)
    return replace(
        result,
        value=np.where(overflows, infinity, result.value),
        error=np.where(overflows, ZERO, result.error),
        doubtful=np.where(overflows, a.doubtful | b.doubtful, result.doubtful),
        others=result.others | others,
    )


def _remainder(a: Approx, b: Approx, dtype: DType) -> Approx:
    """Return fmod, which is exact but jumps where the quotient passes a whole number."""
    value = np.fmod(a.value, b.value)
    whole = np.trunc(a.value / b.value)
    # The remainder does not jump if the quotient has one whole part at all ends of both intervals.
    continuous = not_zero(b)
    for i, j in _CORNERS:
        dividend = a.value + i * a.error
        divisor = b.value + j * b.error
        continuous = continuous & (np.trunc(dividend / divisor) == whole)
    is_exact = a.is_exact & b.is_exact
    propagated = a.error + _scaled(whole, b.error)
    anywhere = np.abs(value) + b.absolute + b.error
    error = np.where(not_zero(b), anywhere, INFINITY)
    error = np.where(continuous, propagated, error)
    error = np.where(is_exact, ZERO, error)
    doubtful = a.doubtful | b.doubtful | ~(is_exact | continuous)
    raw = Approx(
        value=value,
        error=error,
        doubtful=doubtful,
        magnitude=np.abs(value),
        keeps_sign=a.keeps_sign,
    )
    return rounded(raw, dtype)


# The signs of both errors at the ends of the operands' intervals.
_CORNERS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def _extremum(node: type[ir.BinaryExpr], a: Approx, b: Approx, _dtype: DType) -> Approx:
    """Return Min or Max, which never rounds.

    The error is that of the operand which is the result, or the greater one if both may be it.
    """
    value = arrays.OPERATORS[node](a.value, b.value)
    result = pick(value == a.value, a, b)
    reach = a.error + b.error
    apart = np.abs(a.value - b.value) > reach * MARGIN
    error = np.maximum(a.error, b.error)
    error = np.where(apart, result.error, error)
    # NaN wins, whatever the other operand is; nothing is apart from it.
    a_is_nan = a.is_nan & a.is_exact
    b_is_nan = b.is_nan & b.is_exact
    return Approx(
        value=value,
        error=np.where(a_is_nan | b_is_nan, ZERO, error),
        doubtful=np.where(apart, result.doubtful, a.doubtful | b.doubtful),
        magnitude=result.magnitude,
        keeps_sign=np.where(apart, result.keeps_sign, _same_sign(a, b)),
    )


FLOAT_RULES: dict[type[ir.BinaryExpr], _Rule] = {
    ir.Add: _add,
    ir.Sub: _subtract,
    ir.Mul: _multiply,
    ir.Div: _divide,
    ir.Mod: _remainder,
    ir.Min: partial(_extremum, ir.Min),
    ir.Max: partial(_extremum, ir.Max),
}
