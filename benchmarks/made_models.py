#!/usr/bin/env python3
"""Makes networks that are not among the light models of the package `onnx`, with seeded weights.

    benchmarks/made_models.py FOLDER mobilenet_v2 lstm

mobilenet_v2 is the network of M. Sandler et al., "MobileNetV2: Inverted Residuals and Linear
Bottlenecks", CVPR 2018, table 2, of width 1 for images of 224 x 224. lstm is one layer (Hochreiter
and Schmidhuber 1997), unrolled over its steps, from products, sums and activations.

Exit codes: 0 done, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, _IR_VERSION, _SEED = 17, 8, 0
# Of each stage: expansion, channels, blocks, stride of the first block.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class _Network:
    """The nodes and weights of a network under construction."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[TensorProto] = []
        self._rng = np.random.default_rng(_SEED)

    def weight(self, shape: Sequence[int], low: float, high: float) -> str:
        name = f"w{len(self.weights)}"
        values = self._rng.uniform(low, high, shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def integers(self, values: Sequence[int]) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def scalar(self, value: float) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.float32(value), name))
        return name

    def add(self, operator: str, inputs: Sequence[str], outputs: int = 1, **given: Any) -> Any:
        names = [f"{operator.lower()}_{len(self.nodes)}_{k}" for k in range(outputs)]
        if outputs == 1:
            names = [f"{operator.lower()}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operator, inputs, names, **given))
        return names[0] if outputs == 1 else names

    def model(self, x: tuple[str, Sequence[int]], y: str, shape: Sequence[int]) -> onnx.ModelProto:
        self.nodes[-1].output[0] = y
        inputs = [helper.make_tensor_value_info(x[0], TensorProto.FLOAT, x[1])]
        outputs = [helper.make_tensor_value_info(y, TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        onnx.checker.check_model(model)
        return model


def mobilenet_v2(size: int = 224) -> onnx.ModelProto:
    """Return MobileNetV2 for images of `size` x `size`, a multiple of 32."""
    net = _Network()
    y = _convolution(net, "image", 3, 32, kernel=3, stride=2)
    channels = 32
    for expansion, out, blocks, first_stride in _STAGES:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            y = _bottleneck(net, y, channels, out, expansion * channels, stride)
            channels = out
    y = _convolution(net, y, channels, 1280, kernel=1)
    y = net.add("Flatten", [net.add("GlobalAveragePool", [y])])
    bound = math.sqrt(1 / 1280)
    weight = net.weight((1280, 1000), -bound, bound)
    net.add("Gemm", [y, weight, net.weight((1000,), -0.2, 0.2)])
    return net.model(("image", [1, 3, size, size]), "scores", [1, 1000])


def _bottleneck(net: _Network, x: str, c: int, out: int, wide: int, stride: int) -> str:
    y = x
    if wide != c:
        y = _convolution(net, y, c, wide, kernel=1)
    y = _convolution(net, y, wide, wide, kernel=3, stride=stride, groups=wide)
    y = _convolution(net, y, wide, out, kernel=1, is_linear=True)
    return net.add("Add", [x, y]) if stride == 1 and c == out else y


def _convolution(
    net: _Network,
    x: str,
    c: int,
    out: int,
    *,
    kernel: int,
    stride: int = 1,
    groups: int = 1,
    is_linear: bool = False,
) -> str:
    """Add a convolution, a batch normalization and, unless it `is_linear`, a ReLU6."""
    shape = (out, c // groups, kernel, kernel)
    bound = math.sqrt(6 / math.prod(shape[1:]))  # He et al. 2015
    weight = net.weight(shape, -bound, bound)
    pads = [kernel // 2] * 4
    y = net.add("Conv", [x, weight], pads=pads, strides=[stride, stride], group=groups)
    scale = net.weight((out,), 0.4, 0.6) if is_linear else net.weight((out,), 0.8, 1.2)
    shift, mean = (net.weight((out,), -0.2, 0.2) for _ in range(2))
    y = net.add("BatchNormalization", [y, scale, shift, mean, net.weight((out,), 0.8, 1.2)])
    return y if is_linear else net.add("Clip", [y, net.scalar(0), net.scalar(6)])


def lstm(steps: int = 6, size: int = 32, hidden: int = 48) -> onnx.ModelProto:
    """Return an LSTM layer of `hidden` units on `steps` rows of `size` elements each."""
    net = _Network()
    bound = math.sqrt(3 / (size + hidden))
    weight = net.weight((size, 4 * hidden), -bound, bound)
    recurrent = net.weight((hidden, 4 * hidden), -bound, bound)
    bias = net.weight((4 * hidden,), -0.2, 0.2)
    h = net.weight((1, hidden), -0.5, 0.5)
    c = net.weight((1, hidden), -0.5, 0.5)
    rows = net.add("Split", ["x", net.integers([1] * steps)], steps, axis=0)
    for row in rows:
        total = net.add("Add", [net.add("MatMul", [row, weight]), bias])
        total = net.add("Add", [total, net.add("MatMul", [h, recurrent])])
        gates = net.add("Split", [total, net.integers([hidden] * 4)], 4, axis=1)
        keep, take, out = (net.add("Sigmoid", [gate]) for gate in gates[:3])
        fresh = net.add("Mul", [take, net.add("Tanh", [gates[3]])])
        c = net.add("Add", [net.add("Mul", [keep, c]), fresh])
        h = net.add("Mul", [out, net.add("Tanh", [c])])
    return net.model(("x", [steps, size]), "h", [1, hidden])


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {"mobilenet_v2": mobilenet_v2, "lstm": lstm}


def main(argv: Sequence[str]) -> int:
    """Write the networks that `argv` requests, and print the path of each."""
    parser = argparse.ArgumentParser(description="Writes networks with seeded weights.")
    parser.add_argument("folder", help="the folder for the files NAME.onnx; it must exist")
    parser.add_argument("names", nargs="+", choices=list(NETWORKS), metavar="NAME")
    asked = parser.parse_args(argv)
    for name in asked.names:
        path = Path(asked.folder, f"{name}.onnx")
        onnx.save(NETWORKS[name](), path)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
