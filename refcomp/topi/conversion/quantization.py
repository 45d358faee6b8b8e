"""Quantization: floats as integers with a scale and a zero point, and back.

Reference: the ONNX operators QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear; TVM,
relay.qnn; B. Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", CVPR 2018.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import F32, F64, DType, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.conversion.scales import (
    layout_of,
    require_quantized,
    require_same_integers,
    result_dtype,
    sample_scale,
    spread_numpy,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.rounding import round_to_integer, round_to_integer_numpy
from refcomp.topi.shapes import Array, require_float
from refcomp.topi.tags import REDUCTION, SHARED

_QUANTIZED = ("uint8", "int8", "uint16", "int16", "int32")
_U8 = as_dtype("uint8")


def quantize(
    data: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    dtype: DTypeLike | None = None,
    bits: int | None = None,
) -> Tensor:
    """Return round(x / scale) + zero_point as integers, for each element x.

    A tie rounds to the even integer, and the sum is clamped to the limits of the dtype. Floats of
    16 bits are divided in f32. NaN gives 0; an infinite quotient gives a limit.

    Args:
        data: floats of any shape.
        scale: floats: a scalar or [1] for the whole tensor; [extent of `axis`]; or, with blocks, a
            tensor of the rank of `data`, which has one element for each block along `axis`.
        zero_point: integers of the shape of `scale`. 0 by default, which is symmetric quantization.
        axis: the axis along which scales differ.
        block_size: the number of elements along `axis` that share a scale; 0 without blocks. The
            last block may be shorter.
        dtype: the integer dtype of the result, of at most 32 bits; that of the zero point by
            default, or uint8.
        bits: the number of bits of the integers, which may be fewer than those of the dtype: with
            4, the limits are -8 and 7, or 0 and 15. `pack_int4` packs them.

    Returns:
        A tensor of integers of the shape of `data`.

    Raises:
        UserError: a dtype, rank or extent does not fit, or the axis does not exist.

    Reference: ONNX QuantizeLinear; TVM, qnn.quantize.

    Example::

        >>> A, S = rc.placeholder((3,), name="A"), rc.placeholder((), name="S")
        >>> Z = rc.placeholder((), "uint8", name="Z")
        >>> B = rc.topi.quantize(A, S, Z)
        >>> a, s, z = np.array([1, -1.25, 1000], "float32"), np.float32(0.5), np.uint8(128)
        >>> print(*rc.oracle.evaluate([B], {A: a, S: np.array(s), Z: np.array(z)}))
        [130 126 255]
    """
    require_float(data, "quantize")
    return _quantized(
        data,
        scale,
        zero_point,
        axis=axis,
        block_size=block_size,
        dtype=dtype,
        bits=bits,
        operator="quantize",
    )


def _quantized(
    data: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    *,
    axis: int,
    block_size: int,
    dtype: DTypeLike | None,
    bits: int | None,
    operator: str,
) -> Tensor:
    layout = layout_of(
        data, scale, zero_point, axis=axis, block_size=block_size, operator=operator
    )
    default = _U8 if zero_point is None else zero_point.dtype
    kind = default if dtype is None else as_dtype(dtype)
    target = result_dtype(kind, zero_point, operator)
    width = target.bits if bits is None else bits
    if not 1 <= width <= target.bits:
        raise UserError(
            f"{operator} cannot return {width} bits as {target}",
            remedy=f"use 1 to {target.bits} bits",
        )
    wide = _wide(data, scale)

    def element(*index: Expr) -> Expr:
        step = layout.read(scale, index).astype(wide)
        quotient = data[index].astype(wide) / step
        zero = None if zero_point is None else layout.read(zero_point, index)
        rounded = round_to_integer(quotient, target, zero)
        if width == target.bits:
            return rounded
        least = target.min_value >> (target.bits - width)
        greatest = target.max_value >> (target.bits - width)
        return maths.minimum(maths.maximum(rounded, least), greatest)

    return compute(data.shape, element, name=operator, tag=INJECTIVE)


def _wide(*floats: Tensor) -> DType:
    """Return f64 if an operand is f64, else f32."""
    return F64 if any(tensor.dtype == F64 for tensor in floats) else F32


def _sample_quantize(draws: Draws) -> Sample:
    data = draws.array(draws.shape(), draws.float_dtype())
    integers = draws.choice(_QUANTIZED)
    drawn = sample_scale(draws, data.shape, data.dtype.name, integers)
    dtype = integers if draws.flag() or drawn.zero_point is None else None
    attributes = {
        "axis": drawn.axis,
        "block_size": drawn.block_size,
        "dtype": dtype,
        "bits": draws.choice((None, None, 4, draws.integer(1, 8))),
    }
    return Sample((data, drawn.scale, drawn.zero_point), attributes)


@meaning_of(quantize, sample=_sample_quantize, pattern="broadcast")
def quantize_numpy(
    data: Array,
    scale: Array,
    zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    dtype: DTypeLike | None = None,
    bits: int | None = None,
) -> Array:
    if dtype is None:
        dtype = "uint8" if zero_point is None else zero_point.dtype
    point: Array | int = 0
    if zero_point is not None:
        point = spread_numpy(zero_point, data.shape, axis, block_size)
    step = spread_numpy(scale, data.shape, axis, block_size).astype(np.float64)
    with np.errstate(all="ignore"):
        quotient = np.asarray(data.astype(np.float64) / step)
    result = round_to_integer_numpy(quotient, as_dtype(dtype), point)
    if bits is None:
        return result
    if as_dtype(dtype).kind == "uint":
        return np.clip(result, 0, 2**bits - 1)
    return np.clip(result, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def dequantize(
    data: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
) -> Tensor:
    """Return scale * (q - zero_point) as floats, for each integer q.

    The difference is exact, or rounded once for integers of 32 bits. The product is computed in
    f32, or in f64 for a scale of f64.

    Args:
        data: integers of at most 32 bits, of any shape.
        scale: floats: a scalar or [1] for the whole tensor; [extent of `axis`]; or, with blocks, a
            tensor of the rank of `data`, which has one element for each block along `axis`.
        zero_point: integers of the shape of `scale` and the dtype of `data`; 0 by default.
        axis: the axis along which scales differ.
        block_size: the number of elements along `axis` that share a scale; 0 without blocks. The
            last block may be shorter.

    Returns:
        A tensor of the shape of `data` and the dtype of `scale`.

    Raises:
        UserError: a dtype, rank or extent does not fit, or the axis does not exist.

    Reference: ONNX DequantizeLinear; TVM, qnn.dequantize.

    Example::

        >>> A, S = rc.placeholder((2,), "int8", name="A"), rc.placeholder((), name="S")
        >>> B = rc.topi.dequantize(A, S)
        >>> a, s = np.array([3, -100], "int8"), np.array(0.5, "float32")
        >>> print(*rc.oracle.evaluate([B], {A: a, S: s}))
        [  1.5 -50. ]
    """
    require_same_integers(data, zero_point, "dequantize")
    layout = layout_of(
        data, scale, zero_point, axis=axis, block_size=block_size, operator="dequantize"
    )
    wide = _wide(scale)

    def element(*index: Expr) -> Expr:
        zero = None if zero_point is None else layout.read(zero_point, index)
        number = _difference(data[index], zero)
        product = number.astype(wide) * layout.read(scale, index).astype(wide)
        return product.astype(scale.dtype)

    return compute(data.shape, element, name="dequantize", tag=INJECTIVE)


def _difference(value: Expr, zero: Expr | None) -> Expr:
    """Return value - zero in an integer that holds each such difference."""
    wide = as_dtype("int64" if value.dtype.bits == 32 else "int32")
    if zero is None:
        return value.astype(wide)
    return value.astype(wide) - zero.astype(wide)


def _sample_dequantize(draws: Draws) -> Sample:
    dtype = draws.choice(_QUANTIZED)
    data = draws.array(draws.shape(), dtype)
    drawn = sample_scale(draws, data.shape, draws.float_dtype(), dtype)
    attributes = {"axis": drawn.axis, "block_size": drawn.block_size}
    return Sample((data, drawn.scale, drawn.zero_point), attributes)


@meaning_of(dequantize, sample=_sample_dequantize, pattern="broadcast")
def dequantize_numpy(
    data: Array,
    scale: Array,
    zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
) -> Array:
    number = data.astype(np.float64)
    if zero_point is not None:
        number = number - spread_numpy(zero_point, data.shape, axis, block_size)
    step = spread_numpy(scale, data.shape, axis, block_size).astype(np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(number * step).astype(scale.dtype)


def requantize(
    data: Tensor,
    input_scale: Tensor,
    input_zero_point: Tensor,
    output_scale: Tensor,
    output_zero_point: Tensor,
    *,
    axis: int = 1,
) -> Tensor:
    """Return quantized integers for another scale and zero point.

        round((q - input_zero_point) * (input_scale / output_scale)) + output_zero_point

    Quotient and product are computed in f64. A tie rounds to the even integer, and the sum is
    clamped to the limits of the dtype. NaN gives 0.

    Args:
        data: integers of at most 32 bits, such as the sums of a quantized convolution.
        input_scale: floats: a scalar, [1] or [extent of `axis`].
        input_zero_point: integers of the shape of `input_scale` and the dtype of `data`.
        output_scale: floats: a scalar, [1] or [extent of `axis`].
        output_zero_point: integers of the shape of `output_scale`. Their dtype is that of the
            result.
        axis: the axis along which scales differ.

    Returns:
        A tensor of the shape of `data` and the dtype of `output_zero_point`.

    Raises:
        UserError: a dtype, rank or extent does not fit, or the axis does not exist.

    Reference: TVM, qnn.requantize, with compute_dtype = "float64" and ties to even.

    Example::

        >>> A, S = rc.placeholder((2,), "int32", name="A"), rc.placeholder((), name="S")
        >>> Z, T = rc.placeholder((), "int32", name="Z"), rc.placeholder((), name="T")
        >>> U = rc.placeholder((), "int8", name="U")
        >>> B = rc.topi.requantize(A, S, Z, T, U)
        >>> feeds = {A: np.array([100, 7], "int32"), S: np.array(0.5, "float32")}
        >>> feeds |= {Z: np.array(0, "int32"), T: np.array(1, "float32"), U: np.array(0, "int8")}
        >>> print(*rc.oracle.evaluate([B], feeds))
        [50  4]
    """
    require_same_integers(data, input_zero_point, "requantize")
    require_quantized(output_zero_point, "requantize")
    given, wanted = (
        layout_of(data, scale, zero, axis=axis, block_size=0, operator="requantize")
        for scale, zero in (
            (input_scale, input_zero_point),
            (output_scale, output_zero_point),
        )
    )

    def element(*index: Expr) -> Expr:
        ratio = _in_f64(given.read(input_scale, index))
        ratio = ratio / _in_f64(wanted.read(output_scale, index))
        number = _difference(data[index], given.read(input_zero_point, index))
        zero = wanted.read(output_zero_point, index)
        return round_to_integer(_in_f64(number) * ratio, zero.dtype, zero)

    return compute(data.shape, element, name="requantize", tag=INJECTIVE)


def _in_f64(value: Expr) -> Expr:
    return value.astype(F64)


def _sample_requantize(draws: Draws) -> Sample:
    dtype = draws.choice(("int32", *_QUANTIZED))
    data = draws.array(draws.shape(), dtype)
    axis = draws.axis(data.ndim) if data.ndim else 0
    sizes = [(), (1,)] if not data.ndim else [(), (1,), (data.shape[axis],)]
    parameters: list[Array] = []
    for integers in (dtype, draws.choice(_QUANTIZED)):
        shape = draws.choice(sizes)
        parameters.append(draws.uniform(shape, 0.01, 2, draws.float_dtype()))
        parameters.append(draws.array(shape, integers))
    return Sample((data, *parameters), {"axis": axis})


@meaning_of(requantize, sample=_sample_requantize, pattern="broadcast")
def requantize_numpy(
    data: Array,
    input_scale: Array,
    input_zero_point: Array,
    output_scale: Array,
    output_zero_point: Array,
    *,
    axis: int = 1,
) -> Array:
    parameters = (input_scale, input_zero_point, output_scale, output_zero_point)
    step, zero, wanted_step, wanted_zero = (
        spread_numpy(parameter, data.shape, axis, 0).astype(np.float64)
        for parameter in parameters
    )
    with np.errstate(all="ignore"):
        number = (data - zero) * (step / wanted_step)
    target = as_dtype(output_zero_point.dtype)
    return round_to_integer_numpy(np.asarray(number), target, wanted_zero)


def fake_quantize(
    data: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    dtype: DTypeLike | None = None,
    bits: int | None = None,
) -> Tensor:
    """Return floats with the error of quantization: dequantize(quantize(x)).

    The gradient is that of the staircase: 0 for the data.

    Args:
        data: floats of any shape.
        scale: floats of the dtype of `data`, as `quantize` takes them.
        zero_point: integers of the shape of `scale`; 0 by default.
        axis: the axis along which scales differ.
        block_size: the number of elements along `axis` that share a scale; 0 without blocks.
        dtype: the dtype of the integers; that of the zero point by default, or uint8.
        bits: the number of bits of the integers; those of the dtype by default.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: a dtype, rank or extent does not fit, or the axis does not exist.

    Reference: B. Jacob et al., CVPR 2018, section 3; TVM, qnn.simulated_quantize.

    Example::

        >>> A, S = rc.placeholder((3,), name="A"), rc.placeholder((), name="S")
        >>> B = rc.topi.fake_quantize(A, S, dtype="int8")
        >>> a, s = np.array([0.3, -1.1, 1000], "float32"), np.array(0.5, "float32")
        >>> print(*rc.oracle.evaluate([B], {A: a, S: s}))
        [ 0.5 -1.  63.5]
    """
    require_float(data, "fake_quantize")
    require_float(scale, "fake_quantize")
    if scale.dtype != data.dtype:
        raise UserError(
            f"fake_quantize cannot combine {data.dtype} with a scale of {scale.dtype}",
            remedy="convert one by rc.topi.cast",
            earlier=[data.declaration(), scale.declaration()],
        )
    integers = _quantized(
        data,
        scale,
        zero_point,
        axis=axis,
        block_size=block_size,
        dtype=dtype,
        bits=bits,
        operator="fake_quantize",
    )
    return dequantize(integers, scale, zero_point, axis=axis, block_size=block_size)


@meaning_of(fake_quantize, sample=_sample_quantize, pattern="broadcast")
def fake_quantize_numpy(
    data: Array,
    scale: Array,
    zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    dtype: DTypeLike | None = None,
    bits: int | None = None,
) -> Array:
    integers = quantize_numpy(
        data,
        scale,
        zero_point,
        axis=axis,
        block_size=block_size,
        dtype=dtype,
        bits=bits,
    )
    return dequantize_numpy(
        integers, scale, zero_point, axis=axis, block_size=block_size
    )


def dynamic_quantize_linear(data: Tensor) -> list[Tensor]:
    """Return 8-bit integers, with a scale and a zero point that span all values and 0.

        scale = (max(0, x ...) - min(0, x ...)) / 255
        zero_point = clamp(round(-min(0, x ...) / scale))
        result = clamp(round(x / scale) + zero_point)

    A tie rounds to the even integer. If all values are 0, or there are none, the scale is 1. With
    NaN the scale is NaN, with an infinity it is infinite or NaN; then zero point and results are 0.

    Args:
        data: f32 of any shape.

    Returns:
        The quantized tensor of u8, the scale of f32, and the zero point of u8; the last two are
        scalars.

    Raises:
        UserError: `data` is not a tensor of f32.

    Reference: ONNX DynamicQuantizeLinear. The scale of zeros is that of ONNX Runtime.

    Example::

        >>> A = rc.placeholder((3,), name="A")
        >>> q, s, z = rc.topi.dynamic_quantize_linear(A)
        >>> print(*rc.oracle.evaluate([q, s, z], {A: np.array([-51, 0, 204], "float32")}))
        [  0  51 255] 1.0 51
    """
    require_float(data, "dynamic_quantize_linear")
    if data.dtype != F32:
        raise UserError(
            f"dynamic_quantize_linear takes f32, not {data.dtype}",
            remedy="convert it by rc.topi.cast",
            earlier=[data.declaration()],
        )
    zero = const(0.0, F32)
    greatest = _extreme(data, "greatest")
    least = _extreme(data, "least")

    def step() -> Expr:
        high = maths.maximum(greatest[()], zero)
        low = maths.minimum(least[()], zero)
        return maths.select(high == low, const(1.0, F32), (high - low) / 255.0)

    scale = compute((), lambda: step(), name="scale", tag=SHARED)

    def offset() -> Expr:
        low = maths.minimum(least[()], zero)
        return round_to_integer((zero - low) / scale[()], _U8)

    zero_point = compute((), lambda: offset(), name="zero_point", tag=SHARED)

    def element(*index: Expr) -> Expr:
        return round_to_integer(data[index] / scale[()], _U8, zero_point[()])

    result = compute(data.shape, element, name="quantized", tag=INJECTIVE)
    return [result, scale, zero_point]


def _extreme(data: Tensor, name: str) -> Tensor:
    """Return the greatest or the least element of all, as a scalar."""
    if not data.ndim:
        return compute((), lambda: data[()], name=name, tag=INJECTIVE)
    axes = [reduce_axis(size, f"k{place}") for place, size in enumerate(extents(data))]
    combine = reducer.max if name == "greatest" else reducer.min
    index = tuple(axis.var for axis in axes)
    return compute(
        (), lambda: combine(data[index], axis=axes), name=name, tag=REDUCTION
    )


def _sample_dynamic(draws: Draws) -> Sample:
    return Sample((draws.array(draws.shape(), "float32"),))


@meaning_of(dynamic_quantize_linear, pattern="opaque", sample=_sample_dynamic)
def dynamic_quantize_linear_numpy(data: Array) -> list[Array]:
    with np.errstate(all="ignore"):
        high = np.float64(data.max(initial=0))
        low = np.float64(data.min(initial=0))
        scale = np.float32(1 if high == low else (high - low) / 255)
        step = np.float64(scale)
        shift = round_to_integer_numpy(np.asarray(-low / step), _U8)
        quotient = np.asarray(data / step)
    result = round_to_integer_numpy(quotient, _U8, shift)
    return [result, np.asarray(scale, to_numpy(F32)), shift]
