"""Find layers whose operands are dequantized and whose result is quantized, and add them as one.

A layer is a convolution or a product of matrices, perhaps with a bias and a `relu`. Its sums are
integers in units of the data's scale times the weight's scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Array, Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain
from refcomp.topi.operator import Attribute

_Exact = npt.NDArray[np.float64]

_UNIT = 2.0**-24  # a rounding to f32 is relatively off by at most this
# Roundings of both graphs. Before: two dequantized operands, the sum, a bias and its addition, a
# division. After: the cast of the sum, the product and quotient of scales, the product.
_ROUNDINGS = 12
_MAX_SUM = 2.0**31
_LEAST = float(np.finfo(np.float32).smallest_normal)
_GREATEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """The constant parameters of a quantized tensor.

    Attributes:
        floats: the scale, a scalar or a vector.
        zero: the zero point, of the shape of `floats`.
        dtype: the dtype of the integers.
        axis: the axis of a vector.
    """

    floats: Array
    zero: Array
    dtype: DType
    axis: int

    @property
    def is_per_axis(self) -> bool:
        return self.floats.size > 1

    @property
    def exact(self) -> _Exact:
        return self.floats.astype(np.float64)

    def is_same(self, other: Scale) -> bool:
        """Return True if both are one scale for all elements, and equal."""
        if self.is_per_axis or other.is_per_axis:
            return False
        mine = (self.dtype, float(self.floats), int(self.zero))
        return mine == (other.dtype, float(other.floats), int(other.zero))

    def is_near(self, other: Scale) -> bool:
        """Return True if integers of the other scale give quotients without overflow or doubt."""
        ratio = float(other.exact / self.exact)
        greatest = float(other.dtype.max_value) - float(other.dtype.min_value)
        return greatest * ratio * _ROUNDINGS * _UNIT < 1


def scale_of(graph: Graph, node: GraphNode) -> Scale | None:
    """Return the scale of a `quantize` or `dequantize`; None if it is not a plain constant."""
    data = node.inputs[0]
    floats = _constant(graph, node, 1)
    if data is None or floats is None or not is_plain(node):
        return None
    integers = data.dtype if node.operator == "dequantize" else node.outputs[0].dtype
    bits = node.attributes.get("bits")
    if node.attributes.get("block_size", 0) or bits not in (None, integers.bits):
        return None
    given = len(node.inputs) > 2 and node.inputs[2] is not None
    zero = _constant(graph, node, 2)
    if given and zero is None:
        return None
    # Quotients by other scales may overflow, and f16 does not hold all of 8 bits exactly.
    is_plain_float = floats.dtype in (np.float32, np.float64)
    if not is_plain_float or not ((floats >= _LEAST) & (floats <= _GREATEST)).all():
        return None
    if float(floats.max(initial=0)) * 2.0**integers.bits > _GREATEST:
        return None
    if zero is None:
        zero = np.zeros(floats.shape, to_numpy(integers))
    shape = () if floats.size == 1 else floats.shape
    axis = node.attributes.get("axis", 1)
    assert isinstance(axis, int)
    if shape:
        axis %= len(data.shape)
    return Scale(floats.reshape(shape), zero.reshape(shape), integers, axis)


@dataclass(frozen=True, slots=True)
class QuantizedLayer:
    """A convolution or product of matrices on integers.

    Attributes:
        anchor: the node that is replaced.
        integers: the data.
        data: the scale of the data.
        weight_value: the constant that the graph has as weight.
        weight: its scale: one, or one for each channel of the result.
        matrix: the weight as [out, in], for a product of matrices; None for a convolution.
        bias: the bias in units of both scales; None without one.
        has_relu: True if no result may be less than the zero point.
        result: the scale of the result.
    """

    anchor: GraphNode
    integers: Value
    data: Scale
    weight_value: Value
    weight: Scale
    matrix: Array | None
    bias: Array | None
    has_relu: bool
    result: Scale

    def add(self, rewriter: GraphRewriter, name: str) -> Value:
        """Add the operators on integers, and return the result, which has a name."""
        if self.result.dtype.bits == 8:
            return self._add_rounded(rewriter, name)
        return self._add_requantized(rewriter, name)

    def _add_rounded(self, rewriter: GraphRewriter, name: str) -> Value:
        """Add one operator, whose results have 8 bits."""
        read = rewriter.values[self.integers]
        by_rows = self.anchor.operator == "matmul" and not _get(self.anchor, "trans_b")
        uses_matmul = by_rows and self.bias is None
        weight = self._weight(rewriter, name, is_transposed=uses_matmul)
        data_scale, data_zero = self._scale(rewriter, name, "x", self.data)
        weight_scale, weight_zero = self._scale(rewriter, name, "w", self.weight)
        scale, zero = self._scale(rewriter, name, "y", self.result)
        bias = None
        if self.bias is not None:
            bias = rewriter.constant(f"{name}.bias", self.bias)
        if self.matrix is None:
            inputs = [read, data_scale, data_zero, weight, weight_scale, weight_zero]
            inputs += [scale, zero]
            return rewriter.node(
                "qlinear_conv2d", [*inputs, bias], self.anchor.attributes, name
            )
        if uses_matmul:
            inputs = [read, data_scale, data_zero, weight, weight_scale, weight_zero]
            return rewriter.node("qlinear_matmul", [*inputs, scale, zero], name=name)
        scales = [data_scale, weight_scale, scale]
        zeros = [data_zero, weight_zero, zero]
        return rewriter.node(
            "quantized_dense", [read, weight, *scales, bias, *zeros], name=name
        )

    def _add_requantized(self, rewriter: GraphRewriter, name: str) -> Value:
        """Add an operator that makes sums, the bias, and a change of scale."""
        read = rewriter.values[self.integers]
        weight = self._weight(rewriter, name, is_transposed=True)
        zeros = [
            rewriter.constant(f"{name}.zx", self.data.zero),
            rewriter.constant(f"{name}.zw", self.weight.zero),
        ]
        is_convolution = self.matrix is None
        operator = "conv2d_integer" if is_convolution else "matmul_integer"
        attributes = self.anchor.attributes if is_convolution else {}
        sums = rewriter.node(
            operator, [read, weight, *zeros], attributes, f"{name}.sums"
        )
        if self.bias is not None:
            shape = (-1, 1, 1) if is_convolution else (-1,)
            bias = rewriter.constant(f"{name}.bias", self.bias.reshape(shape))
            sums = rewriter.node("add", [sums, bias], name=f"{name}.biased")
        unit = self.data.exact * self.weight.exact
        inputs = [
            sums,
            rewriter.constant(f"{name}.unit", unit),
            rewriter.constant(f"{name}.no_shift", np.zeros(unit.shape, np.int32)),
            *self._scale(rewriter, name, "y", self.result),
        ]
        axis = 1 if is_convolution else -1
        return rewriter.node("requantize", inputs, {"axis": axis}, name)

    def _weight(
        self, rewriter: GraphRewriter, name: str, *, is_transposed: bool
    ) -> Value:
        """Return the weight as the operator reads it; of a matrix perhaps the transpose."""
        kept = rewriter.values[self.weight_value]
        if self.matrix is None:
            return kept
        wanted = self.matrix.T if is_transposed else self.matrix
        if np.array_equal(wanted, rewriter.graph.constants[self.weight_value]):
            return kept
        return rewriter.constant(f"{name}.weight", np.ascontiguousarray(wanted))

    def _scale(
        self, rewriter: GraphRewriter, name: str, operand: str, scale: Scale
    ) -> tuple[Value, Value]:
        """Add a scale, in the dtype that all three scales have, and its zero point."""
        widest = np.result_type(
            self.data.floats, self.weight.floats, self.result.floats
        )
        floats = scale.floats.astype(widest)
        return (
            rewriter.constant(f"{name}.s{operand}", floats),
            rewriter.constant(f"{name}.z{operand}", scale.zero),
        )


def find_layer(
    graph: Graph,
    makers: Mapping[Value, GraphNode],
    is_inside: Callable[[Value], bool],
    quantize: GraphNode,
    result: Scale,
) -> QuantizedLayer | None:
    """Return the layer whose result a `quantize` reads; None if it cannot be converted.

    Args:
        graph: the graph.
        makers: value -> the node that makes it.
        is_inside: returns True for a value that only one node reads.
        quantize: the node.
        result: its scale.
    """
    value = quantize.inputs[0]
    has_relu = False
    addend: Array | None = None
    for _ in range(3):
        node = None if value is None else makers.get(value)
        if value is None or node is None or not is_inside(value) or not is_plain(node):
            return None
        if node.operator == "relu" and addend is None and not has_relu:
            has_relu = True
            value = node.inputs[0]
        elif node.operator == "add" and addend is None:
            places = [p for p, v in enumerate(node.inputs) if v in graph.constants]
            if len(places) != 1:
                return None
            addend = _constant(graph, node, places[0])
            value = node.inputs[1 - places[0]]
            if value is None or value.shape != node.outputs[0].shape:
                return None
        else:
            return _layer_at(graph, makers, node, addend, has_relu, result)
    return None


def _layer_at(
    graph: Graph,
    makers: Mapping[Value, GraphNode],
    anchor: GraphNode,
    addend: Array | None,
    has_relu: bool,
    result: Scale,
) -> QuantizedLayer | None:
    """Return the layer of an anchor, if its operands are dequantized constants and data."""
    kind = _kind(anchor)
    read = makers.get(anchor.inputs[0]) if kind and anchor.inputs[0] else None
    by = makers.get(anchor.inputs[1]) if read and anchor.inputs[1] else None
    if kind is None or read is None or by is None:
        return None
    if read.operator != "dequantize" or by.operator != "dequantize":
        return None
    data = scale_of(graph, read)
    weight = scale_of(graph, by)
    integers = read.inputs[0]
    weight_value = by.inputs[0]
    if data is None or weight is None or integers is None or data.is_per_axis:
        return None
    elements = _constant(graph, by, 0)
    if elements is None or weight_value is None or len(integers.shape) < 2:
        return None
    channel_axis, is_convolution = kind
    if weight.is_per_axis and weight.axis != channel_axis:
        return None
    if data.dtype.bits != 8 or weight.dtype.bits != 8:
        return None
    rows = elements if channel_axis == 0 else elements.T
    bias = _bias(graph, makers, anchor, addend, len(rows), is_convolution)
    if bias is None:
        return None
    has_bias = bool(bias.any())
    whole = _integer_bias(rows, bias, data, weight, result)
    if whole is None:
        return None
    return QuantizedLayer(
        anchor=anchor,
        integers=integers,
        data=data,
        weight_value=weight_value,
        weight=weight,
        matrix=None if is_convolution else rows,
        bias=whole if has_bias else None,
        has_relu=has_relu,
        result=result,
    )


def _kind(node: GraphNode) -> tuple[int, bool] | None:
    """Return the axis of the weight that the channels of the result have, and True for images."""
    if _get(node, "out_dtype") is not None or not is_plain(node):
        return None
    if node.operator == "conv2d":
        return 0, True
    if node.operator == "dense":
        return 0, False
    weight = node.inputs[1] if node.operator in ("gemm", "matmul") else None
    if weight is None or len(weight.shape) != 2 or _get(node, "trans_a"):
        return None
    if _get(node, "alpha", 1.0) != 1.0 or _get(node, "beta", 1.0) != 1.0:
        return None
    return (0 if _get(node, "trans_b") else 1), False


def _bias(
    graph: Graph,
    makers: Mapping[Value, GraphNode],
    anchor: GraphNode,
    addend: Array | None,
    count: int,
    is_convolution: bool,
) -> _Exact | None:
    """Return the bias of each channel, which is 0 without one; None if it is something else."""
    total = np.zeros(count)
    given = anchor.inputs[2] if len(anchor.inputs) > 2 else None
    if given is not None:
        floats = _known_floats(graph, makers, given)
        if floats is None or (floats.size != 1 and floats.shape[-1] != floats.size):
            return None
        if floats.size not in (1, count):
            return None
        total = total + floats.reshape(-1)
    if addend is None:
        return total
    rank = len(anchor.outputs[0].shape)
    place = 1 if is_convolution else rank - 1
    shape = (1,) * (rank - addend.ndim) + addend.shape
    others = shape[:place] + shape[place + 1 :]
    if any(extent != 1 for extent in others) or shape[place] not in (1, count):
        return None
    return total + addend.astype(np.float64).reshape(-1)


def _known_floats(
    graph: Graph, makers: Mapping[Value, GraphNode], value: Value
) -> _Exact | None:
    """Return the elements of a constant, or of a dequantized one."""
    if value in graph.constants:
        return graph.constants[value].astype(np.float64)
    node = makers.get(value)
    if node is None or node.operator != "dequantize":
        return None
    scale = scale_of(graph, node)
    integers = _constant(graph, node, 0)
    if scale is None or integers is None or integers.ndim > 1:
        return None
    return (integers.astype(np.float64) - scale.zero) * scale.exact


@np.errstate(all="ignore")
def _integer_bias(
    rows: Array, bias: _Exact, data: Scale, weight: Scale, result: Scale
) -> Array | None:
    """Return the bias in units of both scales; None if results could be off by two quanta.

    Args:
        rows: the weight, whose first axis are the channels of the result.
        bias: the bias of each channel.
        data: the scale of the data.
        weight: the scale of the weight.
        result: the scale of the result.
    """
    zero = weight.zero.astype(np.int64).reshape(-1, *[1] * (rows.ndim - 1))
    sizes = np.abs(rows.astype(np.int64) - zero)
    sums = sizes.reshape(len(rows), -1).sum(axis=1).astype(np.float64)
    shift = int(data.zero)
    reach = max(data.dtype.max_value - shift, shift - data.dtype.min_value)
    unit = np.broadcast_to(data.exact * weight.exact, (len(rows),))
    ratio = unit / result.exact
    whole = np.rint(bias / unit)
    greatest = sums * reach + np.abs(whole)
    rest = np.abs(bias - whole * unit) / result.exact
    # NaN compares false.
    is_small = (greatest < _MAX_SUM) & (greatest * ratio < _GREATEST)
    is_near = greatest * ratio * _ROUNDINGS * _UNIT + rest < 1
    is_normal = (unit >= _LEAST) & (ratio >= _LEAST) & (ratio <= _GREATEST)
    if not (is_small & is_near & is_normal).all():
        return None
    return np.asarray(whole.astype(np.int32))


def _constant(graph: Graph, node: GraphNode, place: int) -> Array | None:
    value = node.inputs[place] if place < len(node.inputs) else None
    return None if value is None else graph.constants.get(value)


def _get(
    node: GraphNode, name: str, default: Attribute | None = None
) -> Attribute | None:
    return node.attributes.get(name, default)
