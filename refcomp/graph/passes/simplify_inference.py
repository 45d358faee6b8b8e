"""Turn batch normalizations of constants into arithmetic, and drop idle dropouts.

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
      const y.mean: f32[1, 2] = [3.0, 4.0]
      const y.scale: f32[1, 2] = [0.5, 4.0]
      const y.beta: f32[1, 2] = [0.0, 1.0]
      y.centred: f32[N, 2] = subtract(x, y.mean)
      y.scaled: f32[N, 2] = multiply(y.centred, y.scale)
      y: f32[N, 2] = add(y.scaled, y.beta)
    }

The mean is subtracted first. x * scale - mean * scale would lose bits where x is near the mean.

A dropout of rate 0, whose mask nobody reads, becomes its data.

Requires: the statistics, gamma and beta are constants. Ensures: the scale is computed in f64 and
rounded once, so that results differ only by rounding. A dropout changes no bit.
A batch normalization whose scale is not finite stays. Refuses: nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Array, Graph, GraphNode
from refcomp.graph.passes.pointwise import is_plain


class _Affine(NamedTuple):
    """A batch normalization as (x - mean) * scale + beta, with constants that broadcast."""

    mean: Array
    scale: Array
    beta: Array


def simplify_inference(graph: Graph) -> Graph:
    """Return `graph` without batch normalizations of constants; the same object if it has none."""
    found = {node: affine for node in graph.nodes if (affine := _affine(graph, node))}
    idle = _idle_dropouts(graph)
    if not found and not idle:
        return graph
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if node in idle:
            dropped = node.inputs[1]
            assert dropped is not None
            rewriter.values[node.outputs[0]] = rewriter.values[dropped]
            continue
        affine = found.get(node)
        if affine is None:
            rewriter.copy(node)
            continue
        (data,) = rewriter.mapped(node.inputs[:1])
        mean, scale, beta = (
            rewriter.constant(f"{node.name}.{name}", array)
            for name, array in affine._asdict().items()
        )
        centred = rewriter.node("subtract", [data, mean], name=f"{node.name}.centred")
        scaled = rewriter.node("multiply", [centred, scale], name=f"{node.name}.scaled")
        made = rewriter.node("add", [scaled, beta], name=node.name)
        rewriter.values[node.outputs[0]] = made
    return rewriter.finish_copy()


def _idle_dropouts(graph: Graph) -> set[GraphNode]:
    """Return the dropouts that keep every element, and whose mask nobody reads."""
    readers = graph.readers()
    outputs = set(graph.outputs)
    return {
        node
        for node in graph.nodes
        if node.operator == "dropout"
        and is_plain(node)
        and node.attributes.get("rate") == 0.0
        # An output needs memory and a name of its own.
        and not outputs & set(node.outputs)
        and not readers[node.outputs[1]]
    }


# A negative variance makes NaN, which is looked for below.
@np.errstate(all="ignore")
def _affine(graph: Graph, node: GraphNode) -> _Affine | None:
    """Return the constants of a batch normalization; None for another node."""
    if node.operator != "batch_norm" or not is_plain(node):
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
    found = (one.astype(narrow).reshape(shape) for one in (mean, scale, beta))
    affine = _Affine(*found)
    return affine if np.isfinite(affine.scale).all() else None
