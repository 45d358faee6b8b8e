"""Move products with a constant for each channel into the weights of a convolution or product.

Before::

    graph net(x: f32[N, 2]) -> (y) {
      const before: f32[2] = [2.0, 0.5]
      const w: f32[2, 2] = [1.0, 2.0, 3.0, 4.0]
      const b: f32[2] = [1.0, -1.0]
      const after: f32[2] = [4.0, 8.0]
      p: f32[N, 2] = multiply(x, before)
      d: f32[N, 2] = dense(p, w, b)
      r: f32[N, 2] = relu(d)
      y: f32[N, 2] = multiply(r, after)
    }

After::

    graph net(x: f32[N, 2]) -> (y) {
      const d.scaled_weight.1: f32[2, 2] = [8.0, 4.0, 48.0, 16.0]
      const d.scaled_bias: f32[2] = [4.0, -8.0]
      d: f32[N, 2] = dense(x, d.scaled_weight.1, d.scaled_bias)
      y: f32[N, 2] = relu(d)
    }

A product that a convolution reads moves forward; a product that reads a convolution moves backward.
On its way it passes `relu` if no factor is negative. Backward it also passes the addition of a
constant, which is multiplied too.

Requires: weight, bias and factors are constant floats of one dtype, and nothing else reads a value
on the way. Ensures: weights and biases are multiplied in f64 and rounded once. Results differ only
by rounding, as long as no value overflows. A product that would overflow or underflow stays.
Refuses: nothing.

Reference: TVM, relay.transform.ForwardFoldScaleAxis and BackwardFoldScaleAxis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Array, Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain
from refcomp.graph.passes.scaled_weights import Scales, scaled, scaled_filters


@dataclass(frozen=True, slots=True)
class _Channels:
    """The axes of channels around a convolution or product.

    Attributes:
        data: the axis of the data.
        result: the axis of the result.
        weight_in: the axes of the weight that run over the channels of the data; empty if the data
            cannot be scaled.
        weight_out: the axes of the weight that run over the channels of the result.
    """

    data: int
    result: int
    weight_in: tuple[int, ...]
    weight_out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Fold:
    """A product that moves into an anchor.

    Attributes:
        product: the node that multiplies.
        data: the value that it multiplies.
        way: the nodes between the product and the anchor, in the order of the graph.
        anchor: the convolution or product of matrices.
        weight: the new weight.
        bias: the new bias; None if it stays.
        is_forward: True if the anchor comes after the product.
        added: constant on the way -> its new elements.
    """

    product: GraphNode
    data: Value
    way: tuple[GraphNode, ...]
    anchor: GraphNode
    weight: Array
    bias: Array | None
    is_forward: bool
    added: Mapping[Value, Array]

    @property
    def nodes(self) -> set[GraphNode]:
        return {self.product, self.anchor, *self.way}


def fold_scale_axis(graph: Graph) -> Graph:
    """Return `graph` with products in the weights; the same object if none can move."""
    # Two products may move into one anchor, so one sweep is not enough.
    while folds := _Finder(graph).folds():
        graph = _apply(graph, folds)
    return graph


class _Finder:
    """Finds the products of a graph that can move."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readers = graph.readers()
        self.makers = {value: n for n in graph.nodes for value in n.outputs}
        self.outputs = set(graph.outputs)

    def folds(self) -> list[_Fold]:
        """Return folds that have no node in common."""
        found: list[_Fold] = []
        used: set[GraphNode] = set()
        if not any(map(_channels, self.graph.nodes)):
            return found
        for node in self.graph.nodes:
            fold = self._fold_of(node)
            if fold is not None and not fold.nodes & used:
                found.append(fold)
                used |= fold.nodes
        return found

    def _fold_of(self, node: GraphNode) -> _Fold | None:
        if node.operator != "multiply" or not is_plain(node):
            return None
        for data, factor in (node.inputs, reversed(node.inputs)):
            if data is None or factor is None:
                continue
            if factor not in self.graph.constants:
                continue
            if data.shape == node.outputs[0].shape and data.dtype.is_float:
                factors = self.graph.constants[factor]
                return self._backward(node, data, factors) or self._forward(
                    node, data, factors
                )
        return None

    def _is_inside(self, value: Value) -> bool:
        """Return True if one node reads the value, and no caller does."""
        return len(self.readers[value]) == 1 and value not in self.outputs

    def _backward(self, product: GraphNode, data: Value, factor: Array) -> _Fold | None:
        way: list[GraphNode] = []
        added: dict[Value, Array] = {}
        value = data
        while self._is_inside(value) and value in self.makers:
            node = self.makers[value]
            channels = _channels(node)
            if channels is not None:
                axis = channels.result % len(data.shape)
                factors = _factors(factor, data, axis)
                if factors is None:
                    return None
                weight = self._scaled(node, 1, factors, channels.weight_out)
                bias = self._scaled(node, 2, factors, (-1,))
                if weight is None or (bias is None and _has_bias(node)):
                    return None
                return _Fold(
                    product, data, tuple(way), node, weight, bias, False, added
                )
            if node.operator == "add" and is_plain(node):
                source = self._scale_addend(node, factor, added)
            else:
                source = self._pass_relu(node, factor)
            if source is None or source.shape != data.shape:
                return None
            way.insert(0, node)
            value = source
        return None

    def _forward(self, product: GraphNode, data: Value, factor: Array) -> _Fold | None:
        way: list[GraphNode] = []
        value = product.outputs[0]
        while self._is_inside(value):
            (node,) = self.readers[value]
            channels = _channels(node)
            if channels is not None:
                if value is not node.inputs[0] or not channels.weight_in:
                    return None
                factors = _factors(factor, data, channels.data % len(data.shape))
                if factors is None:
                    return None
                weight = self._scaled(node, 1, factors, channels.weight_in)
                if weight is None:
                    return None
                return _Fold(product, data, tuple(way), node, weight, None, True, {})
            if self._pass_relu(node, factor) is None:
                return None
            way.append(node)
            value = node.outputs[0]
        return None

    def _pass_relu(self, node: GraphNode, factor: Array) -> Value | None:
        """Return the data of a relu, if a product may change places with it."""
        is_passed = node.operator == "relu" and is_plain(node) and (factor >= 0).all()
        return node.reads[0] if is_passed else None

    def _scale_addend(
        self, node: GraphNode, factor: Array, added: dict[Value, Array]
    ) -> Value | None:
        """Multiply the constant of an addition; return the other operand, or None."""
        for source, addend in (node.inputs, reversed(node.inputs)):
            if source is None or addend is None or addend not in self.graph.constants:
                continue
            product = scaled(self.graph.constants[addend], factor)
            # Only one node may see the scaled constant.
            if product is not None and self._is_inside(addend):
                added[addend] = product
                return source
        return None

    def _scaled(
        self, node: GraphNode, place: int, factors: Scales, axes: tuple[int, ...]
    ) -> Array | None:
        """Return a constant input times factors that run along `axes`; None if that cannot be."""
        value = node.inputs[place] if place < len(node.inputs) else None
        if value is None or value not in self.graph.constants:
            return None
        elements = self.graph.constants[value]
        if factors.size == 1:
            return scaled(elements, factors.reshape(()))
        shape = [1] * max(elements.ndim, 1)
        for axis in axes:
            shape[axis] = elements.shape[axis] if len(axes) > 1 else factors.size
        products = scaled(elements, factors.reshape(shape))
        is_filter = node.operator == "conv2d" and place == 1 and axes == (0,)
        # In the order of memory that choose_layout asks for.
        return (
            scaled_filters(elements, factors)
            if is_filter and products is not None
            else products
        )


