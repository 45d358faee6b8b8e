"""Turn batch normalizations with constant statistics into a product and a sum.

Before::

    graph net(x: f32[N, 2]) -> (y) {
      const gamma: f32[2] = [1.0, 2.0]
      const beta: f32[2] = [0.0, 1.0]
      const mean: f32[2] = [3.0, 4.0]
      const variance: f32[2] = [4.0, 0.25]
      y: f32[N, 2] = batch_norm(x, gamma, beta, mean, variance) {epsilon=0.0}
    }

After::

    graph net(x: f32[N, 2]) -> (y) {
      const y.scale: f32[1, 2] = [0.5, 4.0]
      const y.shift: f32[1, 2] = [-1.5, -15.0]
      y.scaled: f32[N, 2] = multiply(x, y.scale)
      y: f32[N, 2] = add(y.scaled, y.shift)
    }

Requires: the statistics, gamma and beta are constants. Ensures: scale and shift are computed in f64
and rounded once, so that results differ only by rounding. A batch normalization whose scale is not
finite stays. Refuses: nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Array, Graph, GraphNode


class _Affine(NamedTuple):
    """A batch normalization as x * scale + shift."""

    scale: Array
    shift: Array


def simplify_inference(graph: Graph) -> Graph:
    """Return `graph` without batch normalizations of constants; the same object if it has none."""
    found = {node: affine for node in graph.nodes if (affine := _affine(graph, node))}
    if not found:
        return graph
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        affine = found.get(node)
        if affine is None:
            rewriter.copy(node)
            continue
        (data,) = rewriter.mapped(node.inputs[:1])
        scale = rewriter.constant(f"{node.name}.scale", affine.scale)
        shift = rewriter.constant(f"{node.name}.shift", affine.shift)
        scaled = rewriter.node("multiply", [data, scale], name=f"{node.name}.scaled")
        made = rewriter.node("add", [scaled, shift], name=node.name)
        rewriter.values[node.outputs[0]] = made
    return rewriter.finish_copy()


# A negative variance makes NaN, which is looked for below.
@np.errstate(all="ignore")
def _affine(graph: Graph, node: GraphNode) -> _Affine | None:
    """Return the product and the sum that a node is; None if it is something else."""
    if node.operator != "batch_norm":
        return None
    data, *parameters = node.inputs
    arrays = [graph.constants.get(value) for value in parameters if value is not None]
    if data is None or any(array is None for array in arrays):
        return None
    gamma, beta, mean, variance = (
        array.astype(np.float64) for array in arrays if array is not None
    )
    epsilon = node.attributes.get("epsilon", 1e-5)
    axis = node.attributes.get("axis", 1)
    assert isinstance(epsilon, float) and isinstance(axis, int)
    shape = [1] * len(data.shape)
    shape[axis] = len(gamma)
    narrow = next(array.dtype for array in arrays if array is not None)
    scale = gamma / np.sqrt(variance + epsilon)
    shift = beta - mean * scale
    rounded = _Affine(*(one.astype(narrow).reshape(shape) for one in (scale, shift)))
    # With an infinite scale, x * scale - mean * scale would be NaN where x - mean is not.
    return rounded if all(np.isfinite(one).all() for one in rounded) else None
