#!/usr/bin/env python3
"""Convolution, bias, batch normalization and ReLU in one kernel: what each graph pass does to them.

A graph is printed as text, before the passes and after each pass that changes it. Then the logger
`refcomp.graph` prints the loop IR of the one kernel that is left.

Needs LLVM. Exit code: 1 when more than one kernel is left, or a result is not that of numpy.
"""

import logging
import sys

import numpy as np

import refcomp as rc

CHANNELS, FILTERS, SIDE = 4, 8, 6
# f32 sums of 36 products: the weights are rounded once more, and the sums are in another order.
LARGEST_DIFFERENCE = 64 * 2.0**-24


def network() -> rc.graph.Graph:
    """Return a graph of four nodes whose weights are constants."""
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return random.uniform(0.5, 1.5, shape).astype("float32")

    builder = rc.graph.GraphBuilder("block")
    x = builder.input("x", "float32", ("N", CHANNELS, SIDE, SIDE))
    weight = builder.constant("weight", drawn(FILTERS, CHANNELS, 3, 3) - 1)
    bias = builder.constant("bias", drawn(FILTERS))
    statistics = [
        builder.constant(name, drawn(FILTERS)) for name in ("gamma", "beta", "mean", "variance")
    ]
    padding = {"padding": (1, 1, 1, 1)}
    convolved = builder.node("conv2d", [x, weight, bias], padding, name="convolved")
    normalized = builder.node("batch_norm", [convolved, *statistics], name="normalized")
    return builder.finish([builder.node("relu", [normalized], name="y")])


def main() -> int:
    """Print the graph after each pass, and the kernel; return the exit code."""
    graph = network()
    print(f"== the graph as it is built\n{graph}\n")
    print("Each pass sees the graph that the one before it left.\n")
    for name, changed in rc.graph.optimized_steps(graph):
        print(f"== after {name}\n{changed}\n")

    print("== what the logger refcomp.graph says while the graph is compiled")
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    logging.getLogger("refcomp.graph").setLevel(logging.DEBUG)
    compiled = rc.compile_graph(graph, "llvm")
    print("\nLook at the innermost loops: a tile of sums stays in registers over all products, and")
    print("max(..., 0) is taken when a sum is read. No normalization is left.\n")

    executor = rc.GraphExecutor(compiled)
    x = np.random.default_rng(1).standard_normal((2, CHANNELS, SIDE, SIDE)).astype("float32")
    (y,) = executor.run(x=x)
    (expected,) = rc.graph.evaluate_graph(graph, {"x": x})
    difference = np.abs(y.asnumpy() - expected).max() / np.abs(expected).max()
    print(f"kernels: {len(compiled.kernels)}; relative difference from numpy: {difference:.1e}")
    return int(len(compiled.kernels) != 1 or difference > LARGEST_DIFFERENCE)


if __name__ == "__main__":
    sys.exit(main())