def _has_bias(node: GraphNode) -> bool:
    return len(node.inputs) > 2 and node.inputs[2] is not None


def _channels(node: GraphNode) -> _Channels | None:
    """Return where the channels of an anchor are; None for any other node."""
    # With another dtype of the result, a factor would be rounded to the narrower one of weights.
    if node.attributes.get("out_dtype") is not None or not is_plain(node):
        return None
    is_grouped = node.attributes.get("groups", 1) != 1
    columns_first = bool(node.attributes.get("trans_b"))
    match node.operator:
        case "conv2d":
            return _Channels(1, 1, () if is_grouped else (1,), (0,))
        case "conv2d_nhwc":
            return _Channels(3, 3, () if is_grouped else (2,), (3,))
        case "depthwise_conv2d_nchw":
            return _Channels(1, 1, (0,), (0, 1))
        case "dense":
            return _Channels(-1, -1, (1,), (0,))
        case "gemm" | "matmul":
            weight = node.inputs[1]
            assert weight is not None
            is_matrix = len(weight.shape) == 2 and len(node.outputs[0].shape) >= 2
            if not is_matrix or node.attributes.get("trans_a"):
                return None
            rows = (1,) if columns_first else (0,)
            return _Channels(-1, -1, rows, (0,) if columns_first else (1,))
    return None


def _factors(factor: Array, data: Value, axis: int) -> Scales | None:
    """Return the factor of each channel, or one for all; None if it depends on other axes."""
    if factor.size == 1:
        return factor.astype(np.float64).reshape(1)
    shape = (1,) * (len(data.shape) - factor.ndim) + factor.shape
    if math.prod(shape[:axis] + shape[axis + 1 :]) != 1:
        return None
    return factor.astype(np.float64).reshape(-1)


def _apply(graph: Graph, folds: list[_Fold]) -> Graph:
    rewriter = GraphRewriter(graph)
    fold_of = {node: fold for fold in folds for node in fold.nodes}
    for node in graph.nodes:
        fold = fold_of.get(node)
        if fold is None:
            rewriter.copy(node)
        elif node is fold.product:
            rewriter.values[node.outputs[0]] = rewriter.values[fold.data]
        else:
            _add_changed(rewriter, fold, node)
    return rewriter.finish_copy()


def _add_changed(rewriter: GraphRewriter, fold: _Fold, node: GraphNode) -> None:
    """Add the anchor, or a node on the way, with its new constants."""
    inputs = rewriter.mapped(node.inputs)
    if node is fold.anchor:
        name = f"{node.name}.scaled_weight"
        inputs[1] = rewriter.constant(name, fold.weight, copy=False)
        if fold.bias is not None:
            name = f"{node.name}.scaled_bias"
            inputs[2] = rewriter.constant(name, fold.bias, copy=False)
    for place, value in enumerate(node.inputs):
        if value is not None and value in fold.added:
            inputs[place] = rewriter.constant(f"{node.name}.addend", fold.added[value])
    last = fold.way[-1] if fold.way else fold.anchor
    name = node.name
    if not fold.is_forward and node is last:
        # The product's result may be an output, which keeps its name.
        name = fold.product.name
    made = rewriter.node(node.operator, inputs, node.attributes, name)
    rewriter.values[node.outputs[0]] = made
