"""Compile a graph to one module: each node becomes a kernel, and equal nodes share their function.

A kernel takes the node's inputs, then its outputs, then its workspaces. The executor owns all
memory, so that no kernel allocates any.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from refcomp.certificates import certify_build
from refcomp.compiler import build_lowered
from refcomp.driver.backends import as_target, backend_of
from refcomp.driver.build_cache import recall_module
from refcomp.foundation.options import current_options
from refcomp.foundation.target import Target
from refcomp.graph.dims import Symbols, expr_to_dim
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.infer import FUSED, node_to_te, value_to_placeholder
from refcomp.graph.optimize import optimize
from refcomp.graph.structure import node_key
from refcomp.ir.func import PrimFunc
from refcomp.lowering.entry_conditions import with_entry_conditions
from refcomp.lowering.lower import lower
from refcomp.runtime.module import Module
from refcomp.schedule.identity import schedule_identity
from refcomp.schedule.schedule import Schedule
from refcomp.te.tensor import Tensor
from refcomp.topi.schedules.cuda import schedule_cuda
from refcomp.topi.schedules.gpu import schedule_gpu
from refcomp.topi.schedules.llvm import schedule_llvm, stored_tensors

# `Backend.schedules` -> the function that schedules a node
_SCHEDULES = {"cpu": schedule_llvm, "gpu": schedule_gpu, "cuda": schedule_cuda}


@dataclass(frozen=True, slots=True, eq=False)
class NodeKernel:
    """The call of a function for one node. Its arguments are inputs, outputs and workspaces."""

    name: str  # of the function, in the module
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    workspaces: tuple[Value, ...]  # memory that only this kernel uses


@dataclass(frozen=True, slots=True, eq=False)
class GraphModule:
    """A compiled graph, which `compile_graph` returns and a `GraphExecutor` runs.

    Attributes:
        graph: the graph after all passes.
        kernels: for each node, in order, the name of its function and the values that it takes.
            Equal nodes have one function.
        module: the module with all functions; None for a graph without nodes.
        target: the target that the module is compiled for.

    Source: TVM, GraphExecutorFactoryModule.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N", 2))
        >>> net = builder.finish([builder.node("relu", [x])])
        >>> compiled = rc.compile_graph(net, target="interp")
        >>> (kernel,) = compiled.kernels
        >>> kernel.name, [value.name for value in kernel.inputs]
        ('kernel0_relu', ['x'])
        >>> list(compiled.module.signatures), compiled.target.kind
        (['kernel0_relu'], 'interp')
    """

    graph: Graph
    kernels: tuple[NodeKernel, ...]
    module: Module | None
    target: Target


def compile_graph(graph: Graph, target: Target | str = "llvm") -> GraphModule:
    """Return the compiled graph, which a `GraphExecutor` runs.

    The graph is optimized first: operators are fused, and constants are folded. Then each node
    becomes one function. Nodes that differ only in the names of their values share a function.

    Args:
        graph: what `from_onnx` or a `GraphBuilder` returned.
        target: what to compile for; see `build`.

    Raises:
        UserError: the target is unknown.
        Unsupported: the target cannot express an operator.
        ToolchainError: a tool is missing or fails.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N", 2))
        >>> total = builder.node("add", [x, x])
        >>> net = builder.finish([builder.node("relu", [total])])
        >>> compiled = rc.compile_graph(net, target="interp")
        >>> print(compiled.graph)
        graph net(x: f32[N, 2]) -> (relu) {
          relu: f32[N, 2] = fused(x)
            graph add_relu(x: f32[N, 2]) -> (relu) {
              add: f32[N, 2] = add(x, x)
              relu: f32[N, 2] = relu(add)
            }
        }
        >>> [kernel.name for kernel in compiled.kernels]
        ['kernel0_add_relu']
    """
    optimized = optimize(graph)
    chosen = as_target(target)
    functions, kernels = schedule_graph(optimized, chosen)
    module = _build(functions, chosen) if functions else None
    return GraphModule(optimized, kernels, module, chosen)


def _build(functions: Sequence[ScheduledKernel], target: Target) -> Module:
    """Return the module of all functions. If the cache has it, none of them is lowered."""

    def lower_and_build() -> Module:
        # One at a time, so that the first ones are compiled while others are still lowered.
        lowered = (with_entry_conditions(one.lower(target)) for one in functions)
        return build_lowered(lowered, target, len(functions))

    identities = [one.identity() for one in functions]
    parts = None if None in identities else ["graph", *filter(None, identities)]
    return recall_module(parts, target, lower_and_build)


@dataclass(frozen=True, slots=True, eq=False)
class ScheduledKernel:
    """A function of a graph before it is lowered."""

    name: str
    schedule: Schedule
    inputs: tuple[Tensor, ...]  # of the node, each once
    outputs: tuple[Tensor, ...]
    workspaces: tuple[Tensor, ...]

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

    def lower(self, target: Target) -> PrimFunc:
        """Return the function. It is certified first, if the build options ask for it."""
        if current_options().certify:
            certify_build(self.schedule, self.args, self.name, target.kind)
        return lower(self.schedule, self.args, self.name)

    def called_by(self, node: GraphNode) -> NodeKernel:
        """Return the call for a node that this function computes, with workspaces of its own."""
        workspaces = []
        for tensor in self.workspaces:
            shape = tuple(map(expr_to_dim, tensor.shape))
            workspaces.append(Value(f"{self.name}.{tensor.name}", tensor.dtype, shape))
        return NodeKernel(self.name, node.reads, node.outputs, tuple(workspaces))


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
    # An input that is read twice is one argument: arguments may not overlap.
    inputs = {value: value_to_placeholder(value, symbols) for value in node.reads}
    made = node_to_te(node, inputs)
    outputs = [made[value] for value in node.outputs]
    schedule = _SCHEDULES[backend_of(as_target(target)).schedules](outputs)
    return ScheduledKernel(
        name=f"kernel{number}_{_title(node)}",
        schedule=schedule,
        inputs=tuple(inputs.values()),
        outputs=tuple(outputs),
        workspaces=tuple(stored_tensors(schedule)),
    )


def _title(node: GraphNode) -> str:
    """Return the names of the node's operators as an identifier of at most 60 characters."""
    operators = [node.operator]
    if node.operator == FUSED:
        operators = [inner.operator for inner in node.subgraphs[0].nodes]
    return re.sub(r"\W", "_", "_".join(operators))[:60]
