"""Run a compiled graph node by node, and keep the output and the times of each node.

A `DebugExecutor` has the interface of a `GraphExecutor`. No two of its values share memory, so a
kernel that writes out of its bounds, or too late, changes no value of another kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from refcomp.foundation.artifacts import evaluate_dim
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.symbol_sizes import Extent, Sizes
from refcomp.foundation.target import Target
from refcomp.graph.compile import GraphModule, compile_graph, compile_nodes
from refcomp.graph.debug.recording import Recording
from refcomp.graph.debug.unfuse import unfuse
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Graph, GraphNode, Value, spell
from refcomp.graph.kernels import NodeKernel
from refcomp.graph.narrow import (
    checked_count,
    count_of,
    is_narrow,
    narrowed_axis,
    narrowed_symbol,
)
from refcomp.graph.optimize import optimize
from refcomp.runtime.arrays.ndarray import NDArray, array, empty
from refcomp.runtime.device import Device
from refcomp.runtime.timing import (
    TimeResult,
    is_emulated,
    seconds_of,
    without_collection,
)


class DebugExecutor(GraphExecutor):
    """A runner of a compiled graph that keeps what each node made, and how long it took.

    Values inside a fused kernel are in no memory. `create(graph, target, unfused=True)` returns an
    executor that keeps them, too.

    Args:
        module: what `compile_graph` returned.
        device: the device; None is number 0 of the kind that the module's target means.
        repeat: how often a run launches each kernel. Each launch is measured.

    Attributes:
        inputs: name of an input -> its array, after a run.
        outputs: name of a value -> its array, for each output of each node, after a run.
        times: name of a node -> the seconds of its launches, after a run. It is empty on an
            emulated device, whose times say nothing.
        symbols: the values of all symbols in the last run, those of `narrow` nodes included.

    Raises:
        UserError: `module` is not a compiled graph, or `repeat` is below 1.

    Source: TVM, debug_executor.GraphModuleDebug.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N",))
        >>> doubled = builder.node("add", [x, x], name="doubled")
        >>> net = builder.finish([builder.node("relu", [doubled], name="y")])
        >>> executor = rc.graph.DebugExecutor(rc.compile_graph(net, "interp"), repeat=3)
        >>> (y,) = executor.run(x=np.array([1, -1], "float32"))
        >>> list(executor.outputs), len(executor.times["y"].results), executor.symbols
        (['y'], 3, {'N': 2})
        >>> executor.recording().outputs["y"].tolist()
        [2.0, 0.0]
        >>> unfused = rc.graph.debug.create(net, "interp", unfused=True)
        >>> _ = unfused.run(x=np.array([1, -1], "float32"))
        >>> print(unfused.outputs["doubled"].asnumpy())
        [ 2. -2.]
    """

    def __init__(
        self, module: GraphModule, device: Device | None = None, *, repeat: int = 1
    ) -> None:
        super().__init__(module, device)
        if not isinstance(repeat, int) or repeat < 1:
            raise UserError(
                f"repeat is {repeat!r}", remedy="use an integer of at least 1"
            )
        self.repeat = repeat
        self.inputs: dict[str, NDArray] = {}
        self.outputs: dict[str, NDArray] = {}
        self.times: dict[str, TimeResult] = {}
        self.symbols: dict[str, int] = {}
        self.is_timed = not is_emulated(self.device)

    def _run(
        self, given: Mapping[str, object], symbols: Mapping[str, int]
    ) -> list[NDArray]:
        self.inputs = {
            name: array(given[name], self.device) for name in self.input_names
        }
        known = dict(self._constants)
        for value in self.module.graph.inputs:
            known[value] = self.inputs[value.name]
        self.symbols = dict(symbols)
        self.outputs = {}
        self.times = {}
        for call in _calls(self.module):
            made, times = self._launch(call, known, self.symbols)
            known |= made
            self.outputs |= {value.name: made[value] for value in call.node.outputs}
            if times is not None:
                self.times[call.node.name] = times
        return [known[value] for value in self.module.graph.outputs]

    def run_node(self, name: str, inputs: Mapping[str, object]) -> list[NDArray]:
        """Run one node on arrays of the caller, and return its outputs.

        What the last run kept does not change.

        Args:
            name: the name of the node, which is the name of its first output.
            inputs: name of a value that the node reads -> its array. Constants may be left out.

        Raises:
            UserError: no node has the name, or an input is missing.

        Example::

            >>> builder = rc.graph.GraphBuilder("net")
            >>> x = builder.input("x", "float32", ("N",))
            >>> net = builder.finish([builder.node("relu", [x], name="y")])
            >>> executor = rc.graph.DebugExecutor(rc.compile_graph(net, "interp"))
            >>> (y,) = executor.run_node("y", {"x": np.array([-3, 3], "float32")})
            >>> print(y.asnumpy())
            [0. 3.]
        """
        call = self._call_of(name)
        known = dict(self._constants)
        sizes = Sizes()
        for value in call.node.reads:
            if value.name in inputs:
                known[value] = array(inputs[value.name], self.device)
            elif value not in known:
                raise UserError(
                    f"node {spell(name)} reads {spell(value.name)}, which is not given",
                    remedy=f"give {', '.join(v.name for v in call.node.reads)}",
                )
            dims = zip(value.shape, known[value].shape, strict=True)
            sizes.solve(Extent(dim, extent, value.name) for dim, extent in dims)
        with self._lock:
            made, _ = self._launch(call, known, {**self.symbols, **sizes.values})
        return [made[value] for value in call.node.outputs]

    def _call_of(self, name: str) -> _Call:
        calls = {call.node.name: call for call in _calls(self.module)}
        if name not in calls:
            remedy = f"nodes: {', '.join(map(spell, calls))}"
            raise UserError(
                f"the graph has no node {name!r}", remedy=advise(name, calls, remedy)
            )
        return calls[name]

    def _launch(
        self, call: _Call, known: Mapping[Value, NDArray], symbols: dict[str, int]
    ) -> tuple[dict[Value, NDArray], TimeResult | None]:
        """Launch a kernel, in new memory. Return what it made, and its times if they count.

        A `narrow` node adds its symbol to `symbols` first.
        """
        if is_narrow(call.node):
            symbols[narrowed_symbol(call.node)] = _count(call.node, known)
        module = self.module.module
        assert module is not None
        arrays = {value: known[value] for value in call.kernel.inputs}
        for value in (*call.kernel.outputs, *call.kernel.workspaces):
            shape = tuple(evaluate_dim(dim, symbols) for dim in value.shape)
            arrays[value] = empty(shape, to_numpy(value.dtype), self.device)
        launch = module[call.kernel.name].bind(*arrays.values())
        self.launches += self.repeat
        if not self.is_timed:
            for _ in range(self.repeat):
                launch()
            return arrays, None
        with without_collection():
            seconds = [seconds_of(launch, self.device, 1) for _ in range(self.repeat)]
        return arrays, TimeResult(tuple(seconds))

    def recording(self) -> Recording:
        """Return the outputs and the times of the last run, as numpy arrays.

        Raises:
            UserError: the graph has not been run.
        """
        if not self.outputs:
            raise UserError(
                "there is nothing to save",
                why="the graph has not been run, or has no nodes",
                remedy="call run() first",
            )
        return Recording(
            outputs={name: a.asnumpy() for name, a in self.outputs.items()},
            times={name: times.results for name, times in self.times.items()},
        )

    def save(self, path: str) -> None:
        """Write the outputs and the times of the last run to an .npz file.

        `refcomp.graph.debug.load_recording` reads it.

        Args:
            path: the file, which is replaced if it exists.

        Raises:
            UserError: the graph has not been run, or the file cannot be written.

        Example::

            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> builder = rc.graph.GraphBuilder("net")
            >>> x = builder.input("x", "float32", ("N",))
            >>> net = builder.finish([builder.node("relu", [x], name="y/0")])
            >>> executor = rc.graph.DebugExecutor(rc.compile_graph(net, "interp"))
            >>> _ = executor.run(x=np.array([-3, 3], "float32"))
            >>> with TemporaryDirectory() as folder:
            ...     path = str(Path(folder, "net.npz"))
            ...     executor.save(path)
            ...     rc.graph.debug.load_recording(path).outputs["y/0"].tolist()
            [0.0, 3.0]
        """
        self.recording().save(path)


class _Call(NamedTuple):
    """A node and its kernel."""

    node: GraphNode
    kernel: NodeKernel


def _calls(module: GraphModule) -> list[_Call]:
    pairs = zip(module.graph.nodes, module.kernels, strict=True)
    return [_Call(node, kernel) for node, kernel in pairs]


def _count(node: GraphNode, known: Mapping[Value, NDArray]) -> int:
    data = node.inputs[0]
    assert data is not None
    most = known[data].shape[narrowed_axis(node)]
    return checked_count(known[count_of(node)].asnumpy(), most, node.name)


def create(
    graph: Graph,
    target: Target | str = "llvm",
    device: Device | None = None,
    *,
    unfused: bool = False,
    repeat: int = 1,
) -> DebugExecutor:
    """Return a debug executor of a graph, which is optimized and compiled.

    Args:
        graph: what `from_onnx` or a `GraphBuilder` returned.
        target: what to compile for; see `build`.
        device: the device; None is number 0 of the kind that the target means.
        unfused: True to make each node inside of a fused kernel a kernel of its own. Then every
            value is kept. All passes but fusion run as usual.
        repeat: how often a run launches each kernel.

    Raises:
        UserError: as for `compile_graph`, or `repeat` is below 1.
        Unsupported: the target cannot express an operator.
        ToolchainError: a tool is missing or fails.

    Source: TVM, debug_executor.create.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N",))
        >>> y = builder.node("exp", [builder.node("relu", [x])])
        >>> net = builder.finish([y])
        >>> executor = rc.graph.debug.create(net, "interp", unfused=True)
        >>> _ = executor.run(x=np.array([-1, 0], "float32"))
        >>> {name: a.asnumpy().tolist() for name, a in executor.outputs.items()}
        {'relu': [0.0, 0.0], 'exp': [1.0, 1.0]}
    """
    if unfused:
        module = compile_nodes(unfuse(optimize(graph, target=target)), target)
    else:
        module = compile_graph(graph, target)
    return DebugExecutor(module, device, repeat=repeat)
