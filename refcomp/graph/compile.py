"""Compile a graph to one module: each node becomes one kernel, and one run of the tools makes all.

A kernel takes the node's inputs, then its outputs, then its workspaces. The executor owns all
memory, so that no kernel allocates any.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from refcomp.certificates import certify_build
from refcomp.compiler import build_functions
from refcomp.driver.backends import as_target, backend_of
from refcomp.foundation.options import build_options, current_options
from refcomp.foundation.target import Target
from refcomp.graph.dims import Symbols, expr_to_dim
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.infer import FUSED, node_to_te, value_to_placeholder
from refcomp.graph.optimize import optimize
from refcomp.ir.func import PrimFunc
from refcomp.lowering.lower import lower
from refcomp.runtime.module import Module
from refcomp.topi.schedules.cuda import schedule_cuda
from refcomp.topi.schedules.gpu import schedule_gpu
from refcomp.topi.schedules.llvm import schedule_llvm, stored_tensors

# `Backend.schedules` -> the function that schedules a node
_SCHEDULES = {"cpu": schedule_llvm, "gpu": schedule_gpu, "cuda": schedule_cuda}


@dataclass(frozen=True, slots=True, eq=False)
class NodeKernel:
    """The function of one node. Its arguments are inputs, outputs and workspaces, in that order."""

    name: str  # in the module
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    workspaces: tuple[Value, ...]  # memory that only this kernel uses


@dataclass(frozen=True, slots=True, eq=False)
class GraphModule:
    """A compiled graph, which `compile_graph` returns and a `GraphExecutor` runs.

    Attributes:
        graph: the graph after all passes.
        kernels: for each node, in order, the name of its function and the values that it takes.
        module: the module with a function for each node; None for a graph without nodes.
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
    """Return the compiled graph, which a `GraphExecutor` runs. Each node becomes one function.

    The graph is optimized first: operators are fused, and constants are folded.

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
    lowered = [lower_node(node, k, chosen) for k, node in enumerate(optimized.nodes)]
    functions = [func for func, _ in lowered]
    # Not certified again: lower_node has certified each schedule, if the options ask for it.
    with build_options(certify=False):
        module = build_functions(functions, chosen) if functions else None
    kernels = tuple(kernel for _, kernel in lowered)
    return GraphModule(optimized, kernels, module, chosen)


def lower_node(
    node: GraphNode, index: int, target: Target | str = "llvm"
) -> tuple[PrimFunc, NodeKernel]:
    """Return the function of a node, scheduled for `target`, and how to call it."""
    chosen = as_target(target)
    symbols = Symbols()
    # An input that is read twice is one argument: arguments may not overlap.
    inputs = {value: value_to_placeholder(value, symbols) for value in node.reads}
    made = node_to_te(node, inputs)
    outputs = [made[value] for value in node.outputs]
    schedule = _SCHEDULES[backend_of(chosen).schedules](outputs)
    stored = stored_tensors(schedule)
    name = f"kernel{index}_{_title(node)}"
    args = [*inputs.values(), *outputs, *stored]
    if current_options().certify:
        certify_build(schedule, args, name, chosen.kind)
    func = lower(schedule, args, name)
    workspaces = []
    for tensor in stored:
        shape = tuple(map(expr_to_dim, tensor.shape))
        workspaces.append(Value(f"{name}.{tensor.name}", tensor.dtype, shape))
    return func, NodeKernel(name, tuple(inputs), node.outputs, tuple(workspaces))


def _title(node: GraphNode) -> str:
    """Return the names of the node's operators as an identifier of at most 60 characters."""
    operators = [node.operator]
    if node.operator == FUSED:
        operators = [inner.operator for inner in node.subgraphs[0].nodes]
    return re.sub(r"\W", "_", "_".join(operators))[:60]
