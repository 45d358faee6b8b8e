"""Run a graph stage by stage."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from refcomp.foundation.target import Target, as_target
from refcomp.graph.compile import compile_graph
from refcomp.graph.constants import lasting
from refcomp.graph.control.machine import RunValue, ShapedTensor
from refcomp.graph.control.operator import run_control
from refcomp.graph.control.operators import find_control
from refcomp.graph.control.values import as_run_value, check_run_values
from refcomp.graph.executor import GraphExecutor, device_of
from refcomp.graph.graph import Array, Graph, GraphNode, Value
from refcomp.graph.stages.segments import SegmentRunner
from refcomp.graph.stages.stages import ControlStage, TensorStage, has_stages, stages_of
from refcomp.graph.verify import verify_graph
from refcomp.runtime.arrays.ndarray import NDArray, array
from refcomp.runtime.device import Device, checked_device


def executor_for(
    graph: Graph, target: Target | str = "llvm", device: Device | None = None
) -> GraphExecutor | StagedExecutor:
    """Return an executor of any graph: a StagedExecutor where a run has to decide something.

    Args:
        graph: what a frontend or a `GraphBuilder` returned.
        target: what to compile for; see `build`.
        device: the device; None is number 0 of the kind that the target means.

    Raises:
        UserError: `graph` is not a graph, or the target is unknown.

    Example::

        >>> net = rc.graph.parse_graph("graph a(x: f32[2]) -> (y) { y: f32[2] = relu(x) }")
        >>> executor = rc.graph.executor_for(net, "interp")
        >>> executor.run(x=np.array([3, -4], "float32"))[0].asnumpy().tolist()
        [3.0, 0.0]
    """
    verify_graph(graph)
    if has_stages(graph):
        return StagedExecutor(graph, target, device)
    return GraphExecutor(compile_graph(graph, target), device)


class StagedExecutor:
    """A runner of a graph with control operators, or with shapes that only a run determines.

    Stages whose types are known are compiled at once. Others are compiled for the shapes and
    attributes that runs meet; the last 16 compilations for each place are kept.

    Attributes:
        graph: the graph.
        target: the target that stages are compiled for.
        device: the device that runs them.

    Args:
        graph: what a frontend or a `GraphBuilder` returned.
        target: what to compile for; see `build`.
        device: the device; None is number 0 of the kind that the target means.

    Raises:
        UserError: `graph` is not a graph, or the target is unknown.

    Example::

        >>> then = rc.graph.parse_graph("graph a(x: f32[2]) -> (y) { y: f32[2] = relu(x) }")
        >>> other = rc.graph.parse_graph("graph b(x: f32[2]) -> (y) { y: f32[2] = negative(x) }")
        >>> builder = rc.graph.GraphBuilder("net")
        >>> c = builder.input("c", "bool", ())
        >>> x = builder.input("x", "float32", (2,))
        >>> net = builder.finish([builder.node("if", [c, x], subgraphs=[then, other])])
        >>> executor = rc.graph.StagedExecutor(net, "interp")
        >>> (y,) = executor.run(c=np.array(False), x=np.array([3, -4], "float32"))
        >>> print(y.asnumpy(), executor.input_names, executor.num_outputs)
        [-3.  4.] ('c', 'x') 1
        >>> executor.compilations, executor.launches
        (2, 1)
    """

    def __init__(
        self,
        graph: Graph,
        target: Target | str = "llvm",
        device: Device | None = None,
    ) -> None:
        verify_graph(graph)
        self.graph = graph
        self.target = as_target(target)
        self.device = (
            device_of(self.target) if device is None else checked_device(device)
        )
        self._lock = threading.Lock()
        self._machine = _StageMachine(self.target, self.device)
        self._machine.runner_of(graph)  # compiles what it can

    @property
    def launches(self) -> int:
        """Return the number of kernels that all runs have launched."""
        return self._machine.launches

    @property
    def compilations(self) -> int:
        """Return the number of stages that were compiled, at once or in a run."""
        return self._machine.compilations

    @property
    def input_names(self) -> tuple[str, ...]:
        """Return the names of the inputs for `run`."""
        return tuple(value.name for value in self.graph.inputs)

    @property
    def num_outputs(self) -> int:
        """Return the number of values that `run` returns."""
        return len(self.graph.outputs)

    def run(
        self, feeds: Mapping[str, Any] | None = None, /, **inputs: Any
    ) -> list[Any]:
        """Run the graph and return its outputs.

        Args:
            feeds: inputs by name. A sequence is a list of arrays, an absent optional is None.
            **inputs: more inputs by name.

        Returns:
            An NDArray for each output; a tuple of NDArrays for a sequence, None for an absent
            optional. A tensor of strings is a numpy array of objects, as an input and an output.

        Raises:
            UserError: a name is unknown or missing, an input does not fit, or an operator does not
                take the shapes and attributes that it meets. The error names the node.
        """
        given = {**(feeds or {}), **inputs}
        check_run_values(self.graph, given)
        with self._lock:
            values = [
                self._machine.on_device(as_run_value(given[value.name]))
                for value in self.graph.inputs
            ]
            return list(self._machine.run(self.graph, values))


class _StageMachine:
    """The machine of control operators: it runs graphs by compiled stages."""

    def __init__(self, target: Target, device: Device) -> None:
        self.target = target
        self.device = device
        self.compilations = 0
        self._dropped_launches = 0  # of executors that are not kept
        self._runners: dict[Graph, _GraphRunner] = {}

    @property
    def launches(self) -> int:
        live = sum(runner.launches for runner in self._runners.values())
        return self._dropped_launches + live

    def run(self, graph: Graph, inputs: Sequence[RunValue]) -> list[RunValue]:
        return self.runner_of(graph).run(inputs)

    def read(self, tensor: ShapedTensor) -> Array:
        if isinstance(tensor, np.ndarray):  # of texts, which are on no device
            return tensor
        assert isinstance(tensor, NDArray)
        return tensor.asnumpy()

    def tensor(self, elements: Array) -> ShapedTensor:
        return elements if elements.dtype == object else array(elements, self.device)

    def on_device(self, value: RunValue) -> RunValue:
        """Return a value of the caller, with its tensors copied to the device."""
        if value is None or isinstance(value, dict):  # maps are the executor's
            return value
        if isinstance(value, tuple):
            return cast("RunValue", tuple(map(self.on_device, value)))
        return self._tensor_on_device(value)

    def _tensor_on_device(self, value: ShapedTensor) -> ShapedTensor:
        is_texts = isinstance(value, np.ndarray) and value.dtype == object
        return value if is_texts else array(value, self.device)

    def runner_of(self, graph: Graph) -> _GraphRunner:
        """Return the runner of a graph or of a subgraph, which is made once."""
        runner = self._runners.get(graph)
        if runner is None:
            runner = self._runners[graph] = _GraphRunner(self, graph)
        return runner

    def compiled(self, graph: Graph) -> GraphExecutor:
        """Return an executor of a graph without control operators."""
        self.compilations += 1
        return GraphExecutor(compile_graph(graph, self.target), self.device)

    def drop(self, executor: GraphExecutor) -> None:
        """Count the launches of an executor that is not kept."""
        self._dropped_launches += executor.launches


class _GraphRunner:
    """The stages of one graph, with all compilations of each."""

    def __init__(self, machine: _StageMachine, graph: Graph) -> None:
        self.machine = machine
        self.graph = graph
        self.stages = stages_of(graph)
        self._typed: dict[TensorStage, GraphExecutor] = {}
        self._untyped: dict[TensorStage, SegmentRunner] = {}
        self._constants = {
            value: machine.tensor(elements)
            for value, elements in graph.constants.items()
        }
        for stage in self.stages:
            if isinstance(stage, ControlStage):
                for subgraph in stage.node.subgraphs:
                    machine.runner_of(subgraph)
            elif stage.is_typed:
                self._typed[stage] = machine.compiled(stage.graph)
            else:
                # Runs compile segments, when a file of weights may have changed.
                constants = {v: lasting(e) for v, e in stage.graph.constants.items()}
                lasting_graph = replace(stage.graph, constants=constants)
                self._untyped[stage] = SegmentRunner(machine, lasting_graph)

    @property
    def launches(self) -> int:
        typed = sum(executor.launches for executor in self._typed.values())
        return typed + sum(runner.launches for runner in self._untyped.values())

    def run(self, inputs: Sequence[RunValue]) -> list[RunValue]:
        """Return the outputs of the graph."""
        known: dict[Value, RunValue] = dict(self._constants)
        known.update(zip(self.graph.inputs, inputs, strict=True))
        for stage in self.stages:
            if isinstance(stage, ControlStage):
                made = self._run_control(stage.node, known)
                known.update(zip(stage.node.outputs, made, strict=True))
            else:
                made = self._run_tensors(stage, known)
                known.update(zip(stage.graph.outputs, made, strict=True))
        return [known[value] for value in self.graph.outputs]

    def _run_control(
        self, node: GraphNode, known: Mapping[Value, RunValue]
    ) -> list[RunValue]:
        operator = find_control(node.operator)
        assert operator is not None
        inputs = [None if value is None else known[value] for value in node.inputs]
        return run_control(operator, node, self.machine, inputs)

    def _run_tensors(
        self, stage: TensorStage, known: Mapping[Value, RunValue]
    ) -> list[RunValue]:
        if not stage.is_typed:
            return self._untyped[stage].run(known)
        executor = self._typed[stage]
        tensors = {value.name: known[value] for value in stage.graph.inputs}
        read = {name: tensors[name] for name in executor.input_names}
        return list(executor.run(read))
