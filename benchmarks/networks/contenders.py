"""One run of each contender, from a model's file to its first result, with the seconds of stages.

Requires a fresh process for each run: nothing else may have imported the contender or used memory.
So this module itself imports none of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

_STATUS = Path("/proc/self/status")
_SEED = 0


@dataclass(slots=True)
class _Stages:
    """The seconds of each stage, each from the end of the stage before."""

    seconds: dict[str, float] = field(default_factory=dict)
    start: float = field(default_factory=perf_counter)

    def end(self, name: str) -> None:
        now = perf_counter()
        self.seconds[name] = now - self.start
        self.start = now


def run_refcomp(path: str) -> dict[str, Any]:
    """Read, compile and run a model with refcomp.

    Returns the seconds of each stage and the result; the bytes by which compiling, and compiling
    with the first run, raised the peak of memory; the number of kernels and of distinct kernels.
    If the frontend cannot read the model, the only entry is `unread`, the reason.
    """
    stages = _Stages()
    _import("onnx", "onnx.numpy_helper")
    refcomp = import_module("refcomp")
    # A public name is imported at its first use.
    from_onnx, compile_graph = refcomp.from_onnx, refcomp.compile_graph
    make_executor = refcomp.GraphExecutor
    stages.end("import")
    before = peak_bytes()
    try:
        graph = from_onnx(path)
    except refcomp.Unsupported as error:
        return {"unread": error.why}
    stages.end("read")
    compiled = compile_graph(graph, "llvm")
    stages.end("compile")
    peak = peak_bytes() - before
    (value,) = graph.inputs
    feeds = {value.name: image_of(value.shape)}
    stages.start = perf_counter()
    result = make_executor(compiled).run(feeds)[0].asnumpy()
    stages.end("run")
    kernels = [kernel.name for kernel in compiled.kernels]
    return {
        "seconds": stages.seconds,
        "result": result.ravel().tolist(),
        "peak": peak,
        "peak with run": peak_bytes() - before,
        "kernels": len(kernels),
        "distinct": len(set(kernels)),
    }


def run_onnxruntime(path: str) -> dict[str, Any]:
    """Make a session for a model, and run it on all cores."""
    stages = _Stages()
    (onnxruntime,) = _import("onnxruntime")
    stages.end("import")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    stages.end("session")
    (value,) = session.get_inputs()
    feeds = {value.name: image_of(value.shape)}
    stages.start = perf_counter()
    result = session.run(None, feeds)[0]
    stages.end("run")
    return {"seconds": stages.seconds, "result": result.ravel().tolist()}


def run_tvm(path: str) -> dict[str, Any]:
    """Read, compile and run a model with TVM, for the target `llvm` as it is, without tuning.

    The option `mcpu` does not change how long compiling takes.
    TVM translates LLVM IR to machine code when the virtual machine is made, which is a stage of
    its own here.
    """
    stages = _Stages()
    onnx, tvm, relax, frontend = _import("onnx", "tvm", "tvm.relax", "tvm.relax.frontend.onnx")
    stages.end("import")
    model = onnx.load(path)
    module = frontend.from_onnx(model)
    stages.end("read")
    executable = tvm.compile(module, tvm.target.Target("llvm"))
    stages.end("compile")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    stages.end("machine code")
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    image = tvm.runtime.tensor(image_of(shape))
    stages.start = perf_counter()
    result = machine["main"](image).numpy()
    stages.end("run")
    return {"seconds": stages.seconds, "result": result.ravel().tolist()}


def _import(*modules: str) -> list[Any]:
    return [import_module(name) for name in modules]


def image_of(shape: Any) -> np.ndarray[Any, Any]:
    """Return a random image, the same in each process."""
    return np.random.default_rng(_SEED).standard_normal(tuple(shape), np.float32)


def peak_bytes(status: Path = _STATUS) -> int:
    """Return the largest amount of memory that this process has had resident, in bytes.

    It is `ru_maxrss` of getrusage, without the peak of the process that started this one: Linux
    lets that one count.
    """
    lines = status.read_text(encoding="utf-8").splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return 1024 * int(peak)
