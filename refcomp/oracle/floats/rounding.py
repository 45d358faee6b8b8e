"""Rounding to nearest in each float format of the IR, on numbers with more digits.

WIDE is numpy's long double. Its significand has 64 digits on x87, 113 as a quadruple; exponents go
to 2^16383. So it holds each result of one operation on f64, and half the smallest subnormal of f64,
2^-1075. Errors are kept in WIDE, too: in f64 they would round down to 0. Where long double is f64
itself, as on Windows and on Apple's ARM, bounds of f64 are not proved near underflow and overflow.

Terms are those of J.-M. Muller et al., Handbook of Floating-Point Arithmetic, 2nd edition, section
2.1 (subnormal numbers, gradual underflow, ulp) and 2.6 (unit roundoff u: half an ulp of 1).
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.oracle.interpreter.scalars import FORMATS
from refcomp.oracle.tensors.arrays import Array

WIDE = np.longdouble
# Arrays of rank 0 that cannot be written.
ZERO: Array = np.broadcast_to(WIDE(0), ())
ONE: Array = np.broadcast_to(WIDE(1), ())
INFINITY: Array = np.broadcast_to(WIDE(np.inf), ())
FALSE: Array = np.broadcast_to(np.False_, ())
TRUE: Array = np.broadcast_to(np.True_, ())
# Relative error of one operation of the reference: twice the unit roundoff of WIDE.
REFERENCE_UNIT = WIDE(np.finfo(WIDE).eps)
# Covers the roundings of WIDE in a comparison.
GUARD = WIDE(1 + 2.0**-50)


def unit_roundoff(dtype: DType) -> np.longdouble:
    """Return u: the greatest relative error of rounding a number in the normal range."""
    digits, _, _ = FORMATS[dtype.kind, dtype.bits]
    return WIDE(2.0**-digits)


def smallest_normal(dtype: DType) -> np.longdouble:
    """Return the least positive normal number."""
    _, least, _ = FORMATS[dtype.kind, dtype.bits]
    return WIDE(2.0**least)


def half_ulp(size: Array, dtype: DType) -> Array:
    """Return the greatest error of rounding a number of at most `size` to nearest.

    It is never below half the smallest subnormal: below the normal numbers the error is absolute.
    """
    normal = np.maximum(size * GUARD, smallest_normal(dtype))
    _, exponent = np.frexp(normal)
    return np.ldexp(unit_roundoff(dtype) / 2, exponent)


def overflow_limit(dtype: DType) -> np.longdouble:
    """Return the least number that rounds to infinity: the greatest float and half an ulp."""
    _, _, greatest = FORMATS[dtype.kind, dtype.bits]
    return (WIDE(2) - unit_roundoff(dtype)) * WIDE(2.0**greatest)


def nearest(value: Array, dtype: DType) -> Array:
    """Return WIDE values rounded once to `dtype`, ties to even, as WIDE values again."""
    wide = np.asarray(value, WIDE)
    if dtype.bits >= 32:
        # numpy rounds to these types directly, but to narrower ones by way of them.
        return wide.astype(to_numpy(dtype)).astype(WIDE)
    digits, least, greatest = FORMATS[dtype.kind, dtype.bits]
    _, exponent = np.frexp(wide)
    exponent = np.maximum(exponent, least + 1)
    ulp = np.ldexp(ONE, exponent - digits)
    rounded = np.rint(wide / ulp) * ulp
    overflows = np.abs(rounded) >= WIDE(2.0 ** (greatest + 1))
    return np.where(overflows, np.copysign(INFINITY, wide), rounded)


def to_dtype(value: Array, dtype: DType) -> Array:
    """Return WIDE values rounded once to `dtype`, as numbers of that type."""
    rounded = nearest(value, dtype)
    if dtype.kind == "bfloat":
        rounded = rounded.astype(np.float32)  # ml_dtypes knows no long double
    return rounded.astype(to_numpy(dtype))


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its rounding error, exactly (Knuth; Higham, section 4.3)."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def product_residual(a: Array, b: Array, product: Array) -> Array:
    """Return a * b - product for `product`, a * b rounded to WIDE.

    Dekker's product (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition,
    section 2.7). It is exact for numbers of f64, since WIDE has the exponents that it needs.
    """
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    rest = a_high * b_high - product
    rest = rest + a_high * b_low + a_low * b_high + a_low * b_low
    return np.where(np.isfinite(rest), rest, 0)


def _halves(value: Array) -> tuple[Array, Array]:
    """Split a number into two of 32 digits each (Veltkamp)."""
    scaled = value * WIDE(2**32 + 1)
    high = scaled - (scaled - value)
    return high, value - high
