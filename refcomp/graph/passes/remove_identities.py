"""Nodes that change nothing disappear.

Before:  a = identity(x); b = relu(a)
After:   b = relu(x)

Requires: nothing. Ensures: no `identity` is left, but where an input or a constant would become an
output of the graph itself.
"""

from __future__ import annotations

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value

_OPERATOR = "identity"


def remove_identities(graph: Graph) -> Graph:
    """`graph` without identities; the same object when there are none."""
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
