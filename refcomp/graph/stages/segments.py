"""Run a stage whose types only a run determines, segment by segment.

A segment is a row of nodes, compiled together for the shapes that a run meets. All its extents are
numbers, so that nodes on shapes become constants. A segment ends before a node that needs elements
which the segment itself computes: the segment runs first, and then the elements are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from refcomp.foundation.errors import CompilerBug
from refcomp.graph.control.machine import Machine, RunValue, ShapedTensor, as_tensor
from refcomp.graph.control.values import late_attribute
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.folding import FoldingBuilder
from refcomp.graph.graph import Array, Graph, GraphNode, Value, is_macro, spell
from refcomp.graph.infer import FUSED
from refcomp.graph.macros import NotKnownError, expand_node
from refcomp.graph.narrow import is_narrow

# Compilations that are kept for one place in a stage. Each holds the memory of a run.
MAX_KEPT = 16


class CompilingMachine(Machine, Protocol):
    """A machine that compiles graphs."""

    def compiled(self, graph: Graph) -> GraphExecutor:
        """Return an executor of a graph without control operators and macros."""

    def drop(self, executor: GraphExecutor) -> None:
        """Note that an executor is not kept."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """A compiled segment, and the conditions under which it may run."""

    end: int  # the place behind its last node
    shapes: dict[Value, tuple[int, ...]]  # of its inputs
    elements: dict[Value, Array]  # those that decided what it computes
    executor: GraphExecutor
    outputs: tuple[Value, ...]  # values of the stage's graph

    def fits(self, known: Mapping[Value, RunValue], machine: Machine) -> bool:
        """Return True if the inputs have the shapes and elements that it is compiled for."""
        for value, shape in self.shapes.items():
            if as_tensor(known[value], value.name).shape != shape:
                return False
        for value, elements in self.elements.items():
            met = machine.read(as_tensor(known[value], value.name))
            if not np.array_equal(met, elements, equal_nan=elements.dtype.kind == "f"):
                return False
        return True


class SegmentRunner:
    """A runner of one stage, with all segments that its runs have needed.

    Args:
        machine: what compiles and holds tensors.
        graph: the graph of the stage, which has no control operators.
    """

    def __init__(self, machine: CompilingMachine, graph: Graph) -> None:
        self.machine = machine
        self.graph = graph
        self._segments: dict[int, list[_Segment]] = {}  # by the place of the first node

    @property
    def launches(self) -> int:
        """Return the number of kernels that the kept segments have launched."""
        kept = self._segments.values()
        return sum(segment.executor.launches for row in kept for segment in row)

    def run(self, inputs: Mapping[Value, RunValue]) -> list[RunValue]:
        """Return the outputs of the stage. `inputs` holds at least the values that it reads."""
        known = dict(inputs)
        place = 0
        while place < len(self.graph.nodes):
            segment = self._segment_at(place, known)
            tensors = {value.name: known[value] for value in segment.shapes}
            read = {name: tensors[name] for name in segment.executor.input_names}
            made = segment.executor.run(read)
            known.update(zip(segment.outputs, made, strict=True))
            place = segment.end
        return [known[value] for value in self.graph.outputs]

    def _segment_at(self, place: int, known: Mapping[Value, RunValue]) -> _Segment:
        """Return the segment that begins at a node: a kept one, or a new one."""
        kept = self._segments.setdefault(place, [])
        for segment in kept:
            if segment.fits(known, self.machine):
                kept.remove(segment)
                kept.append(segment)  # the last one is the most recently used
                return segment
        maker = _SegmentMaker(self.machine, self.graph, known)
        segment = maker.made_from(place)
        if len(kept) == MAX_KEPT:
            self.machine.drop(kept.pop(0).executor)
        kept.append(segment)
        return segment


class _SegmentMaker:
    """A segment under construction."""

    def __init__(
        self, machine: CompilingMachine, stage: Graph, known: Mapping[Value, RunValue]
    ) -> None:
        self.machine = machine
        self.stage = stage
        self.known = known
        self.builder = FoldingBuilder(stage.name)
        self.values: dict[Value, Value] = {}  # of the stage -> of the builder
        self.inputs: dict[Value, Value] = {}  # of the builder -> of the stage
        self.elements: dict[
            Value, Array
        ] = {}  # of the stage; those that were asked for

    def made_from(self, place: int) -> _Segment:
        """Return the segment that begins at a node, compiled."""
        nodes = self.stage.nodes
        end = place
        while end < len(nodes):
            node = nodes[end]
            try:
                self._add(node)
            except NotKnownError:
                if end == place:
                    raise CompilerBug(
                        f"{node.operator} needs elements that its own nodes compute",
                        where=f"node {spell(node.name)}",
                    ) from None
                break
            end += 1
            # The extents behind it are not numbers before the segment has run.
            if self._is_open(node):
                break
        inside = {value for node in nodes[place:end] for value in node.outputs}
        later = {value for node in nodes[end:] for value in node.reads}
        later |= set(self.stage.outputs)
        outputs = tuple(
            v for node in nodes[place:end] for v in node.outputs if v in later & inside
        )
        graph = self.builder.finish([self.values[value] for value in outputs])
        shapes = {
            value: as_tensor(self.known[value], value.name).shape
            for value in self.inputs.values()
        }
        executor = self.machine.compiled(graph)
        return _Segment(end, shapes, self.elements, executor, outputs)

    def _is_open(self, node: GraphNode) -> bool:
        made = (self.values[value] for value in node.outputs)
        return any(not isinstance(dim, int) for value in made for dim in value.shape)

    def _value(self, value: Value) -> Value:
        """Return the value of the builder for a value of the stage."""
        made = self.values.get(value)
        if made is not None:
            return made
        constant = self.stage.constants.get(value)
        if constant is not None:
            made = self.builder.constant(value.name, constant, copy=False)
        else:
            tensor = as_tensor(self.known[value], value.name)
            made = self.builder.input(value.name, value.dtype, tensor.shape)
            self.inputs[made] = value
        self.values[value] = made
        return made

    def _elements(self, value: Value) -> Array:
        """Return the elements of a value of the builder."""
        constant = self.builder.elements(value)
        if constant is not None:
            return constant
        source = self.inputs.get(value)
        if source is None:
            raise NotKnownError
        if source not in self.elements:
            tensor: ShapedTensor = as_tensor(self.known[source], source.name)
            self.elements[source] = np.array(self.machine.read(tensor))
        return self.elements[source]

    def _add(self, node: GraphNode) -> None:
        inputs = [
            None if value is None else self._value(value) for value in node.inputs
        ]
        names = [value.name for value in node.outputs]
        if is_macro(node.operator):
            made: Sequence[Value] = expand_node(
                node, self.builder, inputs, self._elements
            )
        elif is_narrow(node):
            # Its extent is a new symbol, also where the other extents are constants.
            made = [_narrowed(self.builder, node, inputs)]
        else:
            late = {
                name: late_attribute(self._elements(self._value(value)))
                for name, value in node.late.items()
            }
            made = self.builder.nodes(
                node.operator,
                inputs,
                {**node.attributes, **late},
                names,
                _subgraphs(node, inputs),
            )
        self.values.update(zip(node.outputs, made, strict=True))


def _narrowed(
    builder: FoldingBuilder, node: GraphNode, inputs: Sequence[Value | None]
) -> Value:
    data, count = inputs
    assert data is not None and count is not None
    axis = node.attributes.get("axis", 0)
    assert isinstance(axis, int)
    return builder.narrow(data, count, axis, node.name)


def _subgraphs(node: GraphNode, inputs: Sequence[Value | None]) -> tuple[Graph, ...]:
    """Return the subgraphs of a node for the shapes of its inputs."""
    if node.operator != FUSED:
        return node.subgraphs
    present = [value for value in inputs if value is not None]
    (graph,) = node.subgraphs
    builder = FoldingBuilder(graph.name)
    values: dict[Value, Value] = {}
    for value, given in zip(graph.inputs, present, strict=True):
        values[value] = builder.input(value.name, value.dtype, given.shape)
    for member in graph.nodes:
        made = builder.nodes(
            member.operator,
            [None if value is None else values[value] for value in member.inputs],
            member.attributes,
            [value.name for value in member.outputs],
        )
        values.update(zip(member.outputs, made, strict=True))
    return (builder.finish([values[value] for value in graph.outputs]),)
