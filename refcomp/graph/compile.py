"""Compile a graph to one module: optimize it, schedule its kernels, and build or recall them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from refcomp.driver.build_cache import recall_module
from refcomp.foundation.errors import UserError
from refcomp.foundation.options import build_options, current_options
from refcomp.foundation.target import Target, as_target, target_or_current
from refcomp.graph.graph import Graph, Value, spell
from refcomp.graph.kernels import NodeKernel, ScheduledKernel, schedule_graph
from refcomp.graph.optimize import optimize
from refcomp.graph.stages.stages import has_stages
from refcomp.graph.verify import verify_graph
from refcomp.runtime.module import Module
from refcomp.topi.schedules.vector_registers import has_fma

_LOG = logging.getLogger("refcomp.graph")


@dataclass(frozen=True, slots=True, eq=False)
class GraphModule:
    """A compiled graph, which `compile_graph` returns and a `GraphExecutor` runs.

    Attributes:
        graph: the graph after all passes.
        kernels: for each node, in order, the name of its function and the values that it takes.
            Equal nodes have one function.
        module: the module with all functions; None for a graph without nodes.
        target: the target that the module is compiled for.
        parameters: constants whose elements the caller sets before the first run.

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
    parameters: tuple[Value, ...] = ()


def compile_graph(
    graph: Graph,
    target: Target | str | None = None,
    passes: Sequence[str] | None = None,
) -> GraphModule:
    """Return the compiled graph, which a `GraphExecutor` runs.

    The graph is optimized first: operators are fused, and constants are folded. Then each node
    becomes one function. Nodes that differ only in the names of their values share a function.
    The logger `refcomp.graph` prints at DEBUG the loop IR of each function.

    Args:
        graph: what `from_onnx` or a `GraphBuilder` returned.
        target: what to compile for; see `build`.
        passes: the names of the passes to run, as for `optimize`; None for all.

    Raises:
        UserError: the target is unknown, or the graph has control operators (see `executor_for`).
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
    verify_graph(graph)
    if has_stages(graph):
        raise UserError(
            f"the graph {spell(graph.name)} cannot be compiled before a run",
            why="it has control operators, or shapes that only a run determines",
            remedy="run it by refcomp.graph.executor_for(graph, target)",
        )
    chosen = target_or_current(target)
    return compile_nodes(optimize(graph, passes, chosen), chosen)


def compile_nodes(graph: Graph, target: Target | str = "llvm") -> GraphModule:
    """Return the compiled graph, in which each node is a function of its own. No pass runs.

    So a graph that is not fused keeps each value in memory. Products and sums contract: a * b + c
    rounds once if the target has such an instruction. The build option `contract` overrides this.

    Args:
        graph: a graph without control operators, such as `optimize` returns.
        target: what to compile for; see `build`.

    Raises:
        UserError: the target is unknown.
        Unsupported: the target cannot express an operator.
        ToolchainError: a tool is missing or fails.
    """
    chosen = as_target(target)
    is_licensed = current_options().contract
    if is_licensed is None:
        is_licensed = has_fma(chosen)
    with build_options(contract=is_licensed):
        return _compile_nodes(graph, chosen)


def _compile_nodes(graph: Graph, chosen: Target) -> GraphModule:
    functions, kernels = schedule_graph(graph, chosen)
    if _LOG.isEnabledFor(logging.DEBUG):
        _log_kernels(functions, chosen)
    module = None
    if functions:
        identities = [one.identity() for one in functions]
        parts = None if None in identities else ["graph", *filter(None, identities)]
        module = recall_module(parts, chosen, partial(_build, functions, chosen))
    return GraphModule(graph, kernels, module, chosen)


def _log_kernels(kernels: Sequence[ScheduledKernel], target: Target) -> None:
    """Print the loop IR of all functions, which are lowered for that."""
    from refcomp.graph.lower import lower_kernel  # noqa: PLC0415
    from refcomp.ir.printer import print_func  # noqa: PLC0415

    for kernel in kernels:
        text = print_func(lower_kernel(kernel, target))
        _LOG.debug("kernel %s\n%s", kernel.name, text)


def _build(kernels: Sequence[ScheduledKernel], target: Target) -> Module:
    # Here, since a module from the cache needs neither passes nor printers.
    from refcomp.graph.lower import build_kernels  # noqa: PLC0415

    return build_kernels(kernels, target)
