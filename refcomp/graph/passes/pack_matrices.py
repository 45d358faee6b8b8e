"""Transpose the constant second matrix of a gemm once, so that its rows are read in order.

Before:  y = gemm(x, w, b) {trans_b=True}
After:   t = transpose(w); y = gemm(x, t, b)

Requires: w is a constant. Ensures: vectors over the columns of the output read w in order. The
transpose is a node of constants, which fold_constants computes.
"""

from __future__ import annotations

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode


def pack_matrices(graph: Graph) -> Graph:
    """Return `graph` with constant matrices laid out by rows; the same object if they are."""
    if not any(_is_transposed(graph, node) for node in graph.nodes):
        return graph
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if not _is_transposed(graph, node):
            rewriter.copy(node)
            continue
        a, b, *c = rewriter.mapped(node.inputs)
        assert b is not None
        packed = rewriter.node("transpose", [b], {"axes": (1, 0)}, f"{b.name}.packed")
        attributes = {**node.attributes, "trans_b": False}
        rewriter.values[node.outputs[0]] = rewriter.node(
            "gemm", [a, packed, *c], attributes, node.name
        )
    return rewriter.finish_copy()


def _is_transposed(graph: Graph, node: GraphNode) -> bool:
    return (
        node.operator == "gemm"
        and bool(node.attributes.get("trans_b"))
        and node.inputs[1] in graph.constants
    )
