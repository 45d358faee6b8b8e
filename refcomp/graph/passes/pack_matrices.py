"""Transpose the constant second matrix of a gemm once, so that its rows are read in order.

Before::

    graph net(x: f32[N, 3]) -> (y) {
      const w: f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
      y: f32[N, 2] = gemm(x, w) {trans_b=True}
    }

After::

    graph net(x: f32[N, 3]) -> (y) {
      const w: f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
      w.packed: f32[3, 2] = transpose(w) {axes=[1, 0]}
      y: f32[N, 2] = gemm(x, w.packed)
    }

Requires: the matrix is a constant. Ensures: vectors over the columns of the output read it in
order. The transpose is a node of constants, which fold_constants computes. Refuses: nothing.
"""

from __future__ import annotations

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode
from refcomp.graph.passes.pointwise import is_plain


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
        and is_plain(node)
        and bool(node.attributes.get("trans_b"))
        and node.inputs[1] in graph.constants
    )
