"""One network on refcomp beside ONNX Runtime: seconds of a run, and the peak of memory.

Requires a fresh process for each function: the number of threads is fixed when a library is loaded,
and the peak of memory is that of the whole process. So this module imports no contender.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.measure import interleave
from benchmarks.networks.contenders import image_of, peak_bytes

# The largest difference of two results, in standard deviations of the network's outputs.
DIFFERENCE = 1e-3
# Both contenders may let threads wait actively for some milliseconds after a call.
_REST_S = 0.05

Run = Callable[[], np.ndarray[Any, Any]]


def time_network(path: str, intra_op_threads: int, rounds: int, least_s: float) -> dict[str, Any]:
    """Return the seconds per run of both contenders by name, one value a round.

    Their results are compared before anything is timed.

    Args:
        path: the model's file.
        intra_op_threads: of ONNX Runtime; refcomp's number is in the environment.
        rounds: how often the contenders take turns.
        least_s: for about how many seconds each runs in a round.

    Raises:
        AssertionError: the results differ by more than `DIFFERENCE`.
    """
    runs = {"refcomp": load_refcomp(path), "onnxruntime": load_onnxruntime(path, intra_op_threads)}
    ours, wanted = (run() for run in runs.values())
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=DIFFERENCE * float(wanted.std()))
    return interleave(runs, rounds=rounds, least_s=least_s, rest_s=_REST_S)


def peak_of(path: str, contender: str, intra_op_threads: int) -> int:
    """Return the bytes by which loading a model and three runs raise the peak of this process."""
    if contender == "refcomp":
        import_module("onnx.numpy_helper")
        _ = [getattr(import_module("refcomp"), name) for name in ("from_onnx", "compile_graph")]
    else:
        import_module("onnxruntime")
    before = peak_bytes()
    run = load_refcomp(path) if contender == "refcomp" else load_onnxruntime(path, intra_op_threads)
    for _ in range(3):
        run()
    return peak_bytes() - before


def load_refcomp(path: str) -> Run:
    """Return a run of a model that was compiled for this host, or is in the compile cache."""
    refcomp = import_module("refcomp")
    graph = refcomp.from_onnx(path)
    executor = refcomp.GraphExecutor(refcomp.compile_graph(graph, "llvm"))
    (value,) = graph.inputs
    feeds: Mapping[str, object] = {value.name: image_of(value.shape)}
    return lambda: executor.run(feeds)[0].asnumpy()


def load_onnxruntime(path: str, threads: int) -> Run:
    """Return a run of a model by ONNX Runtime, on so many threads."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (value,) = session.get_inputs()
    feeds = {value.name: image_of(value.shape)}
    return lambda: session.run(None, feeds)[0]
