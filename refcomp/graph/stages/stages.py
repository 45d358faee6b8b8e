"""Cut a graph into stages: groups of nodes on tensors, and single control operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from refcomp.foundation.artifacts import names_in_dim
from refcomp.graph.control.operators import find_control
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.narrow import is_narrow, narrowed_symbol


@dataclass(frozen=True, slots=True, eq=False)
class TensorStage:
    """Nodes that are compiled together.

    Attributes:
        graph: a graph of these nodes. Its inputs are what they read of earlier stages, its outputs
            what later stages read.
        is_typed: True if all types are known before a run, so that one compilation is enough.
    """

    graph: Graph
    is_typed: bool


@dataclass(frozen=True, slots=True, eq=False)
class ControlStage:
    """A control operator."""

    node: GraphNode


Stage = TensorStage | ControlStage


def has_stages(graph: Graph) -> bool:
    """Return True if a graph has control operators, or shapes that only a run determines."""
    values = (value for value in graph.values() if not value.is_tensor)
    if next(values, None) is not None:
        return True
    return any(find_control(node.operator) is not None for node in graph.nodes)


def stages_of(graph: Graph) -> tuple[Stage, ...]:
    """Return the stages of a graph, in the order in which a run takes them."""
    groups: list[list[GraphNode]] = []
    for node in graph.nodes:
        last = groups[-1] if groups else []
        if not last or _is_control(last) or not _joins(node, last):
            groups.append([])
        groups[-1].append(node)
    return tuple(
        ControlStage(group[0]) if _is_control(group) else _tensor_stage(graph, group)
        for group in groups
    )


def _joins(node: GraphNode, group: Sequence[GraphNode]) -> bool:
    """Return True if a node may be in the stage of the nodes before it.

    What is typed, and stands before all that is not, is a stage that can be compiled before a run.
    """
    if find_control(node.operator) is not None:
        return False
    return _has_types(node) or not all(map(_has_types, group))


def _has_types(node: GraphNode) -> bool:
    return not node.late and all(value.is_tensor for value in node.outputs)


def _is_control(group: Sequence[GraphNode]) -> bool:
    return bool(group) and find_control(group[0].operator) is not None


def _tensor_stage(graph: Graph, group: Sequence[GraphNode]) -> TensorStage:
    made = {value for node in group for value in node.outputs}
    inside = set(group)
    read = dict.fromkeys(
        value for node in group for value in node.reads if value not in made
    )
    constants = {
        value: graph.constants[value] for value in read if value in graph.constants
    }
    inputs = tuple(value for value in read if value not in constants)
    later = {
        value for node in graph.nodes if node not in inside for value in node.reads
    } | set(graph.outputs)
    outputs = tuple(v for node in group for v in node.outputs if v in later)
    stage = Graph(graph.name, inputs, outputs, tuple(group), constants)
    return TensorStage(stage, _is_typed(stage))


def _is_typed(stage: Graph) -> bool:
    """Return True if the types of all values are known, and inputs determine all symbols."""
    if not all(value.is_tensor for value in stage.values()):
        return False
    if any(node.late for node in stage.nodes):
        return False
    solved = {
        dim for value in stage.inputs for dim in value.shape if isinstance(dim, str)
    }
    solved |= {narrowed_symbol(node) for node in stage.nodes if is_narrow(node)}
    return set(_symbols(stage.values())) <= solved


def _symbols(values: Iterable[Value]) -> Iterable[str]:
    for value in values:
        for dim in value.shape:
            yield from names_in_dim(dim)
