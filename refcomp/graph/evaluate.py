"""The meaning of a graph: evaluate its nodes in order by the numpy functions of their operators.

This is the oracle for everything that compiles graphs. It uses no te, schedule or machine code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import RunValue, ShapedTensor
from refcomp.graph.control.operator import run_control
from refcomp.graph.control.operators import find_control
from refcomp.graph.control.values import as_run_value, check_run_values, late_attribute
from refcomp.graph.folding import FoldingBuilder
from refcomp.graph.graph import Array, Graph, GraphNode, Value, is_macro
from refcomp.graph.infer import FUSED
from refcomp.graph.macros import NotKnownError, expand_node
from refcomp.graph.verify import verify_graph
from refcomp.topi.operator import find_operator


def evaluate_graph(graph: Graph, feeds: Mapping[str, Any]) -> list[Any]:
    """Return the outputs of a graph, computed by the numpy meaning of each operator.

    Args:
        graph: any graph; it is verified first.
        feeds: name of an input -> its array. A sequence is a list of arrays, an absent optional is
            None.

    Returns:
        An array for each output; a tuple of arrays for a sequence, None for an absent optional.

    Raises:
        UserError: the arrays do not fit the graph's inputs, or a control operator refuses a value,
            such as a position that a sequence does not have.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N",))
        >>> net = builder.finish([builder.node("relu", [x])])
        >>> print(*rc.graph.evaluate_graph(net, {"x": np.array([1, -1], "float32")}))
        [1. 0.]
    """
    verify_graph(graph)
    if not isinstance(feeds, Mapping):
        raise UserError(
            f"feeds are a {type(feeds).__name__}, not arrays by name",
            remedy='pass a dict: {"x": array}',
        )
    check_run_values(graph, feeds)
    given = {value: as_run_value(feeds[value.name]) for value in graph.inputs}
    return _evaluate(graph, given)


class _NumpyMachine:
    """A machine whose tensors are numpy arrays."""

    def run(self, graph: Graph, inputs: Sequence[RunValue]) -> list[RunValue]:
        given = dict(zip(graph.inputs, inputs, strict=True))
        return list(_evaluate(graph, given))

    def read(self, tensor: ShapedTensor) -> Array:
        return np.asarray(tensor)

    def tensor(self, elements: Array) -> ShapedTensor:
        return elements


def evaluate_node(node: GraphNode, known: Mapping[Value, Any]) -> list[Any]:
    """Return the outputs of one node; `known` holds the values of its inputs."""
    inputs = [None if value is None else known[value] for value in node.inputs]
    if node.operator == FUSED:
        (subgraph,) = node.subgraphs
        return _evaluate(subgraph, dict(zip(subgraph.inputs, inputs, strict=True)))
    control = find_control(node.operator)
    if control is not None:
        return run_control(control, node, _NumpyMachine(), inputs)
    if is_macro(node.operator):
        return _evaluate_macro(node, inputs)
    late = {name: late_attribute(known[v]) for name, v in node.late.items()}
    attributes = {**node.attributes, **late}
    made = find_operator(node.operator).numpy(*inputs, **attributes)
    return made if isinstance(made, list) else [made]


def _evaluate_macro(node: GraphNode, arrays: Sequence[Any]) -> list[Any]:
    """Return the outputs of a macro: those of the graph that it becomes for these arrays."""
    builder = FoldingBuilder(node.name)
    inputs: list[Value | None] = []
    given: dict[Value, Any] = {}
    for value, elements in zip(node.inputs, arrays, strict=True):
        if value is None:
            inputs.append(None)
            continue
        one = builder.input(str(len(given)), value.dtype, np.shape(elements))
        given[one] = elements
        inputs.append(one)
    known = {**given}

    def elements_of(value: Value) -> Array:
        if value in known:
            return np.asarray(known[value])
        constant = builder.elements(value)
        if constant is None:
            raise NotKnownError
        return constant

    outputs = expand_node(node, builder, inputs, elements_of)
    return _evaluate(builder.finish(outputs), given)


def _evaluate(graph: Graph, given: Mapping[Value, Any]) -> list[Any]:
    known = {**given, **graph.constants}
    for node in graph.nodes:
        outputs = evaluate_node(node, known)
        known.update(zip(node.outputs, outputs, strict=True))
    return [known[value] for value in graph.outputs]
