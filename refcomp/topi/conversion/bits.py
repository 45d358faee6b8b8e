"""Bits of floats as integers and back, and rounding to narrow floats in numpy.

Numpy and ml_dtypes round f64 and 64-bit integers to f32 before they round to a narrower float. This
double rounding can go to the wrong neighbour. `round_to_odd_numpy` avoids it.

Reference: S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved
algorithms using rounding to odd", IEEE Transactions on Computers 57, 2008.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import F32, DType
from refcomp.ir.expr import Call, Expr
from refcomp.te import maths
from refcomp.topi.shapes import Array


def bits_of(value: Expr) -> Expr:
    """Return the bits of a float as an unsigned integer of its width. A NaN has any bits."""
    if value.dtype.kind == "bfloat":
        # bf16 is the upper half of f32.
        wide = bits_of(value.astype(F32))
        return (wide >> 16).astype("uint16")
    return Call("float_to_bits", (value,), DType("uint", value.dtype.bits))


def float_of(bits: Expr, dtype: DType) -> Expr:
    """Return the float of `dtype` that has these bits, an unsigned integer of its width."""
    if dtype.kind == "bfloat":
        wide = float_of(bits.astype("uint32") << 16, F32)
        # No bit of the upper half is lost: the rest is zero.
        return wide.astype(dtype)
    return Call("bits_to_float", (bits,), dtype)


def without_nan(value: Expr) -> Expr:
    """Return `value`, or 0 in place of NaN, so that its bits are defined."""
    return maths.select(maths.isnan(value), 0.0, value)


def round_to_odd_numpy(data: Array) -> Array:
    """Return f64 as f32; a value between two floats becomes the one whose last bit is 1.

    Rounding the result to a float of at most 22 digits is the same as rounding `data` once.
    """
    with np.errstate(over="ignore"):
        near = data.astype(np.float32)
    overflows = np.isinf(near) & np.isfinite(data)
    greatest = np.copysign(_MOST, near)
    near = np.asarray(np.where(overflows, greatest, near))
    wide = near.astype(np.float64)
    is_even = (near.view(np.uint32) & 1) == 0
    direction = np.where(wide < data, np.inf, -np.inf).astype(np.float32)
    with np.errstate(over="ignore"):
        moved = np.nextafter(near, direction)
    is_moved = is_even & (wide != data) & np.isfinite(data)
    return np.asarray(np.where(is_moved, moved, near))


# The greatest f32. Its last bit is 1.
_MOST = np.finfo(np.float32).max
