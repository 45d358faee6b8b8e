"""Compute equal nodes once: nodes with equal operators and attributes that read the same values.

Before::

    graph net(x: f32[N]) -> (y) {
      const one: f32[1] = [1.0]
      const uno: f32[1] = [1.0]
      a: f32[N] = add(x, one)
      b: f32[N] = add(x, uno)
      y: f32[N] = multiply(a, b)
    }

After::

    graph net(x: f32[N]) -> (y) {
      const one: f32[1] = [1.0]
      a: f32[N] = add(x, one)
      y: f32[N] = multiply(a, a)
    }

Requires: nothing. Ensures: equal constants of at most 64 KiB become one, too. A node that makes an
output stays, since an output has a name and memory of its own. Random operators take their key as
an input, so that equal ones make equal numbers. Refuses: nothing.

Reference: S. Muchnick, "Advanced Compiler Design and Implementation", 1997, section 12.4 (value
numbering).
"""

from __future__ import annotations

from collections.abc import Hashable

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Array, Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain
from refcomp.graph.structure import node_key

_MAX_BYTES = 1 << 16  # of a constant whose elements are compared


def merge_equal_nodes(graph: Graph) -> Graph:
    """Return `graph` without repeated nodes; the same object if it has none."""
    kept: dict[Value, Value] = {}  # value -> the equal value that stays
    known: dict[Hashable, Value] = {}
    outputs = set(graph.outputs)
    for value, array in graph.constants.items():
        key = _constant_key(value, array)
        first = known.setdefault(key, value)
        if first is not value and value not in outputs:
            kept[value] = first
    repeated: dict[GraphNode, GraphNode] = {}
    nodes: dict[Hashable, GraphNode] = {}
    for node in graph.nodes:
        if not is_plain(node):
            continue
        reads = tuple(kept.get(v, v) if v is not None else None for v in node.inputs)
        key = (node_key(node), reads)
        first_node = nodes.setdefault(key, node)
        if first_node is not node and not outputs & set(node.outputs):
            repeated[node] = first_node
            kept.update(zip(node.outputs, first_node.outputs, strict=True))
    if not kept:
        return graph
    rewriter = GraphRewriter(graph)
    for value, first in kept.items():
        if value in graph.constants:
            rewriter.values[value] = rewriter.values[first]
    for node in graph.nodes:
        if node not in repeated:
            rewriter.copy(node)
            continue
        for value in node.outputs:
            rewriter.values[value] = rewriter.values[kept[value]]
    return rewriter.finish_copy()


def _constant_key(value: Value, array: Array) -> Hashable:
    if array.nbytes > _MAX_BYTES:
        return value
    return (value.dtype, array.shape, array.tobytes())
