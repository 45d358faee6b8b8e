"""Remove nodes that change nothing.

Before:  a = identity(x); b = relu(a)
After:   b = relu(x)

Ensures: no `identity` is left, except where the graph returns an input or a constant, or where the
result of an identity is an output.
"""

from __future__ import annotations

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value

_OPERATOR = "identity"


def remove_identities(graph: Graph) -> Graph:
    """Return `graph` without identities; the same object if it has none."""
    made = {value for node in graph.nodes for value in node.outputs}
    removable = [node for node in graph.nodes if _is_removable(graph, node, made)]
    if not removable:
        return graph
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if node in removable:
            rewriter.values[node.outputs[0]] = rewriter.values[node.reads[0]]
        else:
            rewriter.copy(node)
    return rewriter.finish_copy()


def _is_removable(graph: Graph, node: GraphNode, made: set[Value]) -> bool:
    return node.operator == _OPERATOR and not (
        node.outputs[0] in graph.outputs or node.inputs[0] not in made
    )
