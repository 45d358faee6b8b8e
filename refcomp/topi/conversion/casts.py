"""Conversions of elements from one dtype to another: by value, and by bits.

Reference: the ONNX operators Cast and CastLike; TVM, relay.cast and relay.reinterpret.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import SCALAR_DTYPES, DType, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.conversion.bits import bits_of, float_of, round_to_odd_numpy
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array

_NAMES = tuple(to_numpy(dtype).name for dtype in SCALAR_DTYPES)


def cast(data: Tensor, *, dtype: DTypeLike, saturate: bool = False) -> Tensor:
    """Return each element converted to another dtype.

    - An integer to an integer wraps, or is clamped to the limits with `saturate`.
    - A float to an integer is truncated toward zero and clamped. NaN gives 0.
    - A number to a float rounds to nearest, a tie to even. NaN and infinities are kept, and what is
      too large becomes infinite.
    - A number to bool is true unless it is 0; NaN is true. A bool to a number is 0 or 1.

    Each target gives the same values.

    Args:
        data: a tensor of any dtype and shape.
        dtype: the dtype of the result: bool, an integer, float16, bfloat16, float32 or float64.
        saturate: True if integers that do not fit are clamped.

    Returns:
        A tensor of `dtype` of the shape of `data`.

    Raises:
        UserError: `data` is not a tensor, or `dtype` is not the dtype of a scalar.

    Reference: ONNX Cast; its `saturate` concerns floats of 8 bits (see `to_float8`).

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.cast(A, dtype="int8")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([-1.7, 1.7, 1000, np.nan], "float32")}))
        [ -1   1 127   0]
    """
    return _converted(data, _scalar_dtype(dtype, "cast"), saturate, "cast")


def _scalar_dtype(dtype: DTypeLike, operator: str) -> DType:
    kind = as_dtype(dtype)
    if kind not in SCALAR_DTYPES:
        raise UserError(
            f"{operator} cannot convert to {kind}",
            remedy=f"use one of {', '.join(_NAMES)}",
        )
    return kind


def _converted(data: Tensor, target: DType, saturate: bool, operator: str) -> Tensor:
    require_tensor(data, operator)
    source = data.dtype
    clamps = saturate and source.is_int and target.is_int

    def element(*index: Expr) -> Expr:
        value: Expr = data[index]
        if clamps:
            least = max(source.min_value, target.min_value)
            greatest = min(source.max_value, target.max_value)
            value = maths.minimum(maths.maximum(value, least), greatest)
        return value.astype(target)

    return compute(data.shape, element, name=operator, tag=INJECTIVE)


def _sample_cast(draws: Draws) -> Sample:
    data = _sample_array(draws, draws.shape(), draws.choice(_NAMES))
    attributes = {"dtype": draws.choice(_NAMES), "saturate": draws.flag()}
    return Sample((data,), attributes)


def _sample_array(draws: Draws, shape: tuple[int, ...], name: str) -> Array:
    """Return numbers of any dtype, of which some are too large for other dtypes."""
    kind = as_dtype(name)
    source = "float32" if name == "bfloat16" else name
    array = draws.array(shape, source)
    if kind.is_float and draws.flag():
        with np.errstate(over="ignore"):
            array = np.asarray(array * _sample_power(draws, kind))
    with np.errstate(over="ignore"):
        return array.astype(to_numpy(kind))


def _sample_power(draws: Draws, kind: DType) -> Array:
    """Return a power of two of the dtype, up to the limits of 64-bit integers."""
    exponent = draws.integer(0, 14 if kind.bits == 16 else 65)
    return np.asarray(2.0**exponent, np.float32 if kind.bits == 16 else to_numpy(kind))


@meaning_of(cast, sample=_sample_cast, pattern="elementwise")
def cast_numpy(data: Array, *, dtype: DTypeLike, saturate: bool = False) -> Array:
    source = as_dtype(data.dtype)
    target = as_dtype(dtype)
    if target.is_bool:
        return np.asarray(data != 0)
    if target.is_float:
        return _to_float_numpy(data, target)
    if source.is_float:
        return _truncated_numpy(data.astype(np.float64), target)
    if saturate and source.is_int:
        least = max(source.min_value, target.min_value)
        greatest = min(source.max_value, target.max_value)
        data = np.clip(data, data.dtype.type(least), data.dtype.type(greatest))
    return data.astype(to_numpy(target))


def _to_float_numpy(data: Array, target: DType) -> Array:
    kind = to_numpy(target)
    source = as_dtype(data.dtype)
    if target.kind != "bfloat" or source.bits < 32:
        with np.errstate(over="ignore"):
            return data.astype(kind)
    # ml_dtypes rounds to f32 first, and then once more.
    if source.is_int and source.bits == 64:
        # Half of the digits decide, and of the rest whether one is not 0.
        is_large = np.abs(data.astype(np.float64)) > 2.0**40
        sticky = np.where((data & 0xFFFF) != 0, 1 << 15, 0).astype(data.dtype)
        data = np.where(is_large, (data & ~data.dtype.type(0xFFFF)) | sticky, data)
    return round_to_odd_numpy(data.astype(np.float64)).astype(kind)


def _truncated_numpy(wide: Array, target: DType) -> Array:
    kind = to_numpy(target)
    below = wide <= target.min_value
    # The float nearest to the greatest integer may be one more than this integer.
    above = wide >= float(target.max_value)
    inside = np.where(below | above | np.isnan(wide), 0.0, np.trunc(wide))
    result = inside.astype(kind)
    result = np.where(below, kind.type(target.min_value), result)
    return np.asarray(np.where(above, kind.type(target.max_value), result))


def cast_like(data: Tensor, like: Tensor) -> Tensor:
    """Return each element of `data` converted to the dtype of `like`, as `cast` does.

    Args:
        data: a tensor of any dtype and shape.
        like: a tensor whose dtype is taken. Its elements and its shape have no influence.

    Returns:
        A tensor of the shape of `data` and the dtype of `like`.

    Raises:
        UserError: an operand is not a tensor.

    Reference: ONNX CastLike.

    Example::

        >>> A, L = rc.placeholder((2,), name="A"), rc.placeholder((), "int32", name="L")
        >>> B = rc.topi.cast_like(A, L)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([-1.7, 1.7], "float32")}))
        [-1  1]
    """
    require_tensor(like, "cast_like")
    return _converted(data, like.dtype, False, "cast_like")


def _sample_cast_like(draws: Draws) -> Sample:
    data = _sample_array(draws, draws.shape(), draws.choice(_NAMES))
    like = _sample_array(draws, draws.shape(0, 1), draws.choice(_NAMES))
    return Sample((data, like))


@meaning_of(cast_like, sample=_sample_cast_like, pattern="broadcast")
def cast_like_numpy(data: Array, like: Array) -> Array:
    return cast_numpy(data, dtype=like.dtype)


def bitcast(data: Tensor, *, dtype: DTypeLike) -> Tensor:
    """Return the bits of each element as another dtype of the same width.

    A NaN may have any bits of a NaN; which ones, depends on the target.

    Args:
        data: a tensor of integers or floats, of any shape.
        dtype: an integer or float dtype of as many bits.

    Returns:
        A tensor of `dtype` of the shape of `data`.

    Raises:
        UserError: a dtype is bool, or the widths differ.

    Reference: TVM, relay.reinterpret; XLA, BitcastConvertType, of one width.

    Example::

        >>> A = rc.placeholder((2,), name="A")
        >>> B = rc.topi.bitcast(A, dtype="int32")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, -0.0], "float32")}))
        [ 1065353216 -2147483648]
    """
    require_tensor(data, "bitcast")
    source = data.dtype
    target = _scalar_dtype(dtype, "bitcast")
    if source.is_bool or target.is_bool or source.bits != target.bits:
        raise UserError(
            f"bitcast cannot view {source} as {target}",
            why="both must be integers or floats of one width",
            remedy=f"use a dtype of {source.bits} bits, or convert values by rc.topi.cast",
            earlier=[data.declaration()],
        )

    def element(*index: Expr) -> Expr:
        value = data[index]
        if source == target:
            return value
        bits = bits_of(value) if source.is_float else value
        unsigned = bits.astype(DType("uint", source.bits))
        return float_of(unsigned, target) if target.is_float else bits.astype(target)

    return compute(data.shape, element, name="bitcast", tag=INJECTIVE)


def _sample_bitcast(draws: Draws) -> Sample:
    source = draws.choice(_NAMES[1:])
    width = as_dtype(source).bits
    same = [name for name in _NAMES[1:] if as_dtype(name).bits == width]
    data = _sample_array(draws, draws.shape(), source)
    return Sample((data,), {"dtype": draws.choice(same)})


@meaning_of(bitcast, sample=_sample_bitcast, pattern="elementwise")
def bitcast_numpy(data: Array, *, dtype: DTypeLike) -> Array:
    return data.copy().view(to_numpy(as_dtype(dtype)))
