"""Give quantized convolutions on hosts channels in blocks, and their constant weights in pairs.

`qlinear_conv2d` and `conv2d_integer` subtract a zero point from each weight that they read. The
weights of `quantized_conv2d_nchwc` are the differences, and two of them lie in each i32. So a host
adds the products of whole vectors of pairs by one instruction. A convolution of each channel by
itself becomes `quantized_depthwise_conv2d_nchwc`, which multiplies without pairs.

The ratio of the scales is computed once for each channel, by the operations of `qlinear_conv2d` in
their order. So no bit of a result changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Array, Graph, GraphNode, Value
from refcomp.topi.convolution.quantized_conv2d_nchwc import pair_channels_numpy
from refcomp.topi.operator import Attribute


class BlockRewriter(Protocol):
    """The rewriter of `block_channels`, as far as quantized convolutions need it."""

    graph: Graph
    rewriter: GraphRewriter
    plain: dict[Value, Value]  # old value -> new value [n, c, h, w]

    def as_plain(self, value: Value) -> None:
        """Let `plain` have a value."""

    def in_blocks(self, value: Value, block: int) -> Value:
        """Return a value in blocks of this length."""

    def length(self, channels: int) -> int:
        """Return the length of blocks for a number of channels; 0 if none fits."""

    def read_length(self, data: Value, depth: int, groups: int) -> int:
        """Return the length of the blocks in which an image is read; 0 if none fits."""

    def depthwise_length(self, data: Value, channels: int) -> int:
        """Return the length of the blocks of channels that are convolved alone; 0 for none."""

    def make(
        self,
        node: GraphNode,
        block: int,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute],
        operator: str = "",
    ) -> bool:
        """Add the node that computes a node's result in blocks."""


@dataclass(frozen=True, slots=True)
class _Places:
    """The places of a convolution's operands among its inputs; None for those that it lacks.

    Attributes:
        weight: the weight.
        weight_zero: the zero points of the weight.
        data_zero: the zero point of the data.
        scales: those of the data, the weight and the result.
        bias: the bias.
        zero: the zero point of the result.
    """

    weight: int
    weight_zero: int
    data_zero: int
    scales: tuple[int, int, int] | None = None
    bias: int | None = None
    zero: int | None = None


_PLACES = {
    "conv2d_integer": _Places(weight=1, data_zero=2, weight_zero=3),
    "qlinear_conv2d": _Places(
        scales=(1, 4, 6), data_zero=2, weight=3, weight_zero=5, zero=7, bias=8
    ),
}
QUANTIZED_CONVOLUTIONS = tuple(_PLACES)


def add_quantized_convolution(blocker: BlockRewriter, node: GraphNode) -> bool:
    """Add a quantized convolution in blocks, and return True; False if it has none.

    Args:
        blocker: the rewriter that knows which values are in blocks.
        node: any plain node.
    """
    places = _PLACES.get(node.operator)
    if places is None:
        return False
    data = node.inputs[0]
    weight = node.inputs[places.weight]
    weights = _weights(blocker, node, places)
    if data is None or weight is None or weights is None:
        return False
    outs, depth, *_ = weights.shape
    groups = node.attributes.get("groups", 1)
    assert isinstance(groups, int)
    is_depthwise = groups == outs and depth == 1 and groups > 1
    if is_depthwise:
        block = read = blocker.depthwise_length(data, outs)
    else:
        block = blocker.length(outs // groups)
        read = blocker.read_length(data, depth, groups)
    if not block or not read:
        return False
    attributes = dict(node.attributes)
    if is_depthwise:
        del attributes["groups"]
        operator = "quantized_depthwise_conv2d_nchwc"
        packed = _interleaved(weights, block)
    else:
        operator = "quantized_conv2d_nchwc"
        packed = pair_channels_numpy(weights, read, block)
    inputs = [
        blocker.in_blocks(data, read),
        blocker.rewriter.constant(f"{weight.name}.pairs", packed, copy=False),
        _ratio(blocker, node, places, outs, block),
        _vector(blocker, _input(node, places.bias), outs, block),
        _plain(blocker, _input(node, places.data_zero)),
        _plain(blocker, _input(node, places.zero)),
    ]
    return blocker.make(node, block, inputs, attributes, operator)


def _weights(blocker: BlockRewriter, node: GraphNode, places: _Places) -> Array | None:
    """Return the weights less their zero points; None unless both are constants."""
    constants = blocker.graph.constants
    weight = _input(node, places.weight)
    zero = _input(node, places.weight_zero)
    if weight is None or weight not in constants:
        return None
    wide = constants[weight].astype(np.int32)
    if zero is None:
        return wide
    if zero not in constants:
        return None
    return wide - constants[zero].astype(np.int32).reshape(-1, 1, 1, 1)


def _interleaved(weights: Array, block: int) -> Array:
    """Return the weights [o, 1, kh, kw] of single channels as [blocks, kh, kw, block] of int16."""
    outs, _, *kernel = weights.shape
    blocks = weights.reshape(outs // block, block, *kernel).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(blocks.astype(np.int16))


def _ratio(
    blocker: BlockRewriter, node: GraphNode, places: _Places, outs: int, block: int
) -> Value | None:
    """Return data_scale * weight_scale / y_scale: one number, or [blocks, block]."""
    if places.scales is None:
        return None
    data, weight, result = (
        _plain(blocker, _input(node, place)) for place in places.scales
    )
    product = blocker.rewriter.node("multiply", [data, weight], {}, f"{node.name}.unit")
    ratio = blocker.rewriter.node("divide", [product, result], {}, f"{node.name}.ratio")
    if all(extent == 1 for extent in ratio.shape):
        return ratio
    return _reshaped(blocker, ratio, outs, block)


def _vector(
    blocker: BlockRewriter, value: Value | None, outs: int, block: int
) -> Value | None:
    plain = _plain(blocker, value)
    return None if plain is None else _reshaped(blocker, plain, outs, block)


def _reshaped(blocker: BlockRewriter, value: Value, outs: int, block: int) -> Value:
    shape = {"shape": (outs // block, block)}
    return blocker.rewriter.node("reshape", [value], shape, f"{value.name}.blocks")


def _plain(blocker: BlockRewriter, value: Value | None) -> Value | None:
    if value is None:
        return None
    blocker.as_plain(value)
    return blocker.plain[value]


def _input(node: GraphNode, place: int | None) -> Value | None:
    if place is None or place >= len(node.inputs):
        return None
    return node.inputs[place]
