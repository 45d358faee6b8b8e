"""The record of a control operator, which an executor runs itself.

Control operators choose subgraphs, repeat them, and pass sequences and optionals on. They may move
elements, but compute none: the kernels of their subgraphs do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import Machine, RunValue
from refcomp.graph.control.types import NodeType
from refcomp.graph.graph import Graph, GraphNode, Value, ValueKind, spell
from refcomp.topi.operator import Attribute, OperatorSignature

Attributes = Mapping[str, Attribute]


class NodeParts(NamedTuple):
    """The parts of a node that decide the types of its outputs."""

    inputs: Sequence[Value | None]
    attributes: Attributes
    subgraphs: Sequence[Graph]


class ControlCall(NamedTuple):
    """A call of a control operator in a run."""

    machine: Machine
    inputs: Sequence[RunValue]
    attributes: Attributes
    subgraphs: Sequence[Graph]


@dataclass(frozen=True, slots=True)
class ControlOperator(OperatorSignature):
    """An operator that an executor runs itself.

    Attributes:
        rule: returns the types of the outputs, and refuses wrong inputs.
        run: returns the outputs of a run.
        subgraphs: the number of graphs that a node has.
    """

    rule: Callable[[NodeParts], list[NodeType]] = field(kw_only=True)
    run: Callable[[ControlCall], list[RunValue]] = field(kw_only=True)
    subgraphs: int = field(default=0, kw_only=True)

    def types(self, node: NodeParts) -> list[NodeType]:
        """Return the types of a node's outputs.

        Raises:
            UserError: the operator does not take these inputs, attributes or subgraphs.
        """
        self.check_inputs(node.inputs)
        self.check_attributes(node.attributes)
        if len(node.subgraphs) != self.subgraphs:
            raise UserError(
                f"{self.name} has {len(node.subgraphs)} subgraphs",
                remedy=f"give it {self.subgraphs}",
            )
        return self.rule(node)


def run_control(
    operator: ControlOperator,
    node: GraphNode,
    machine: Machine,
    inputs: Sequence[RunValue],
) -> list[RunValue]:
    """Return the outputs of a node in a run. A UserError names the node."""
    call = ControlCall(machine, inputs, node.attributes, node.subgraphs)
    try:
        return operator.run(call)
    except UserError as error:
        error.where = error.where or f"node {spell(node.name)}"
        raise


def check_kind(
    operator: str, name: str, value: Value | None, *kinds: ValueKind
) -> Value:
    """Return an input, which must be present and of one of these kinds."""
    if value is None or value.kind not in kinds:
        refuse(
            f"the input {name} of {operator} cannot be {value}",
            f"give a value that is a {' or a '.join(kinds)}",
        )
    return value


def check_scalar(operator: str, name: str, value: Value | None, is_bool: bool) -> None:
    """Raise UserError unless the input is one integer, or one bool; an absent input is fine."""
    if value is None:
        return
    check_kind(operator, name, value, ValueKind.TENSOR, ValueKind.UNSHAPED)
    fits = value.dtype.is_bool if is_bool else value.dtype.is_int
    is_one = value.kind is ValueKind.UNSHAPED or value.shape in ((), (1,))
    if not fits or not is_one:
        refuse(
            f"the input {name} of {operator} cannot be {value}",
            f"give one {'bool' if is_bool else 'integer'}",
        )


def check_subgraph_inputs(
    operator: str, graph: Graph, given: Sequence[NodeType]
) -> None:
    """Raise UserError unless values of the types `given` fit the inputs of a subgraph."""
    if len(given) != len(graph.inputs):
        refuse(
            f"{operator} gives the graph {graph.name!r} {len(given)} inputs, "
            f"but the graph takes {len(graph.inputs)}",
            "give a subgraph one input for each value that it reads",
        )
    for one, value in zip(given, graph.inputs, strict=True):
        if not one.fits(NodeType.of(value)):
            refuse(
                f"{operator} gives the input {value} of the graph {graph.name!r} {one}",
                f"declare the input as {one}",
            )


def refuse(what: str, remedy: str) -> NoReturn:
    """Raise the error for a node that a control operator cannot be."""
    raise UserError(what, remedy=remedy)
