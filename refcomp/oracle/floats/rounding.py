"""Rounding to nearest in each float format of the IR, on numbers of more digits.

WIDE is numpy's long double. x87's has 64 digits and exponents to 2^16383, a quadruple one 113: each
holds whatever one operation makes of f64, and half the smallest subnormal of f64, 2^-1075. Errors
are kept in WIDE too, for that reason: in f64 they would round down to 0. Where long double is f64
itself, as on Windows and on Apple's ARM, bounds of f64 are not proved near underflow and overflow.

Terms are those of J.-M. Muller et al., Handbook of Floating-Point Arithmetic, 2nd edition, section
2.1: subnormal numbers, gradual underflow, ulp; unit roundoff is half an ulp of 1 (section 2.6).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.oracle.interpreter.scalars import FORMATS

WIDE = np.longdouble
# Relative error of one operation of the reference: twice the unit roundoff of WIDE.
REFERENCE_UNIT = WIDE(np.finfo(WIDE).eps)


def half_ulp(size: Any, dtype: DType) -> Any:
    """Return the greatest error of rounding a number of at most `size` to nearest.

    It is never below half the smallest subnormal: below the normal numbers the error is absolute.
    """
    digits, least, _ = FORMATS[dtype.kind, dtype.bits]
    _, exponent = np.frexp(
        np.maximum(size * WIDE(1 + 2.0**-50), np.ldexp(WIDE(1), least))
    )
    return np.ldexp(WIDE(1), exponent - 1 - digits)


def overflow_limit(dtype: DType) -> Any:
    """Return the least number that rounds to infinity: the greatest one and half an ulp."""
    digits, _, greatest = FORMATS[dtype.kind, dtype.bits]
    return np.ldexp(WIDE(2) - np.ldexp(WIDE(1), -digits), greatest)


def nearest(value: Any, dtype: DType) -> Any:
    """Return WIDE values rounded once to `dtype`, ties to even, as WIDE values again."""
    wide = np.asarray(value, WIDE)
    if (
        dtype.bits >= 32
    ):  # numpy rounds to these directly, to the narrower ones by way of them
        return wide.astype(to_numpy(dtype)).astype(WIDE)
    digits, least, greatest = FORMATS[dtype.kind, dtype.bits]
    _, exponent = np.frexp(wide)
    step = np.ldexp(WIDE(1), np.maximum(exponent, least + 1) - digits)
    rounded = np.rint(wide / step) * step
    beyond = np.abs(rounded) >= np.ldexp(WIDE(1), greatest + 1)
    return np.where(beyond, np.copysign(WIDE(np.inf), wide), rounded)


def to_dtype(value: Any, dtype: DType) -> Any:
    """Return WIDE values rounded once to `dtype`, as numbers of that type."""
    wide = nearest(value, dtype)
    return (wide.astype(np.float32) if dtype.kind == "bfloat" else wide).astype(
        to_numpy(dtype)
    )


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the sum rounded, and what that left out (Knuth's; Higham, section 4.3)."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def product_residual(a: Any, b: Any, product: Any) -> Any:
    """Return a * b - product for `product`, a * b rounded to WIDE.

    Dekker's product (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition,
    section 2.7). It is exact for numbers of f64, since WIDE has the exponents that it needs.
    """
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    rest = (
        (a_high * b_high - product) + a_high * b_low + a_low * b_high
    ) + a_low * b_low
    return np.where(np.isfinite(rest), rest, 0)


def _halves(value: Any) -> tuple[Any, Any]:
    """Split into two numbers of 32 digits each (Veltkamp)."""
    scaled = value * WIDE(2**32 + 1)
    high = scaled - (scaled - value)
    return high, value - high
