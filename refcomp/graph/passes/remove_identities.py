"""Remove nodes that change nothing.

Before:  a = identity(x); b = relu(a)
After:   b = relu(x)

Ensures: an `identity` is left only if it reads an input or a constant, or makes an output. An
output needs memory and a name of its own.
"""

from __future__ import annotations

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph


def remove_identities(graph: Graph) -> Graph:
    """Return `graph` without identities; the same object if it has none."""
    made = {value for node in graph.nodes for value in node.outputs}
    removable = set()
    for node in graph.nodes:
        is_needed = node.outputs[0] in graph.outputs
        if node.operator == "identity" and node.inputs[0] in made and not is_needed:
            removable.add(node)
    if not removable:
        return graph
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if node in removable:
            rewriter.values[node.outputs[0]] = rewriter.values[node.reads[0]]
        else:
            rewriter.copy(node)
    return rewriter.finish_copy()
