"""Copy the nodes of a graph into another one, in the place of a call."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import Graph, Value
from refcomp.graph.narrow import is_narrow, narrowed_axis


def inline_graph(
    builder: GraphBuilder, graph: Graph, inputs: Sequence[Value]
) -> list[Value]:
    """Add the nodes of a graph to a builder, and return the values of its outputs.

    Args:
        builder: what gets the nodes.
        graph: any graph; its symbols are those of the inputs.
        inputs: a value of the builder for each input, of the same type.
    """
    values = dict(zip(graph.inputs, inputs, strict=True))
    for value, elements in graph.constants.items():
        values[value] = builder.constant(value.name, elements, copy=False)
    for condition in graph.requires:
        builder.require(condition)
    for node in graph.nodes:
        given = [None if value is None else values[value] for value in node.inputs]
        if is_narrow(node):
            data, count = given
            assert data is not None and count is not None
            values[node.outputs[0]] = builder.narrow(
                data, count, narrowed_axis(node), node.name
            )
            continue
        made = builder.nodes(
            node.operator,
            given,
            node.attributes,
            [value.name for value in node.outputs],
            node.subgraphs,
            late={name: values[value] for name, value in node.late.items()},
            dtypes=[value.dtype for value in node.outputs],
        )
        values.update(zip(node.outputs, made, strict=True))
    return [values[value] for value in graph.outputs]
