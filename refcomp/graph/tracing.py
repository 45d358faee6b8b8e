"""Trace a graph: the graph of what one run computes, without control, macros and symbols.

Tools that look at each node of a model, such as the debugger and the profiler, need a graph whose
nodes and types are known before a run. A trace is one. Branches that the run does not take are
gone, and loops are repeated. What the executor itself moves, such as the results of a loop that it
stacks, is a constant of the trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import RunValue, ShapedTensor, as_tensor
from refcomp.graph.control.operator import run_control
from refcomp.graph.control.operators import find_control
from refcomp.graph.control.values import as_run_value, check_run_values, late_attribute
from refcomp.graph.evaluate import evaluate_node
from refcomp.graph.folding import FoldingBuilder
from refcomp.graph.graph import Array, Graph, GraphNode, Value, is_macro
from refcomp.graph.infer import FUSED
from refcomp.graph.macros import NotKnownError, expand_node
from refcomp.graph.narrow import checked_count, count_of, is_narrow
from refcomp.graph.stages.stages import has_stages
from refcomp.graph.verify import verify_graph


def trace_graph(graph: Graph, feeds: Mapping[str, Any]) -> Graph:
    """Return the graph of what a run with these inputs computes.

    All its extents are numbers, and all its nodes are operators of `refcomp.topi`. Values are
    computed by numpy while it is traced.

    Args:
        graph: any graph; it is verified first.
        feeds: name of an input -> its array. A sequence is a list of arrays, an absent optional is
            None.

    Returns:
        A graph whose inputs are the tensors in `feeds`, in order. The graph itself, if a run has
        nothing to decide but the values of its symbols.

    Raises:
        UserError: the arrays do not fit the graph's inputs, or an operator refuses what it meets.

    Example::

        >>> then = rc.graph.parse_graph("graph a(x: f32[2]) -> (y) { y: f32[2] = relu(x) }")
        >>> other = rc.graph.parse_graph("graph b(x: f32[2]) -> (y) { y: f32[2] = negative(x) }")
        >>> builder = rc.graph.GraphBuilder("net")
        >>> c = builder.input("c", "bool", ())
        >>> x = builder.input("x", "float32", (2,))
        >>> chosen = builder.node("if", [c, x], name="chosen", subgraphs=[then, other])
        >>> feeds = {"c": np.array(True), "x": np.array([3, -4], "float32")}
        >>> print(rc.graph.trace_graph(builder.finish([chosen]), feeds))
        graph net(c: bool[], x: f32[2]) -> (chosen) {
          y: f32[2] = relu(x)
          chosen: f32[2] = identity(y)
        }
    """
    verify_graph(graph)
    check_run_values(graph, feeds)
    if not has_stages(graph):
        return graph
    tracer = _RunTracer(FoldingBuilder(graph.name))
    given = [
        tracer.given(value.name, as_run_value(feeds[value.name]))
        for value in graph.inputs
    ]
    outputs: list[Value] = []
    for value, made in zip(graph.outputs, tracer.run(graph, given), strict=True):
        outputs += tracer.named(value.name, made)
    traced = tracer.builder.finish(outputs)
    verify_graph(traced)
    return traced


@dataclass(frozen=True, slots=True, eq=False)
class _Traced:
    """A tensor of a run, and the value that stands for it in the trace."""

    value: Value
    elements: Array

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.elements.shape
        return shape


class _RunTracer:
    """The machine of control operators that writes down which nodes it runs."""

    def __init__(self, builder: FoldingBuilder) -> None:
        self.builder = builder
        self.elements: dict[Value, Array] = {}  # of the trace

    def given(self, name: str, value: Any) -> RunValue:
        """Return what the caller gave as a value of the trace."""
        if isinstance(value, tuple):
            named = enumerate(value)
            made = tuple(self.given(f"{name}.{place}", one) for place, one in named)
            return cast("RunValue", made)
        if value is None or isinstance(value, dict):  # maps are the executor's
            return value
        return self._input(name, value)

    def _input(self, name: str, value: Any) -> ShapedTensor:
        array = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
        if array.dtype.kind in "OU":  # strings are the executor's
            return array
        made = self.builder.input(name, array.dtype, array.shape)
        self.elements[made] = array
        return _Traced(made, array)

    def named(self, name: str, made: RunValue) -> list[Value]:
        """Return the values of an output, under its name if they are one."""
        if made is None:
            return []
        if isinstance(made, tuple):
            return [one.value for one in made if isinstance(one, _Traced)]
        if not isinstance(made, _Traced):
            return []
        if made.value.name == name:
            return [made.value]
        return [self.builder.node("identity", [made.value], name=name)]

    def run(self, graph: Graph, inputs: Sequence[RunValue]) -> list[RunValue]:
        """Return the outputs of a graph, after adding its nodes to the trace."""
        known: dict[Value, RunValue] = dict(zip(graph.inputs, inputs, strict=True))
        for value, elements in graph.constants.items():
            made = self.builder.constant(value.name, elements, copy=False)
            known[value] = _Traced(made, elements)
        for node in graph.nodes:
            control = find_control(node.operator)
            if control is not None:
                given = [None if v is None else known[v] for v in node.inputs]
                results = run_control(control, node, self, given)
            elif node.operator == FUSED:
                results = self.run(node.subgraphs[0], [known[v] for v in node.reads])
            else:
                results = list(self._add(node, known))
            known.update(zip(node.outputs, results, strict=True))
        return [known[value] for value in graph.outputs]

    def read(self, tensor: ShapedTensor) -> Array:
        """Return the elements of a tensor."""
        return tensor.elements if isinstance(tensor, _Traced) else np.asarray(tensor)

    def tensor(self, elements: Array) -> ShapedTensor:
        """Return a tensor that the executor made: a constant of the trace."""
        return _Traced(self.builder.constant("moved", elements), elements)

    def _elements(self, value: Value) -> Array:
        constant = self.builder.elements(value)
        if constant is not None:
            return constant
        if value not in self.elements:
            raise NotKnownError
        return self.elements[value]

    def _add(
        self, node: GraphNode, known: Mapping[Value, RunValue]
    ) -> Sequence[_Traced]:
        """Add a node on tensors, and compute what it makes."""
        tensors = {value: known[value] for value in node.reads}
        values = {value: self._value_of(value, one) for value, one in tensors.items()}
        inputs = [None if value is None else values[value] for value in node.inputs]
        begin = len(self.builder.made)
        made: Sequence[Value]
        if is_macro(node.operator):
            made = expand_node(node, self.builder, inputs, self._elements)
        elif is_narrow(node):
            made = [self._shortened(node, values)]
        else:
            late = {
                name: late_attribute(self._elements(values[value]))
                for name, value in node.late.items()
            }
            made = self.builder.nodes(
                node.operator,
                inputs,
                {**node.attributes, **late},
                [value.name for value in node.outputs],
            )
        for added in self.builder.made[begin:]:
            arrays = {value: self._elements(value) for value in added.reads}
            results = evaluate_node(added, arrays)
            self.elements.update(zip(added.outputs, results, strict=True))
        return [_Traced(value, self._elements(value)) for value in made]

    def _value_of(self, value: Value, held: RunValue) -> Value:
        tensor = as_tensor(held, value.name)
        if not isinstance(tensor, _Traced):
            raise UserError(
                f"{value} cannot be traced",
                why="it holds strings, which only the executor knows",
                remedy="run the graph by refcomp.graph.executor_for",
            )
        return tensor.value

    def _shortened(self, node: GraphNode, values: Mapping[Value, Value]) -> Value:
        """Add the node that keeps as many elements as this run counts."""
        data = node.inputs[0]
        axis = node.attributes.get("axis", 0)
        assert data is not None and isinstance(axis, int)
        count = self._elements(values[count_of(node)])
        extent = values[data].shape[axis]
        assert isinstance(extent, int)
        kept = checked_count(count, extent, node.name)
        attributes = {"begin": (0,), "end": (kept,), "axes": (axis,)}
        return self.builder.node("strided_slice", [values[data]], attributes, node.name)
