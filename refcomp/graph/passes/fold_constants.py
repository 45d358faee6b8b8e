"""Compute nodes whose inputs are all constants, by the numpy meaning of their operators.

Before:  const w; t = transpose(w); y = conv2d_nhwc(x, t)
After:   const t; y = conv2d_nhwc(x, t)

Ensures: the time is proportional to the size of the results, which is bounded. Operators with loops
of their own, such as convolutions, stay: otherwise a model could stall the compiler.
"""

from __future__ import annotations

import math

import numpy as np

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.constants import aligned
from refcomp.graph.evaluate import evaluate_node
from refcomp.graph.graph import Array, Graph, GraphNode, Value
from refcomp.graph.infer import FUSED
from refcomp.graph.operators import find_operator

_MAX_ELEMENTS = 1 << 26  # of a result: 256 MiB of f32


def fold_constants(graph: Graph) -> Graph:
    """Return `graph` with its constant nodes computed; the same object if it has none."""
    known: dict[Value, Array] = dict(graph.constants)
    foldable: set[GraphNode] = set()
    for node in graph.nodes:
        if all(value in known for value in node.reads) and _is_cheap(node):
            known.update(zip(node.outputs, evaluate_node(node, known), strict=True))
            foldable.add(node)
    if not foldable:
        return graph
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if node not in foldable:
            rewriter.copy(node)
            continue
        for value in node.outputs:
            # The meaning of a transpose is a view, which is copied here, and only once.
            ready = aligned(np.asarray(known[value]))
            rewriter.values[value] = rewriter.constant(value.name, ready, copy=False)
    return rewriter.finish_copy()


def _is_cheap(node: GraphNode) -> bool:
    if node.operator == FUSED or find_operator(node.operator).pattern == "anchor":
        return False
    # Constants have no symbolic extents, so these results have none either.
    sizes = (math.prod(d for d in v.shape if isinstance(d, int)) for v in node.outputs)
    return max(sizes) <= _MAX_ELEMENTS
