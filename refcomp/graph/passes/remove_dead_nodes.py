"""Remove nodes and constants that no output needs.

Before::

    graph net(x: f32[N]) -> (y) {
      const unused: f32[1] = [2.0]
      y: f32[N] = relu(x)
      dead: f32[N] = add(y, unused)
    }

After::

    graph net(x: f32[N]) -> (y) {
      y: f32[N] = relu(x)
    }

Requires: nothing. Ensures: inputs stay, since callers give them. Refuses: nothing.
"""

from __future__ import annotations

from refcomp.graph.graph import Graph, GraphNode, Value


def remove_dead_nodes(graph: Graph) -> Graph:
    """Return `graph` with the nodes that outputs need; the same object if all are needed."""
    needed: set[Value] = set(graph.outputs)
    kept: list[GraphNode] = []
    for node in reversed(graph.nodes):
        if needed & set(node.outputs):
            kept.append(node)
            needed |= set(node.reads)
    constants = {v: array for v, array in graph.constants.items() if v in needed}
    if len(kept) == len(graph.nodes) and len(constants) == len(graph.constants):
        return graph
    nodes = tuple(reversed(kept))
    return Graph(
        graph.name, graph.inputs, graph.outputs, nodes, constants, graph.requires
    )
