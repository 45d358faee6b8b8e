"""Make the graph of a stage for the shapes and attributes that a run meets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.infer import FUSED
from refcomp.graph.narrow import NARROW
from refcomp.topi.operator import Attribute


def specialize(
    stage: Graph,
    shapes: Sequence[tuple[int, ...]],
    attributes: Mapping[Value, Attribute],
) -> Graph:
    """Return a graph that computes what `stage` does, with constant extents.

    Args:
        stage: the graph of a stage.
        shapes: the extents of its inputs, in order.
        attributes: the values of the attributes that a run determines.

    Raises:
        UserError: an operator does not take these shapes or attributes. The error names the node.
    """
    builder = GraphBuilder(stage.name)
    values: dict[Value, Value] = {}
    for value, shape in zip(stage.inputs, shapes, strict=True):
        values[value] = builder.input(value.name, value.dtype, shape)
    for value, elements in stage.constants.items():
        values[value] = builder.constant(value.name, elements, copy=False)
    for node in stage.nodes:
        _add(builder, node, values, attributes)
    return builder.finish([values[value] for value in stage.outputs])


def _add(
    builder: GraphBuilder,
    node: GraphNode,
    values: dict[Value, Value],
    attributes: Mapping[Value, Attribute],
) -> None:
    inputs = [None if value is None else values[value] for value in node.inputs]
    names = [value.name for value in node.outputs]
    if node.operator == NARROW:
        # Its extent is a new symbol, also where the other extents are constants.
        data, count = inputs
        assert data is not None and count is not None
        axis = node.attributes.get("axis", 0)
        assert isinstance(axis, int)
        values[node.outputs[0]] = builder.narrow(data, count, axis, names[0])
        return
    given = dict(node.attributes)
    given |= {name: attributes[value] for name, value in node.late.items()}
    subgraphs = node.subgraphs
    if node.operator == FUSED:
        present = [value.shape for value in inputs if value is not None]
        shapes = [
            tuple(dim for dim in shape if isinstance(dim, int)) for shape in present
        ]
        subgraphs = (specialize(node.subgraphs[0], shapes, {}),)
    made = builder.nodes(node.operator, inputs, given, names, subgraphs)
    values.update(zip(node.outputs, made, strict=True))
