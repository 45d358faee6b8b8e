"""Legal values of a result that is rounded to a dtype, with overflow to infinity.

See `refcomp.oracle.floats.operations` for the error model and its source.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.oracle.floats.legal_values import (
    MINUS_INF,
    PLUS_INF,
    Approx,
    where_bit,
)
from refcomp.oracle.floats.rounding import (
    GUARD,
    INFINITY,
    REFERENCE_UNIT,
    ZERO,
    half_ulp,
    nearest,
    overflow_limit,
)
from refcomp.oracle.tensors.arrays import Array


def rounded(
    raw: Approx,
    dtype: DType,
    ulps: float = 0.5,
    reference: np.longdouble = REFERENCE_UNIT,
) -> Approx:
    """Return the legal values of a result in `dtype`.

    Args:
        raw: the result of one operation before it is rounded.
        dtype: type of the result.
        ulps: greatest legal error of the operation itself, in ulps; 0.5: it rounds to nearest.
        reference: relative error of the reference itself.
    """
    unlimited = rounded_without_overflow(raw, dtype, ulps=ulps, reference=reference)
    return with_overflow(raw, unlimited, dtype, ulps)


def rounded_without_overflow(
    raw: Approx,
    dtype: DType,
    *,
    ulps: float = 0.5,
    reference: np.longdouble = REFERENCE_UNIT,
    residual: Array = ZERO,
) -> Approx:
    """Round as if the exponent had no upper limit.

    `residual` is the distance of the exact product of exact operands from the reference. It is the
    error of a contraction where the reference itself needs no rounding.
    """
    value = raw.value
    size = np.abs(value)
    propagated = _propagated(raw)
    local = 2 * ulps * half_ulp(size + propagated, dtype) + size * reference
    if ulps <= 0.5:
        near = nearest(value, dtype)
        error = np.where(
            near == value, residual, np.abs(near - value) + size * reference
        )
        is_exact = propagated == 0
        local = np.where(is_exact, np.fmin(local, error), local)
        keeps_sign = raw.keeps_sign | is_exact | (size > propagated * GUARD)
    else:
        keeps_sign = size > (propagated + local) * GUARD
    error = np.where(np.isfinite(value), propagated + local, ZERO)
    is_known = np.isfinite(propagated)
    error = np.where(is_known, error, INFINITY)
    return replace(raw, value=value, error=error, keeps_sign=keeps_sign & is_known)


def _propagated(raw: Approx) -> Array:
    return np.where(np.isnan(raw.error), INFINITY, raw.error)


def with_overflow(raw: Approx, result: Approx, dtype: DType, ulps: float) -> Approx:
    """Make infinite what must overflow, and infinities legal for what may overflow.

    A correctly rounded result overflows where `raw` reaches the limit, another one where `result`
    does. Returns `result` itself if nothing can overflow.
    """
    value = raw.value
    size = np.abs(value)
    limit = overflow_limit(dtype)
    propagated = _propagated(raw)
    reach = propagated if ulps <= 0.5 else result.error
    reach = reach + size * REFERENCE_UNIT
    is_known = np.isfinite(value) & np.isfinite(propagated)
    may_overflow = is_known & (size + reach >= limit)
    if not np.any(may_overflow):
        return result
    overflows = may_overflow & (size - reach >= limit)
    may_overflow &= ~overflows
    high = where_bit(may_overflow & (value + reach >= limit), PLUS_INF)
    low = where_bit(may_overflow & (reach - value >= limit), MINUS_INF)
    return replace(
        result,
        value=np.where(overflows, np.copysign(INFINITY, value), value),
        error=np.where(overflows, ZERO, result.error),
        others=result.others | high | low,
    )
