"""What depends on constants alone is computed once, by the operators' numpy meaning.

Before:  const w; t = transpose(w); y = conv2d_nhwc(x, t)
After:   const t; y = conv2d_nhwc(x, t)

Requires: nothing. Ensures: every node that is left depends on an input of the graph.
"""

from __future__ import annotations

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.evaluate import evaluate_node
from refcomp.graph.graph import Array, Graph, Node, Value


def fold_constants(graph: Graph) -> Graph:
    """`graph` with its constant nodes computed; the same object when there are none."""
    known: dict[Value, Array] = dict(graph.constants)
    foldable: list[Node] = []
    for node in graph.nodes:
        if all(value in known for value in node.reads):
            known.update(zip(node.outputs, evaluate_node(node, known), strict=True))
            foldable.append(node)
    if not foldable:
        return graph
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if node not in foldable:
            rewriter.copy(node)
            continue
        for value in node.outputs:
            rewriter.values[value] = rewriter.constant(value.name, known[value])
    return rewriter.finish_copy()
