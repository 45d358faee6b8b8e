"""The digit network from its ONNX file: compile time, and time per image beside ONNX Runtime.

Both get the same images and as many threads, from 1 to the number of cores; their probabilities are
held against each other before anything is timed. A run copies inputs in and outputs out in both.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.fresh import ROOT, call_fresh
from benchmarks.measure import figure_of, interleave, seconds_per_call
from benchmarks.report import Bar, Row, Work, row_beside
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.compile import compile_graph
from refcomp.graph.executor import GraphExecutor

_FOLDER = ROOT / "scripts" / "data" / "digits"
_MODEL = str(_FOLDER / "digits.onnx")
_COMPILES = {"cold compile": Bar(10.0), "cached compile": Bar(1.0)}
_SLOWDOWN = Bar(5.0, of="ratio")
_BATCHES = (1, 450)


def measure(is_quick: bool) -> list[Row]:
    """Compiling from and without the cache, then each batch with each number of threads."""
    if find_spec("onnxruntime") is None:
        raise RuntimeError("onnxruntime is not installed: pip install onnxruntime")
    rounds = [_compile_round() for _ in range(2 if is_quick else 7)]
    rows = [
        Row("digits", case, figure_of(times), bar=bar)
        for (case, bar), times in zip(_COMPILES.items(), zip(*rounds, strict=True), strict=True)
    ]
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        rows += [_batch_row(batch, threads, is_quick) for batch in _BATCHES]
    return rows


def _compile_round() -> list[float]:
    """Return the seconds with an empty and with a filled cache, each in a fresh process."""
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
        environment = {"REFCOMP_CACHE_DIR": folder}
        return [call_fresh(compile_time, environment=environment) for _ in _COMPILES]


def compile_time() -> float:
    """Return the seconds from the model file to an executor that can run."""
    return seconds_per_call(_load)


def _load() -> GraphExecutor:
    return GraphExecutor(compile_graph(from_onnx(_MODEL), "llvm"))


def _batch_row(batch: int, threads: int, is_quick: bool) -> Row:
    times = call_fresh(
        time_batch, threads=threads, batch=batch, intra_op_threads=threads, is_quick=is_quick
    )
    case = f"batch {batch}, {threads} thread{'s' * (threads > 1)}, per image"
    work = Work(1e-3, "k images")
    ours, theirs = times["refcomp"], times["onnxruntime"]
    return row_beside("digits", case, ours, "onnxruntime", theirs, work=work, bar=_SLOWDOWN)


def time_batch(batch: int, intra_op_threads: int, is_quick: bool) -> dict[str, list[float]]:
    """Return the seconds per image of refcomp and of ONNX Runtime, whose results are compared."""
    image = np.load(_FOLDER / "digits_test.npz")["image"][:batch]
    executor, theirs = _load(), _onnxruntime(image, intra_op_threads)

    def ours() -> Any:
        return executor.run(image=image)

    np.testing.assert_allclose(ours()[0].numpy(), theirs()[0], rtol=1e-4, atol=1e-5)
    times = interleave(
        {"refcomp": ours, "onnxruntime": theirs},
        rounds=3 if is_quick else 15,
        least_s=0.02 if is_quick else 0.2,
    )
    return {name: [seconds / batch for seconds in samples] for name, samples in times.items()}


def _onnxruntime(image: np.ndarray[Any, Any], threads: int) -> Callable[[], Any]:
    import onnxruntime  # noqa: PLC0415  (the peer, which need not be installed)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(_MODEL, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"image": image})
