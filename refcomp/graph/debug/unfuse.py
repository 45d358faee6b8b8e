"""Replace fused nodes by the nodes that they hold, so that every value is in memory.

Before:  z = fused(x)   with the subgraph   y = add(x, x); z = relu(y)
After:   y = add(x, x); z = relu(y)
"""

from __future__ import annotations

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode
from refcomp.graph.infer import FUSED


def unfuse(graph: Graph) -> Graph:
    """Return `graph` without fused nodes, or the same object if it has none.

    Values keep their names, unless two values have one name.
    """
    if not any(node.operator == FUSED for node in graph.nodes):
        return graph
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if node.operator == FUSED:
            _add_members(rewriter, node)
        else:
            rewriter.copy(node)
    return rewriter.finish_copy()


def _add_members(rewriter: GraphRewriter, node: GraphNode) -> None:
    (subgraph,) = node.subgraphs
    given = rewriter.mapped(node.inputs)
    inside = dict(zip(subgraph.inputs, given, strict=True))
    for member in subgraph.nodes:
        inputs = [None if value is None else inside[value] for value in member.inputs]
        names = [value.name for value in member.outputs]
        made = rewriter.nodes(member.operator, inputs, member.attributes, names)
        inside.update(zip(member.outputs, made, strict=True))
    for outer, inner in zip(node.outputs, subgraph.outputs, strict=True):
        value = inside[inner]
        assert value is not None
        rewriter.values[outer] = value
