"""Quantization: to integers or narrow floats by scales, and back.

A scale belongs to the whole tensor, to each index along an axis, or to each block along an axis.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.foundation.dtype import F32, DType
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.conversions import (
    converted,
    is_narrow_float,
    plain_numbers,
    width_of,
)
from refcomp.frontend.onnx.element_types import (
    DOUBLE,
    ELEMENT_TYPES,
    FLOAT,
    FLOAT8E8M0,
    INT32,
    UINT8,
    element_type,
)
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value
from refcomp.graph.macros import NotKnownError


@dataclass(frozen=True, slots=True)
class _Scales:
    """An assignment of scales and zero points to the elements of a tensor.

    Attributes:
        data: the tensor.
        axis: the axis along which scales differ, counted from the first.
        block_size: the number of elements along the axis that share a scale; 0 without blocks.
    """

    data: Value
    axis: int
    block_size: int

    def spread(self, node: OnnxNode, parameter: Value) -> Value:
        """Return a scale or zero point that broadcasts to the shape of the data."""
        if not parameter.shape:
            return parameter
        if self.block_size:
            repeated = node.make(
                "repeat", [parameter], repeats=self.block_size, axis=self.axis
            )
            # The last block may be shorter.
            return node.make("slice_like", [repeated, self.data], axes=(self.axis,))
        if parameter.shape == (1,):
            return node.make("reshape", [parameter], shape=())
        following = len(self.data.shape) - self.axis - 1
        if not following:
            return parameter
        axes = tuple(range(1, 1 + following))
        return node.make("expand_dims", [parameter], axis=axes)


def _scales_of(node: OnnxNode, scale: Value) -> _Scales:
    data = node.required(0)
    rank = len(data.shape)
    block_size = int(node.attributes.get("block_size", 0))
    if block_size < 0:
        raise UserError(
            f"its attribute block_size is {block_size}",
            remedy="use a positive number, or 0 for no blocks",
        )
    axis = int(node.attributes.get("axis", 1))
    if not scale.shape or (scale.shape == (1,) and not block_size):
        return _Scales(data, 0, 0)
    # The default axis does not exist in a vector, whose elements have a scale each.
    place = 0 if rank == 1 else node.axis(axis, rank)
    if block_size:
        node.extents(data)
        node.extents(scale)
    elif len(scale.shape) == 1:
        pair = (data.shape[place], scale.shape[0])
        if pair[0] != pair[1] and not all(isinstance(one, int) for one in pair):
            raise NotKnownError
    return _Scales(data, place, block_size)


def _zero_point_of(node: OnnxNode, scale: Value) -> Value | None:
    """Return the zero point in the shape of the scale; None if it is left out."""
    zero_point = node.input(2)
    single: tuple[tuple[int, ...], ...] = ((), (1,))
    is_single = scale.shape in single
    if zero_point is None or zero_point.shape == scale.shape or not is_single:
        return zero_point
    if zero_point.shape not in single:
        return zero_point
    shape = (1,) * len(scale.shape)
    made = node.make("reshape", [zero_point], shape=shape)
    return node.typed(made, node.element_type(zero_point))


@converter("QuantizeLinear")
def quantize_linear(node: OnnxNode) -> Value:
    """Convert QuantizeLinear of any version."""
    scale = node.required(1)
    zero_point = _zero_point_of(node, scale)
    scales = _scales_of(node, scale)
    code = _quantized_type(node, zero_point)
    kind = _precision(node, scale)
    data = node.cast(plain_numbers(node, scales.data), kind)
    steps = node.cast(plain_numbers(node, scale), kind)
    if is_narrow_float(code):
        quotient = node.make("divide", [data, scales.spread(node, steps)])
        if zero_point is not None:
            zero = node.cast(plain_numbers(node, zero_point), kind)
            quotient = node.make("add", [quotient, scales.spread(node, zero)])
        saturate = bool(node.attributes.get("saturate", 1))
        return converted(node, quotient, code, saturate=saturate)
    if kind.bits == 16:
        # The text asks for a division in this precision, and `quantize` divides in f32.
        quotient = node.make("divide", [data, scales.spread(node, steps)])
        data = node.cast(quotient, F32)
        steps = node.make("ones_like", [node.cast(steps, F32)])
    made = node.make(
        "quantize",
        [data, steps, zero_point],
        axis=scales.axis,
        block_size=scales.block_size,
        dtype=str(ELEMENT_TYPES[code].storage),
        bits=width_of(code),
    )
    return node.typed(made, code)


def _quantized_type(node: OnnxNode, zero_point: Value | None) -> int:
    """Return the number of the element type of the result."""
    named = int(node.attributes.get("output_dtype", 0))
    if zero_point is None:
        return element_type(named or UINT8, "its output").code
    code = node.element_type(zero_point)
    if named not in (0, code):
        raise UserError(
            f"its output_dtype is not the type of its zero point, {zero_point}",
            remedy="leave output_dtype out, or give a zero point of this type",
        )
    return code


def _precision(node: OnnxNode, scale: Value) -> DType:
    """Return the dtype in which elements are divided by scales."""
    code = int(node.attributes.get("precision", 0))
    if not code:
        code = node.element_type(scale)
        # Powers of two and integers cannot hold quotients.
        code = {FLOAT8E8M0: FLOAT, INT32: DOUBLE}.get(code, code)
    storage = element_type(code, "its precision").storage
    if not storage.is_float:
        raise UserError(
            f"its precision is {ELEMENT_TYPES[code].name}",
            remedy="use float32, float16 or bfloat16",
        )
    return storage


@converter("DequantizeLinear")
def dequantize_linear(node: OnnxNode) -> Value:
    """Convert DequantizeLinear of any version."""
    scale = node.required(1)
    zero_point = _zero_point_of(node, scale)
    scales = _scales_of(node, scale)
    kind = _dequantized_type(node, scale)
    steps = node.cast(plain_numbers(node, scale), kind)
    if not is_narrow_float(node.element_type(scales.data)):
        return node.make(
            "dequantize",
            [scales.data, steps, zero_point],
            axis=scales.axis,
            block_size=scales.block_size,
        )
    number = plain_numbers(node, scales.data)
    if zero_point is not None:
        zero = plain_numbers(node, zero_point)
        number = node.make("subtract", [number, scales.spread(node, zero)])
    steps = scales.spread(node, steps)
    return node.make("multiply", [node.cast(number, kind), steps])


def _dequantized_type(node: OnnxNode, scale: Value) -> DType:
    code = int(node.attributes.get("output_dtype", 0)) or node.element_type(scale)
    if code == FLOAT8E8M0:
        return F32
    storage = element_type(code, "its output").storage
    if not storage.is_float:
        raise UserError(
            f"its output_dtype is {ELEMENT_TYPES[code].name}",
            remedy="use float32, float16 or bfloat16",
        )
    return storage


@converter("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: OnnxNode) -> list[Value]:
    """Convert DynamicQuantizeLinear: the integers, the scale, and the zero point."""
    return list(node.make_all("dynamic_quantize_linear", [node.required(0)]))
