"""Fold a batch normalization after a convolution into the constants of the convolution.

Before::

    graph net(x: f32[N, 1, 4, 4]) -> (y) {
      const w: f32[2, 1, 1, 1] = [1.0, 2.0]
      const b: f32[2] = [3.0, 4.0]
      const gamma: f32[2] = [1.0, 2.0]
      const beta: f32[2] = [0.0, 1.0]
      const mean: f32[2] = [1.0, 2.0]
      const variance: f32[2] = [4.0, 0.25]
      c: f32[N, 2, 4, 4] = conv2d(x, w, b)
      y: f32[N, 2, 4, 4] = batch_norm(c, gamma, beta, mean, variance) {epsilon=0.0}
    }

After::

    graph net(x: f32[N, 1, 4, 4]) -> (y) {
      const c.folded_weight: f32[2, 1, 1, 1] = [0.5, 8.0]
      const c.folded_bias: f32[2] = [1.0, 9.0]
      y: f32[N, 2, 4, 4] = conv2d(x, c.folded_weight, c.folded_bias)
    }

The weights become w * s, and the bias (b - mean) * s + beta, with s = gamma / sqrt(variance +
epsilon).

Requires: weight, bias and the four parameters are constants, and nothing else reads y.
Ensures: the fold is computed in f64 and rounded once. Results differ only by rounding.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain
from refcomp.graph.passes.scaled_weights import scaled_filters


def fold_batch_norm(graph: Graph) -> Graph:
    """Return `graph` with batch normalizations folded, or the same object if none can be."""
    convolutions = [
        node for node in graph.nodes if node.operator == "conv2d" and is_plain(node)
    ]
    producers: dict[Value | None, GraphNode] = {c.outputs[0]: c for c in convolutions}
    folded: dict[GraphNode, GraphNode] = {}  # batch norm -> its convolution
    readers = graph.readers()
    for node in graph.nodes:
        conv = producers.get(node.inputs[0]) if node.inputs else None
        if conv is not None and _can_fold(graph, conv, node, readers[conv.outputs[0]]):
            folded[node] = conv
    if not folded:
        return graph
    replaced = set(folded.values())
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if node in folded:
            _add_folded(rewriter, folded[node], node)
        elif node not in replaced:
            rewriter.copy(node)
    return rewriter.finish_copy()


def _can_fold(
    graph: Graph, conv: GraphNode, node: GraphNode, readers: list[GraphNode]
) -> bool:
    if node.operator != "batch_norm" or node.attributes.get("axis", 1) != 1:
        return False
    # A factor of the weights would be rounded to their narrower dtype.
    if conv.attributes.get("out_dtype") is not None:
        return False
    if readers != [node] or conv.outputs[0] in graph.outputs:
        return False
    needed = [*conv.inputs[1:], *node.inputs[1:]]
    return all(value is None or value in graph.constants for value in needed)


def _add_folded(rewriter: GraphRewriter, conv: GraphNode, norm: GraphNode) -> None:
    data, weight, *rest = conv.inputs
    bias = rest[0] if rest else None
    gamma, beta, mean, variance = (_wide(rewriter, value) for value in norm.inputs[1:])
    epsilon = norm.attributes.get("epsilon", 1e-5)
    assert data is not None and weight is not None and isinstance(epsilon, float)
    scale = gamma / np.sqrt(variance + epsilon)
    old_bias = np.zeros_like(mean) if bias is None else _wide(rewriter, bias)
    old_weight = rewriter.graph.constants[weight]
    folded_weight = scaled_filters(old_weight, scale)
    folded_bias = ((old_bias - mean) * scale + beta).astype(old_weight.dtype)
    inputs = [
        rewriter.values[data],
        rewriter.constant(f"{conv.name}.folded_weight", folded_weight, copy=False),
        rewriter.constant(f"{conv.name}.folded_bias", folded_bias, copy=False),
    ]
    rewriter.values[norm.outputs[0]] = rewriter.node(
        "conv2d", inputs, conv.attributes, norm.name
    )


def _wide(rewriter: GraphRewriter, value: Value | None) -> npt.NDArray[np.float64]:
    assert value is not None
    return rewriter.graph.constants[value].astype(np.float64)
