"""Rounding of floats to integers that saturates, which quantization ends in."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import F32, F64, DType, to_numpy
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.topi.shapes import Array


def round_to_integer(value: Expr, dtype: DType, zero_point: Expr | None = None) -> Expr:
    """Return round(value) + zero_point as an integer of `dtype`, which saturates.

    A tie rounds to the even integer, before the zero point is added. NaN gives 0. An infinity gives
    the least or the greatest integer. The sum is exact in a float that is wider than both. It is
    f32 for integers of 8 and 16 bits, and f64 for those of 32 bits.

    Args:
        value: a float.
        dtype: an integer dtype of at most 32 bits.
        zero_point: an integer of at most 32 bits; None for 0.

    Reference: ONNX QuantizeLinear.
    """
    exact = F64 if dtype.bits > 16 or value.dtype == F64 else F32
    rounded = maths.round(value.astype(exact))
    if zero_point is not None:
        rounded = rounded + zero_point.astype(exact)
    # A cast from float to int saturates, and gives 0 for NaN.
    return rounded.astype(dtype)


def round_to_integer_numpy(
    value: Array, dtype: DType, zero_point: Array | int = 0
) -> Array:
    shifted = np.rint(value.astype(np.float64)) + np.asarray(zero_point, np.float64)
    kept = np.clip(np.nan_to_num(shifted), dtype.min_value, dtype.max_value)
    return np.asarray(kept).astype(to_numpy(dtype))
