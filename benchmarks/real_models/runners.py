"""Run models by refcomp and by ONNX Runtime, and compare both node by node."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import onnxruntime

from benchmarks.real_models.network import Array, Feeds
from refcomp.driver.devices import rocm_emulator
from refcomp.foundation.target import as_target
from refcomp.frontend.onnx import from_onnx
from refcomp.frontend.onnx.peer import run_onnx_runtime
from refcomp.graph import DebugExecutor, executor_for, trace_graph
from refcomp.graph.compile import compile_graph
from refcomp.graph.debug import NodeComparison, Peer, compare_nodes
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.stages.executor import StagedExecutor
from refcomp.runtime.device import Device

_RUNS = 5  # that are timed; the fastest one counts


@dataclass(slots=True)
class Runner:
    """Runs models by name, and keeps what they read first. A subclass makes the sessions.

    Attributes:
        models: the ONNX models.
        seconds: model -> seconds from its bytes to a session.
        examples: model -> the smallest feeds that it has got.
    """

    models: Mapping[str, bytes]
    seconds: dict[str, float] = field(default_factory=dict)
    examples: dict[str, Feeds] = field(default_factory=dict)
    _sessions: dict[str, Any] = field(default_factory=dict)

    def __call__(self, model: str, feeds: Feeds) -> list[Array]:
        """Return the outputs of a model."""
        known = self.examples.get(model)
        if known is None or _size_of(feeds) < _size_of(known):
            self.examples[model] = feeds
        return self.run(self.session(model), feeds)

    def session(self, model: str) -> Any:
        """Return what runs a model; it is made once."""
        if model not in self._sessions:
            start = perf_counter()
            self._sessions[model] = self.make(self.models[model])
            self.seconds[model] = perf_counter() - start
        return self._sessions[model]

    def make(self, model: bytes) -> Any:
        raise NotImplementedError

    def run(self, session: Any, feeds: Feeds) -> list[Array]:
        raise NotImplementedError

    def run_seconds(self, model: str) -> float:
        """Return the seconds of the fastest of some runs of the example."""
        session, feeds = self.session(model), self.examples[model]
        seconds = []
        for _ in range(_RUNS):
            start = perf_counter()
            self.run(session, feeds)
            seconds.append(perf_counter() - start)
        return min(seconds)


class OnnxRuntimeRunner(Runner):
    """Runs models by ONNX Runtime, which optimizes them as it likes."""

    def make(self, model: bytes) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors only
        providers = ["CPUExecutionProvider"]
        return onnxruntime.InferenceSession(model, options, providers=providers)

    def run(self, session: onnxruntime.InferenceSession, feeds: Feeds) -> list[Array]:
        outputs: list[Array] = session.run(None, dict(feeds))
        return outputs


@dataclass(slots=True)
class RefcompRunner(Runner):
    """Compiles models for a target, and runs them; those for AMD GPUs on an emulated one.

    Attributes:
        target: the text of the target, such as `rocm -mcpu=gfx942`.
    """

    target: str = "llvm"

    def make(self, model: bytes) -> GraphExecutor | StagedExecutor:
        return executor_for(from_onnx(model), self.target, device_for(self.target))

    def run(self, session: GraphExecutor | StagedExecutor, feeds: Feeds) -> list[Array]:
        return [output.asnumpy() for output in session.run(dict(feeds))]

    def launches(self, model: str) -> int:
        """Return how many kernels a run of the example launches."""
        session = self.session(model)
        if isinstance(session, GraphExecutor):
            return len(session.module.kernels)
        before = session.launches
        self.run(session, self.examples[model])
        return session.launches - before


def _size_of(feeds: Feeds) -> int:
    return math.prod(array.size for array in feeds.values())


def device_for(target: str) -> Device | None:
    """Return the emulated GPU of a target for AMD GPUs; None, its own device, for other targets.

    Raises:
        UserError: the target is unknown, or does not name a GPU that can be emulated.
    """
    wanted = as_target(target)
    if wanted.kind != "rocm":
        return None
    return rocm_emulator(wanted.option("mcpu", "gfx942"))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome of a comparison with ONNX Runtime, node by node, within derived bounds."""

    wrong: tuple[NodeComparison, ...]  # nodes that leave their bounds
    against: Mapping[str, int]  # ONNX Runtime, or the numpy meaning -> compared nodes
    ratio: float  # the greatest error by its bound, of the nodes that are right

    def __str__(self) -> str:
        compared = ", ".join(f"{count} against {name}" for name, count in self.against.items())
        if not self.wrong:
            return f"no node leaves its bound ({compared})"
        first = self.wrong[0]
        return f"{len(self.wrong)} nodes leave their bounds, first {first.name}: {first.cause}"


def compare(model: bytes, feeds: Feeds, target: str = "llvm") -> Comparison:
    """Compare each node of a compiled model with ONNX Runtime, on what ONNX Runtime read.

    The model is compiled for `target`, and runs where a `RefcompRunner` runs it. Nodes whose values
    ONNX Runtime does not show, such as those inside of an If, are compared with their numpy
    meaning.
    """
    graph = trace_graph(from_onnx(model), feeds)
    executor = DebugExecutor(compile_graph(graph, target), device_for(target))
    given = {name: array for name, array in feeds.items() if name in executor.input_names}
    executor.run(given)
    peer = Peer("ONNX Runtime", run_onnx_runtime(model, dict(feeds)), graph)
    found = list(compare_nodes(executor, peer))
    right = [one.ratio for one in found if not one.wrong]
    return Comparison(
        wrong=tuple(one for one in found if one.wrong),
        against=Counter(one.against for one in found),
        ratio=max(right, default=0.0),
    )
