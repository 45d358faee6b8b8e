#!/usr/bin/env python3
"""The digit network on an AMD GPU, emulated where there is none: the same machine code, either way.

Each node of the graph becomes kernels, scheduled by refcomp/topi/schedules/gpu.py. What an emulated
GPU finds wrong with one it raises: memory out of bounds, or bits that nothing wrote.
REFCOMP_ROCM=emulator:gfx942 would have `rc.rocm(0)` itself be the emulated one.

Needs LLVM and its lld. Exit code: 1 when the probabilities are not those of numpy.
"""

import sys
import time
from pathlib import Path

import numpy as np

import refcomp as rc
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor

DATA = Path(__file__).resolve().parents[1] / "data" / "digits"
IMAGES = 64
EMULATED = "gfx942"
# Of probabilities: f32 sums of at most 288 products, in another order than the oracle's; 3e-7 is
# usual. What can be proved of the network as a whole is 0.008, as if all errors conspired: so the
# tests hold each kernel to a bound of its own (tests/graph/test_executor.py).
LARGEST_DIFFERENCE = 1e-5


def load_executor(graph):
    """Compile the network for the GPU of this machine."""
    if rc.rocm(0).exist:
        return GraphExecutor(compile_graph(graph, "rocm"), rc.rocm(0))
    gpu = rc.rocm_emulator(EMULATED)
    return GraphExecutor(compile_graph(graph, f"rocm -mcpu={EMULATED}"), gpu)


def main() -> int:
    """Classify images and print how well; return the exit code."""
    graph = rc.from_onnx(DATA / "digits.onnx")
    with np.load(DATA / "digits_test.npz") as data:
        images, labels = data["image"][:IMAGES], data["label"][:IMAGES]
    executor = load_executor(graph)
    start = time.perf_counter()
    probability = executor.run(image=images)[0].asnumpy()
    seconds = time.perf_counter() - start
    difference = np.abs(probability - evaluate_graph(graph, {"image": images})[0]).max()
    right = int((probability.argmax(axis=1) == labels).sum())
    print(f"{executor.launches} launches on {executor.device}: {seconds:.2f} s for {IMAGES} images")
    print(f"{right} of {IMAGES} are right; largest difference from numpy {difference:.1e}")
    return int(difference > LARGEST_DIFFERENCE)


if __name__ == "__main__":
    sys.exit(main())
