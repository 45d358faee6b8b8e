"""Executors of networks with the classic methods: `graph_runtime` and `debug_runtime`.

Both run what `nnvm.compiler.build` returned. They are executors of `refcomp.graph`, whose inputs
may be numpy arrays of another dtype, as in the classic system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.classic.methods import with_classic_attributes
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.graph.compile import GraphModule
from refcomp.graph.compiled import CompiledGraph
from refcomp.graph.debug.executor import DebugExecutor
from refcomp.graph.executor import GraphExecutor
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import Device
from refcomp.runtime.module import Module
from refcomp.runtime.timing import TimeResult, WorkResult, time_evaluator

# Functions of an executor that classic programs ask for by name.
_FUNCTIONS = (
    "run",
    "set_input",
    "get_input",
    "get_output",
    "get_num_inputs",
    "get_num_outputs",
    "load_params",
)


@with_classic_attributes("GraphModule")
class GraphRuntime(GraphExecutor):
    """A `GraphExecutor` with the classic methods. `graph_runtime.create` returns it.

    Example::

        >>> from refcomp.classic import nnvm
        >>> from refcomp.classic.contrib import graph_runtime
        >>> net = nnvm.sym.relu(nnvm.sym.Variable("x"))
        >>> graph, lib, params = nnvm.compiler.build(net, "interp", {"x": (2,)})
        >>> module = graph_runtime.create(graph, lib, rc.cpu(0))
        >>> module.set_input("x", np.array([-1.0, 2.0]))
        >>> _ = module.run()
        >>> module.get_num_outputs(), module.get_output(0).asnumpy().tolist()
        (1, [0.0, 2.0])
    """

    def __init__(self, module: GraphModule, device: Device | None = None) -> None:
        super().__init__(module, device)
        self.module = RunnableGraph(
            module.graph,
            module.kernels,
            module.module,
            module.target,
            module.parameters,
            executor=self,
        )

    def set_input(
        self, key: str | int | None = None, value: object = None, /, **inputs: object
    ) -> None:
        """Keep copies of inputs, as `GraphExecutor.set_input` does.

        A numpy array of another dtype is converted first. Integers are not made of floats.

        Args:
            key: the name of an input or its number, from 0.
            value: an NDArray or a numpy array of the input's shape.
            **inputs: more arrays, by name.
        """
        given = dict(inputs)
        if key is not None:
            given[self._name_of(key)] = value
        super().set_input(
            **{name: self._converted(name, each) for name, each in given.items()}
        )

    def _converted(self, name: str, value: object) -> object:
        if not isinstance(value, np.ndarray):
            return value
        declared = self._constant(name) or self._input(name)
        dtype = to_numpy(declared.dtype)
        is_safe = np.can_cast(value.dtype, dtype, "same_kind")
        return value.astype(dtype, copy=False) if is_safe else value

    def get_num_inputs(self) -> int:
        """Return the number of inputs."""
        return len(self.input_names)

    def get_num_outputs(self) -> int:
        """Return the number of outputs."""
        return self.num_outputs

    def __getitem__(self, name: str) -> Callable[..., object]:
        """Return a method by its name, such as `run`."""
        if name not in _FUNCTIONS:
            raise UserError(
                f"the runtime has no function {name!r}",
                remedy=advise(name, _FUNCTIONS, f"it has {', '.join(_FUNCTIONS)}"),
            )
        method: Callable[..., object] = getattr(self, name)
        return method


@dataclass(frozen=True, slots=True, eq=False)
class RunnableGraph(GraphModule):
    """A compiled graph that knows its executor: the `module` of a `GraphRuntime`.

    Attributes:
        executor: the executor, whose runs `time_evaluator` measures.
    """

    executor: GraphRuntime | None = None

    def __getitem__(self, name: str) -> Callable[..., object]:
        """Return a method of the executor by its name, such as `run`."""
        assert self.executor is not None
        return self.executor[name]

    def time_evaluator(
        self,
        func_name: str,
        ctx: Device,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
    ) -> Callable[..., TimeResult | WorkResult]:
        """Return a callable that measures runs of the network, with copies of its inputs.

        Args:
            func_name: `run`; other functions are not measured.
            ctx: the device of the executor.
            number: runs in a repetition.
            repeat: number of repetitions.
            min_repeat_ms: minimum duration of a repetition. `number` grows until it is reached.

        Raises:
            UserError: the function is not `run`, `ctx` is another device, or a number is out of
                range.
        """
        assert self.executor is not None
        if func_name != "run":
            raise UserError(
                f"the function {func_name!r} of a network cannot be measured",
                remedy='measure "run"',
            )
        run = _Run(self.executor)
        return time_evaluator(run, ctx, number, repeat, min_repeat_ms)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Run:
    """The function `run` of an executor, in the form that `time_evaluator` measures."""

    executor: GraphExecutor

    def on(self, device: Device) -> _Run:
        if device != self.executor.device:
            raise UserError(
                f"the network runs on {self.executor.device}, not on {device}",
                remedy="pass the device that the runtime was created with",
            )
        return self

    def bind(self) -> Callable[[], None]:
        def run() -> None:
            self.executor.run()

        return run


class DebugGraphRuntime(GraphRuntime, DebugExecutor):
    """A `DebugExecutor` with the classic methods. `debug_runtime.create` returns it."""

    def debug_get_output(self, node: str | int, out: NDArray | None = None) -> NDArray:
        """Run the network, and return the output of a node.

        Args:
            node: the name of the node, or its number, from 0.
            out: an array that gets a copy, and is returned instead; None for none.

        Raises:
            UserError: no kernel makes the output of the node.
        """
        self.run()
        names = list(self.outputs)
        is_number = isinstance(node, int) and 0 <= node < len(names)
        name = names[node] if is_number else str(node)  # type: ignore[index]
        if name not in self.outputs:
            raise UserError(
                f"no kernel makes the output {node!r}",
                why="a fused kernel makes the output of its last node only",
                remedy=advise(
                    name,
                    names,
                    f"ask for {', '.join(names)}, or build at opt_level=0",
                ),
            )
        found = self.outputs[name]
        return found if out is None else out.copyfrom(found)


def create_graph_runtime(
    graph_json_str: CompiledGraph | str,
    libmod: Module | None,
    ctx: Device | Sequence[Device] | None = None,
) -> GraphRuntime:
    """Return an executor of a network, by its classic name `graph_runtime.create`.

    Args:
        graph_json_str: the graph that `nnvm.compiler.build` returned, or its JSON form.
        libmod: the module that `build` or `tvm.module.load` returned.
        ctx: the device, or a list of one device.

    Raises:
        UserError: the JSON form is damaged, the module does not belong to the graph, or there are
            several devices.
    """
    return GraphRuntime(_compiled(graph_json_str).with_code(libmod), _device(ctx))


def create_debug_runtime(
    graph_json_str: CompiledGraph | str,
    libmod: Module | None,
    ctx: Device | Sequence[Device] | None = None,
    dump_root: str | None = None,
) -> DebugGraphRuntime:
    """Return an executor that keeps the output and the times of each node.

    Args:
        graph_json_str: the graph that `nnvm.compiler.build` returned, or its JSON form.
        libmod: the module that `build` or `tvm.module.load` returned.
        ctx: the device, or a list of one device.
        dump_root: None. `executor.recording().save(path)` writes what a run kept.

    Raises:
        UserError: as for `graph_runtime.create`, or `dump_root` is given.
    """
    if dump_root is not None:
        raise UserError(
            "a debug runtime writes no files by itself",
            remedy="leave dump_root out, and call recording().save(path) after a run",
        )
    module = _compiled(graph_json_str).with_code(libmod)
    return DebugGraphRuntime(module, _device(ctx))


def _compiled(graph: object) -> CompiledGraph:
    compiled = CompiledGraph.from_json(graph) if isinstance(graph, str) else graph
    if not isinstance(compiled, CompiledGraph):
        raise UserError(
            f"a value of type {type(graph).__name__} is not a compiled graph",
            remedy="pass what nnvm.compiler.build returned, or its JSON form",
        )
    return compiled


def _device(ctx: Device | Sequence[Device] | None) -> Device | None:
    if isinstance(ctx, str) or not isinstance(ctx, Sequence):
        return ctx  # checked by the executor
    if len(ctx) != 1:
        raise UserError(
            f"{len(ctx)} devices are given for one network",
            why="all kernels of a network run on one device",
            remedy="build a network for each device, and copy arrays from one to the next",
        )
    return ctx[0]
