#!/usr/bin/env python3
"""The digit network with one deliberately wrong kernel: the debugger names it; then a profile.

The wrong operator is a convolution that forgets its bias. Its meaning, which numpy computes, is
right. So this is what a bug of a compiler looks like: the accuracy drops, and nothing says where.

Needs LLVM and the package onnx. Exit code: 1 if the debugger does not name the wrong node.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import refcomp as rc
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.compile import compile_nodes
from refcomp.graph.debug.unfuse import unfuse

DATA = Path(__file__).resolve().parents[1] / "data" / "digits"
# The second convolution; the normalization is folded. Its layout, which the name ends with,
# depends on the processor.
WRONG_NODE = "BatchNormalization_4."
REPEAT = 5


def register_wrong_convolution() -> str:
    """Register a convolution whose te compute forgets the bias; return its name."""
    right = rc.graph.find_operator("conv2d_nchwc")
    compute = right.compute

    def without_bias(data, weight, bias, **attributes):
        return compute(data, weight, None, **attributes)

    rc.graph.register_operator(replace(right, name="forgetful_conv2d", compute=without_bias))
    return "forgetful_conv2d"


def with_wrong_node(graph: rc.graph.Graph, operator: str) -> rc.graph.Graph:
    """Return the graph in which the wrong node has another operator."""
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if not node.name.startswith(WRONG_NODE):
            rewriter.copy(node)
            continue
        inputs = rewriter.mapped(node.inputs)
        made = rewriter.node(operator, inputs, node.attributes, node.name)
        rewriter.values[node.outputs[0]] = made
    return rewriter.finish_copy()


def main() -> int:
    """Break the network, let the debugger find the node, and profile the right network."""
    test = np.load(DATA / "digits_test.npz")
    images, labels = test["image"], test["label"]
    graph = unfuse(rc.graph.optimize(rc.from_onnx(DATA / "digits.onnx")))
    right = rc.graph.optimize(graph, passes=["fuse_operators"])
    wrong = rc.graph.optimize(
        with_wrong_node(graph, register_wrong_convolution()), passes=["fuse_operators"]
    )

    print("== accuracy of the right network, and of one with a wrong kernel")
    for title, network in (("right", right), ("wrong", wrong)):
        executor = rc.GraphExecutor(compile_nodes(network))
        (probability,) = executor.run(image=images)
        accuracy = (probability.asnumpy().argmax(axis=1) == labels).mean()
        print(f"{title}: {accuracy:.1%} of {len(labels)} images")

    print("\n== what the debugger says of the wrong network")
    debugger = rc.graph.DebugExecutor(compile_nodes(wrong))
    debugger.run(image=images[:4])
    found = rc.graph.debug.find_divergence(debugger, all_nodes=True)
    for one in found.findings:
        print(f"{one.name:14} {one.operator:40} error / bound {one.ratio:8.3g}  wrong {one.wrong}")
    print(found)
    print(
        "\nEach kernel is judged on what it read itself. So those behind the wrong one are right,"
    )
    print("though all of their numbers differ from the right network's.")

    print("\n== a profile of the right network, for all images at once")
    executor = rc.graph.DebugExecutor(compile_nodes(right), repeat=REPEAT)
    profile = rc.graph.debug.profile_network(executor, {"image": images})
    for node in profile.nodes:
        share, millions = profile.share(node), (node.flops or 0) / 1e6
        print(f"{node.name:14} {node.seconds * 1e3:8.3f} ms {share:6.1%} {millions:9.2f} MFLOP")
    print(
        "\n`refcomp profile digits.onnx` also measures the peaks of this machine, and says of each"
    )
    print("node whether memory or compute bounds it.")
    return int(found.inside is None or not found.inside.name.startswith(WRONG_NODE))


if __name__ == "__main__":
    sys.exit(main())
