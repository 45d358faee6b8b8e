"""Compute nodes whose inputs are all constants, by the numpy meaning of their operators.

Before::

    graph net(x: f32[N, 2]) -> (y) {
      const w: f32[2, 2] = [1.0, 2.0, 3.0, 4.0]
      t: f32[2, 2] = transpose(w) {axes=[1, 0]}
      y: f32[N, 2] = matmul(x, t)
    }

After::

    graph net(x: f32[N, 2]) -> (y) {
      const t: f32[2, 2] = [1.0, 3.0, 2.0, 4.0]
      y: f32[N, 2] = matmul(x, t)
    }

Requires: nothing. Ensures: the time is proportional to the size of the results, which is bounded,
or at most twice that of the constants that are read. Operators with loops of their own, such as
convolutions, stay. Without both rules, a small model could stall the compiler. Refuses: nothing.

Weights are most of a model's memory, so a chain of layouts is one copy: all steps but the last are
views of numpy. A result that only other constant nodes read is dropped after the last of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from refcomp.foundation.mapped_files import give_back
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.constants import aligned
from refcomp.graph.evaluate import evaluate_node
from refcomp.graph.graph import Array, Graph, GraphNode, Value
from refcomp.graph.passes.padded_panels import find_padded_panels
from refcomp.graph.passes.pointwise import is_plain, pattern_of
from refcomp.topi.movement.layouts import layout_view

# Of a result that is larger than the constants that are read: 256 MiB of f32.
_MAX_ELEMENTS = 1 << 26
# Operators that have kernels of their own, but only copy elements.
_COPIES = ("concatenate", "pad")
# Operators that lay out weights. Their results may be twice as large as what is read: padding fills
# the last panel or block, and the weights of Winograd's filtering are 16/9 of the kernel's.
_LAYOUTS = (*_COPIES, "conv2d_nchwc_winograd_weight")


def fold_constants(graph: Graph) -> Graph:
    """Return `graph` with its constant nodes computed; the same object if it has none."""
    folded = _foldable(graph)
    if not folded:
        return graph
    readers_left = Counter(value for node in folded for value in node.reads)
    kept = set(graph.outputs)
    kept.update(v for node in graph.nodes if node not in folded for v in node.reads)
    known: dict[Value, Array] = dict(graph.constants)
    all_panels = find_padded_panels(graph, folded)
    panels_of = {panels.turn: panels for panels in all_panels}
    inner = {node for panels in all_panels for node in (panels.pad, panels.split)}
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if node not in folded:
            rewriter.copy(node)
            continue
        if node in inner:
            continue
        panels = panels_of.get(node)
        reads = node.reads
        if panels is None:
            results = _compute(node, known)
        else:
            reads = (panels.matrix,)
            results = [panels.compute(known[panels.matrix])]
        for value, elements in zip(node.outputs, results, strict=True):
            if value in kept:
                # The meaning of a transpose is a view, which is copied here, and only once.
                elements = aligned(elements)
                made = rewriter.constant(value.name, elements, copy=False)
                rewriter.values[value] = made
            if readers_left[value]:
                known[value] = elements
        for value in reads:
            readers_left[value] -= 1
            if not readers_left[value]:
                give_back(known.pop(value))
    return rewriter.finish_copy()


def _foldable(graph: Graph) -> set[GraphNode]:
    """Return the nodes that depend on constants only and are cheap."""
    known = set(graph.constants)
    found: set[GraphNode] = set()
    for node in graph.nodes:
        if all(value in known for value in node.reads) and _is_cheap(node):
            known.update(node.outputs)
            found.add(node)
    return found


def _compute(node: GraphNode, known: Mapping[Value, Array]) -> list[Array]:
    """Return the outputs of a node: views of its inputs where numpy has such views."""
    if is_plain(node) and node.operator == "reshape":
        extents = [dim for dim in node.outputs[0].shape if isinstance(dim, int)]
        return [known[node.reads[0]].reshape(extents)]
    if is_plain(node) and node.operator == "layout_transform":
        layouts = [str(node.attributes[name]) for name in ("src_layout", "dst_layout")]
        return [layout_view(known[node.reads[0]], *layouts)]
    return list(map(np.asarray, evaluate_node(node, known)))


def _is_cheap(node: GraphNode) -> bool:
    # Floats that are made from nothing, such as a window, are for kernels to compute.
    if not node.reads and any(value.dtype.is_float for value in node.outputs):
        return False
    has_loops = pattern_of(node) in ("reduction", "anchor", "opaque")
    if has_loops and not (is_plain(node) and node.operator in _COPIES):
        return False
    # Packed weights are as large as the weights, which the model's file contains.
    read = sum(map(_elements, node.reads))
    if is_plain(node) and node.operator in _LAYOUTS:
        read *= 2
    return max(map(_elements, node.outputs)) <= max(read, _MAX_ELEMENTS)


def _elements(value: Value) -> int:
    """Return the number of elements of a constant, or of what is computed from constants."""
    # Such values have no symbolic extents.
    return math.prod(dim for dim in value.shape if isinstance(dim, int))
