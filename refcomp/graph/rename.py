"""Rename values of a graph, so that its text says what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from refcomp.foundation.names import UniqueNames
from refcomp.graph.graph import Graph, GraphNode, Value


def renamed(graph: Graph, names: Mapping[Value, str]) -> Graph:
    """Return the graph with other names for values that its nodes make.

    A name that another value has gets a number behind it. Inputs and constants keep their names.

    Args:
        graph: any graph.
        names: value -> its name. Values that no node of the graph makes are left out.
    """
    made = {value for node in graph.nodes for value in node.outputs}
    changed = {value: name for value, name in names.items() if value in made}
    taken = UniqueNames(separator=".")
    for value in graph.values():
        if value not in changed:
            taken.take(value.name)
    values: dict[Value, Value] = {}
    nodes = []
    for node in graph.nodes:
        for value in node.outputs:
            if value in changed:
                values[value] = replace(value, name=taken.take(changed[value]))
        nodes.append(_with_values(node, values))
    outputs = tuple(values.get(value, value) for value in graph.outputs)
    return replace(graph, nodes=tuple(nodes), outputs=outputs)


def _with_values(node: GraphNode, values: Mapping[Value, Value]) -> GraphNode:
    """Return the node with values replaced; the same node if it has none of them."""
    if not any(value in values for value in (*node.reads, *node.outputs)):
        return node
    inputs = [None if v is None else values.get(v, v) for v in node.inputs]
    return replace(
        node,
        inputs=tuple(inputs),
        outputs=tuple(values.get(value, value) for value in node.outputs),
        late={name: values.get(value, value) for name, value in node.late.items()},
    )
