"""The kernels of a graph: each node becomes a kernel, and equal nodes share their function.

A kernel takes the inputs of the node that its results depend on, then its outputs, then its
workspaces. The executor owns all memory, so that no kernel allocates any.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.options import current_options
from refcomp.foundation.target import Target, as_target
from refcomp.graph.dims import Symbols, expr_to_dim, substitute
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.infer import FUSED, node_to_te, value_to_placeholder
from refcomp.graph.kernel_extents import with_own_symbols
from refcomp.graph.structure import node_key
from refcomp.schedule.identity import schedule_identity
from refcomp.schedule.schedule import Schedule
from refcomp.te.operation import reachable_operations
from refcomp.te.tensor import Tensor
from refcomp.topi.generic import schedule_for
from refcomp.topi.schedules.llvm import stored_tensors
from refcomp.topi.schedules.matrix_cores import on_matrix_cores


@dataclass(frozen=True, slots=True, eq=False)
class NodeKernel:
    """The call of a function for one node. Its arguments are inputs, outputs and workspaces."""

    name: str  # of the function, in the module
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    workspaces: tuple[Value, ...]  # memory that only this kernel uses


@dataclass(frozen=True, slots=True, eq=False)
class ScheduledKernel:
    """A function of a graph before it is lowered."""

    name: str
    schedule: Schedule
    inputs: tuple[Tensor, ...]
    places: tuple[int, ...]  # of these inputs, among those that the node reads
    outputs: tuple[Tensor, ...]
    workspaces: tuple[Tensor, ...]
    extents: Mapping[str, Dim]  # the function's own symbols -> extents of the graph

    @property
    def args(self) -> tuple[Tensor, ...]:
        """Return the parameters of the function."""
        return (*self.inputs, *self.outputs, *self.workspaces)

    def identity(self) -> str | None:
        """Return a text that is equal for equal functions; None if nothing describes this one."""
        # All lines are the one that compiles the graph. Only checks of accesses quote it.
        with_lines = current_options().check_bounds
        identity = schedule_identity(self.schedule, self.args, with_lines=with_lines)
        return None if identity is None else f"{self.name} {identity}"

    def called_by(self, node: GraphNode) -> NodeKernel:
        """Return the call for a node that this function computes, with workspaces of its own."""
        workspaces = []
        for tensor in self.workspaces:
            dims = map(expr_to_dim, tensor.shape)
            shape = tuple(substitute(dim, self.extents) for dim in dims)
            workspaces.append(Value(f"{self.name}.{tensor.name}", tensor.dtype, shape))
        inputs = tuple(node.reads[place] for place in self.places)
        return NodeKernel(self.name, inputs, node.outputs, tuple(workspaces))


def schedule_graph(
    graph: Graph, target: Target | str = "llvm"
) -> tuple[list[ScheduledKernel], tuple[NodeKernel, ...]]:
    """Return the functions of a graph, each once, and their calls: one for each node, in order.

    The number in a function's name is that of the first node that calls it.
    """
    functions: dict[Hashable, ScheduledKernel] = {}
    calls = []
    for number, node in enumerate(graph.nodes):
        key = node_key(node)
        if key not in functions:
            functions[key] = schedule_node(node, number, target)
        calls.append(functions[key].called_by(node))
    return list(functions.values()), tuple(calls)


def schedule_node(
    node: GraphNode, number: int, target: Target | str = "llvm"
) -> ScheduledKernel:
    """Return the function of node `number`, scheduled for `target`."""
    symbols = Symbols()
    shapes, extents = with_own_symbols([value.shape for value in node.reads])
    # An input that is read twice is one argument: arguments may not overlap.
    inputs = {
        value: value_to_placeholder(replace(value, shape=shape), symbols)
        for value, shape in zip(node.reads, shapes, strict=True)
    }
    made = node_to_te(node, inputs)
    chosen = as_target(target)
    outputs = on_matrix_cores([made[value] for value in node.outputs], chosen)
    schedule = schedule_for(outputs, chosen)
    # Not each one: the count of `narrow`, and a part without elements, are not read.
    needed = reachable_operations([tensor.op for tensor in outputs])
    places = [k for k, tensor in enumerate(inputs.values()) if tensor.op in needed]
    return ScheduledKernel(
        name=f"kernel{number}_{_title(node)}",
        schedule=schedule,
        inputs=tuple(inputs[node.reads[place]] for place in places),
        places=tuple(places),
        outputs=tuple(outputs),
        workspaces=tuple(stored_tensors(schedule)),
        extents=extents,
    )


def _title(node: GraphNode) -> str:
    """Return the names of the node's operators as an identifier of at most 60 characters."""
    operators = [node.operator]
    if node.operator == FUSED:
        operators = [inner.operator for inner in node.subgraphs[0].nodes]
    return re.sub(r"\W", "_", "_".join(operators))[:60]
