"""Structure of nodes: a key that is equal for nodes that mean the same, whatever their names.

A key is a flat tuple. Each part has a fixed length, or its length before it, so that two structures
never give the same parts. Names of symbols count, since a function solves them by name.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.topi.operator import Attribute, Operator, find_operator

# Stands for a value that is not plain data, and so cannot be compared.
_INCOMPARABLE = object()


def application_key(
    operator: Operator,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Attribute],
) -> tuple[Hashable, ...] | None:
    """Return what decides the types of an operator's results; None if it cannot be compared.

    The `id` of its record stands for the operator, so a key is valid as long as the record lives.
    """
    parts: list[Hashable] = []
    _add_application(operator, inputs, attributes, parts)
    return None if _INCOMPARABLE in parts else tuple(parts)


def node_key(node: GraphNode) -> Hashable:
    """Return a key that nodes share if one function computes them.

    Nodes are equal if operators, input types, attributes and subgraphs are equal, and if the same
    inputs are one value. A node that cannot be compared is its own key.
    """
    parts: list[Hashable] = []
    _add_node(node, {}, parts)
    return node if _INCOMPARABLE in parts else tuple(parts)


def _add_node(
    node: GraphNode, numbers: dict[Value, int], parts: list[Hashable]
) -> None:
    """Append the structure of a node. `numbers` has a number for each value so far."""
    parts.append(len(node.inputs))
    for value in node.inputs:
        number = None if value is None else numbers.setdefault(value, len(numbers))
        parts.append(number)
    if not node.subgraphs:
        operator = find_operator(node.operator)
        _add_application(operator, node.inputs, node.attributes, parts)
        return
    parts += (node.operator, len(node.subgraphs))
    for subgraph in node.subgraphs:
        _add_graph(subgraph, parts)


def _add_graph(graph: Graph, parts: list[Hashable]) -> None:
    parts += (len(graph.inputs), len(graph.nodes), len(graph.outputs))
    if graph.constants:
        parts.append(_INCOMPARABLE)
    _add_types(graph.inputs, parts)
    numbers = {value: number for number, value in enumerate(graph.inputs)}
    for node in graph.nodes:
        _add_node(node, numbers, parts)
        for value in node.outputs:
            numbers[value] = len(numbers)
    parts += [numbers.get(value, _INCOMPARABLE) for value in graph.outputs]


def _add_application(
    operator: Operator,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Attribute],
    parts: list[Hashable],
) -> None:
    parts += (id(operator), len(inputs), len(attributes))
    _add_types(inputs, parts)
    for name in sorted(attributes):
        parts.append(name)
        _flatten(attributes[name], parts)


def _add_types(values: Sequence[Value | None], parts: list[Hashable]) -> None:
    for value in values:
        if value is None:
            parts.append(None)
        else:
            parts.append(value.dtype)
            _flatten(value.shape, parts)


def _flatten(value: object, parts: list[Hashable]) -> None:
    """Append the items of a nested tuple, each with its type, since True, 1 and 1.0 are equal."""
    kind = type(value)
    if isinstance(value, tuple) and kind is tuple:
        parts += (tuple, len(value))
        for item in value:
            _flatten(item, parts)
    elif isinstance(value, float) and kind is float:
        parts += (float, value.hex())  # 0.0 and -0.0 differ
    elif isinstance(value, bool | int | str) and kind in _PLAIN:
        parts += (kind, value)
    else:
        parts.append(_INCOMPARABLE)


_PLAIN = (bool, int, str)
