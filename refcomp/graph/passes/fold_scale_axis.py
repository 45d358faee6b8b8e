"""Fold products with constants of the channels into the weights of the layer before or after.

Before::

    graph net(x: f32[N, 1, 4, 4]) -> (y) {
      const w: f32[2, 1, 1, 1] = [1.0, 2.0]
      const b: f32[2] = [3.0, 4.0]
      const s: f32[2, 1, 1] = [5.0, 6.0]
      const half: f32[1] = [0.5]
      h: f32[N, 1, 4, 4] = multiply(x, half)
      c: f32[N, 2, 4, 4] = conv2d(h, w, b)
      y: f32[N, 2, 4, 4] = multiply(c, s)
    }

After::

    graph net(x: f32[N, 1, 4, 4]) -> (y) {
      const c.weight.1: f32[2, 1, 1, 1] = [2.5, 6.0]
      const y.bias: f32[2] = [15.0, 24.0]
      y: f32[N, 2, 4, 4] = conv2d(x, c.weight.1, y.bias)
    }

A scale of the output channels scales weight and bias. A scale of the input channels scales the
weight.

Requires: scale, weight and bias are constants, and nothing else reads the value between product and
layer. Ensures: the weights are computed in f64 and rounded once, so that results differ only by
rounding. A scale stays if it would make a weight overflow, or too small to be exact. Refuses:
nothing.

Reference: T. Chen et al., NNVM, pass FoldScaleAxis, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Array, Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain
from refcomp.graph.passes.scaled_weights import (
    Scales,
    is_normal,
    scaled_along,
    scaled_filters,
)


@dataclass(frozen=True, slots=True)
class _Layer:
    """The axes of a node that multiplies by a weight."""

    out_axis: int  # of the weight: the channels of the result
    in_axis: (
        int | None
    )  # of the weight: the channels of the data; None if no scale may be folded
    channel_axis: int  # of data and result; -1 is the last one


@dataclass(frozen=True, slots=True)
class _Fold:
    """A product that can be folded into a layer."""

    product: GraphNode
    layer: GraphNode
    weight: Array
    bias: Array | None


def fold_scale_axis(graph: Graph) -> Graph:
    """Return `graph` with scales folded into weights; the same object if none can be."""
    while True:
        folded = _fold_first_ones(graph)
        if folded is graph:
            return graph
        graph = folded


def _fold_first_ones(graph: Graph) -> Graph:
    """Fold one scale into each layer, as long as no two folds concern one node."""
    readers = graph.readers()
    producers = {value: node for node in graph.nodes for value in node.outputs}
    folds: dict[GraphNode, _Fold] = {}
    busy: set[GraphNode] = set()
    for node in graph.nodes:
        for fold in (
            _fold_of_output(graph, node, readers, producers),
            _fold_of_input(graph, node, readers, producers),
        ):
            if fold is not None and not busy & {fold.product, fold.layer}:
                busy |= {fold.product, fold.layer}
                folds[node] = fold
    if not folds:
        return graph
    replaced = {
        one for fold in folds.values() for one in (fold.product, fold.layer)
    } - set(folds)
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if node in folds:
            _add_folded(rewriter, folds[node], node)
        elif node not in replaced:
            rewriter.copy(node)
    return rewriter.finish_copy()


def _add_folded(rewriter: GraphRewriter, fold: _Fold, last: GraphNode) -> None:
    """Add the layer with its weights. Its data are those of the product if that comes first."""
    data = fold.layer.inputs[0]
    if fold.product is not last:
        data = _scaled_operand(rewriter.graph, fold.product)
    inputs = rewriter.mapped([data])
    inputs.append(
        rewriter.constant(f"{fold.layer.name}.weight", fold.weight, copy=False)
    )
    if fold.bias is not None:
        inputs.append(rewriter.constant(f"{last.name}.bias", fold.bias, copy=False))
    elif fold.layer.inputs[2:]:
        inputs += rewriter.mapped(fold.layer.inputs[2:])
    made = rewriter.node(fold.layer.operator, inputs, fold.layer.attributes, last.name)
    rewriter.values[last.outputs[0]] = made


def _fold_of_output(
    graph: Graph,
    product: GraphNode,
    readers: dict[Value, list[GraphNode]],
    producers: dict[Value, GraphNode],
) -> _Fold | None:
    """Return the fold of a product into the layer that makes its operand."""
    value = _scaled_operand(graph, product)
    node = None if value is None else producers.get(value)
    if value is None or node is None or readers[value] != [product]:
        return None
    layer = _layer(graph, node)
    if layer is None or value in graph.outputs:
        return None
    weight = _constant(graph, node, 1)
    assert weight is not None
    count = weight.shape[layer.out_axis]
    scale = _scale_of(graph, product, value, layer.channel_axis, count)
    if scale is None:
        return None
    with np.errstate(all="ignore"):
        if node.operator == "conv2d":
            products = scaled_filters(weight, scale)
        else:
            products = scaled_along(weight, scale, layer.out_axis)
        bias = _constant(graph, node, 2)
        if bias is not None:
            wide = np.broadcast_to(
                bias, (*bias.shape[:-1], count) if bias.ndim else (count,)
            )
            bias = scaled_along(wide, scale, -1)
            if not np.isfinite(bias).all():
                return None
    if not is_normal(products, weight, scale):
        return None
    return _Fold(product, node, products, bias)


def _fold_of_input(
    graph: Graph,
    node: GraphNode,
    readers: dict[Value, list[GraphNode]],
    producers: dict[Value, GraphNode],
) -> _Fold | None:
    """Return the fold of the product that makes the data of a layer into the layer."""
    layer = _layer(graph, node)
    if layer is None or layer.in_axis is None:
        return None
    data = node.inputs[0]
    product = None if data is None else producers.get(data)
    if data is None or product is None or readers[data] != [node]:
        return None
    value = _scaled_operand(graph, product)
    if value is None or data in graph.outputs or value.shape != data.shape:
        return None
    weight = _constant(graph, node, 1)
    assert weight is not None
    count = weight.shape[layer.in_axis]
    scale = _scale_of(graph, product, data, layer.channel_axis, count)
    if scale is None:
        return None
    with np.errstate(all="ignore"):
        products = scaled_along(weight, scale, layer.in_axis)
    if not is_normal(products, weight, scale):
        return None
    return _Fold(product, node, products, None)


def _layer(graph: Graph, node: GraphNode) -> _Layer | None:
    """Return the axes of a layer with constant float weights; None for another node."""
    if not is_plain(node):
        return None
    get = node.attributes.get
    weight = _constant(graph, node, 1)
    has_bias = len(node.inputs) > 2 and node.inputs[2] is not None
    if weight is None or weight.dtype.kind != "f" or get("out_dtype") is not None:
        return None
    if has_bias and _constant(graph, node, 2) is None:
        return None
    if node.operator == "conv2d":
        return _Layer(0, 1 if get("groups", 1) == 1 else None, 1)
    if node.operator == "dense":
        return _Layer(0, 1, -1)
    if node.operator in ("matmul", "gemm") and weight.ndim == 2:
        is_transposed = bool(get("trans_b", False))
        in_axis = 1 if is_transposed else 0
        return _Layer(1 - in_axis, None if get("trans_a", False) else in_axis, -1)
    return None


def _constant(graph: Graph, node: GraphNode, place: int) -> Array | None:
    value = node.inputs[place] if len(node.inputs) > place else None
    return None if value is None else graph.constants.get(value)


def _scaled_operand(graph: Graph, node: GraphNode) -> Value | None:
    """Return the operand of a product with a constant; None for another node."""
    if node.operator != "multiply" or not is_plain(node):
        return None
    others = [v for v in node.inputs if v is not None and v not in graph.constants]
    return others[0] if len(others) == 1 else None


def _scale_of(
    graph: Graph, product: GraphNode, value: Value, channel_axis: int, count: int
) -> Scales | None:
    """Return the scale of each channel in f64; None if the constant varies along another axis."""
    (constant,) = (v for v in product.inputs if v in graph.constants)
    assert constant is not None
    array = graph.constants[constant]
    rank = len(value.shape)
    shape = (1,) * (rank - array.ndim) + array.shape
    place = channel_axis % rank
    others = shape[:place] + shape[place + 1 :]
    if len(shape) != rank or any(extent != 1 for extent in others):
        return None
    wide = array.astype(np.float64).reshape(-1)
    return np.broadcast_to(wide, (count,)) if wide.size in (1, count) else None
