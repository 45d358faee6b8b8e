"""The table of operators and shapes that are timed on the host, with what peers call them.

Each pair is an operator of topi on f32 operands of given shapes. numpy computes the same by
`by_numpy`, ONNX Runtime by a model of one node. A peer that lacks the operator is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node of ONNX: its type, its attributes, and the integers of inputs behind the operands.

    Attributes:
        type: the name of the operator in ONNX.
        attributes: by name.
        integers: the constant inputs of int64 that follow the operands, such as axes.
        weights: the positions of operands that the model holds, as those of layers are. The runtime
            may prepare them before the first run.
    """

    type: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    integers: tuple[tuple[int, ...], ...] = ()
    weights: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """An operator on operands of given shapes.

    Attributes:
        operator: its name in topi.
        shapes: of the operands.
        attributes: by name.
        by_numpy: takes the operands and the array for the result, or returns the result; None if
            numpy has no such function.
        onnx: the node that computes the same; None if ONNX has none.
    """

    operator: str
    shapes: tuple[Shape, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    by_numpy: Callable[..., Array] | None = None
    onnx: OnnxNode | None = None

    @property
    def title(self) -> str:
        """Return the operator, its shapes and its attributes, in one line."""
        shapes = ", ".join("x".join(map(str, shape)) or "scalar" for shape in self.shapes)
        return " ".join([self.operator, shapes, *map(_shown, self.attributes.items())])


def _shown(attribute: tuple[str, Any]) -> str:
    name, value = attribute
    text = str(value).replace(" ", "")
    return f"{name}={text}"


def _unary(operator: str, shape: Shape, onnx: str, by_numpy: Any = None, **attributes: Any) -> Pair:
    return Pair(operator, (shape,), attributes, by_numpy, OnnxNode(onnx, attributes))


def _binary(operator: str, first: Shape, second: Shape, onnx: str, by_numpy: Any) -> Pair:
    return Pair(operator, (first, second), {}, by_numpy, OnnxNode(onnx))


def _reduction(
    operator: str, shape: Shape, axes: tuple[int, ...] | None, onnx: str, by_numpy: Any
) -> Pair:
    def compute(x: Array, out: Array) -> Array:
        result: Array = by_numpy(x, axis=axes, out=out)
        return result

    integers = () if axes is None else (axes,)
    node = OnnxNode(onnx, {"keepdims": 0}, integers)
    attributes = {} if axes is None else {"axis": axes}
    return Pair(operator, (shape,), attributes, compute if by_numpy else None, node)


def _argmax(x: Array, out: Array) -> Array:
    return np.argmax(x, axis=-1, out=out)


def _cumsum(x: Array, out: Array) -> Array:
    return np.cumsum(x, axis=1, out=out)


def _relu(x: Array, out: Array) -> Array:
    return np.maximum(x, np.float32(0), out=out)


def _clip(x: Array, out: Array) -> Array:
    return np.clip(x, np.float32(-1), np.float32(1), out=out)


def _moved(axes: tuple[int, ...]) -> Callable[[Array, Array], Array]:
    def compute(x: Array, out: Array) -> Array:
        np.copyto(out, x.transpose(axes))
        return out

    return compute


def _joined(axis: int) -> Callable[..., Array]:
    def compute(*parts: Array, out: Array) -> Array:
        return np.concatenate(parts, axis=axis, out=out)

    return compute


def _softmax(x: Array, out: Array) -> Array:
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    return np.divide(out, out.sum(axis=-1, keepdims=True), out=out)


def _layer_norm(x: Array, gamma: Array, beta: Array, out: Array) -> Array:
    mean = x.mean(axis=-1, keepdims=True)
    np.subtract(x, mean, out=out)
    variance = np.square(out).mean(axis=-1, keepdims=True)
    np.divide(out, np.sqrt(variance + np.float32(1e-5)), out=out)
    np.multiply(out, gamma, out=out)
    return np.add(out, beta, out=out)


def _batch_norm(
    x: Array, gamma: Array, beta: Array, mean: Array, variance: Array, out: Array
) -> Array:
    factor = gamma / np.sqrt(variance + np.float32(1e-5))
    np.multiply(x, factor[:, None, None], out=out)
    return np.add(out, (beta - mean * factor)[:, None, None], out=out)


def _gemm(a: Array, b: Array, c: Array, out: Array) -> Array:
    np.matmul(a, b.T, out=out)
    return np.add(out, c, out=out)


def _global_mean(x: Array, out: Array) -> Array:
    return np.mean(x, axis=(2, 3), keepdims=True, out=out)


_IMAGE = (1, 64, 56, 56)
_TOKENS = (8, 128, 768)
_CHANNELS = ((64,),) * 4
_SQUARE = (1024, 1024)


def _matmul(first: Shape, second: Shape, weights: tuple[int, ...] = ()) -> Pair:
    def compute(a: Array, b: Array, out: Array) -> Array:
        return np.matmul(a, b, out=out)

    return Pair("matmul", (first, second), {}, compute, OnnxNode("MatMul", weights=weights))


def _dense(rows: int, depth: int, columns: int) -> Pair:
    shapes = ((rows, depth), (columns, depth), (columns,))
    node = OnnxNode("Gemm", {"transB": 1}, weights=(1, 2))
    return Pair("gemm", shapes, {"trans_b": True}, _gemm, node)


def _convolution(
    channels: int, filters: int, size: int, kernel: int, stride: int = 1, groups: int = 1
) -> Pair:
    reach = kernel // 2
    shapes = ((1, channels, size, size), (filters, channels // groups, kernel, kernel), (filters,))
    strides = (stride, stride)
    padding = (reach, reach, reach, reach)
    attributes: dict[str, Any] = {"strides": strides, "padding": padding}
    onnx: dict[str, Any] = {"strides": strides, "pads": padding}
    if groups > 1:
        attributes["groups"] = onnx["group"] = groups
    return Pair("conv2d", shapes, attributes, None, OnnxNode("Conv", onnx, weights=(1, 2)))


def _pool(operator: str, onnx: str, shape: Shape, kernel: int, stride: int, reach: int) -> Pair:
    window = (kernel, kernel)
    strides = (stride, stride)
    padding = (reach, reach, reach, reach)
    given = {"kernel": window, "strides": strides, "padding": padding}
    node = OnnxNode(onnx, {"kernel_shape": window, "strides": strides, "pads": padding})
    return Pair(operator, (shape,), given, None, node)


def _transposed(shape: Shape, axes: tuple[int, ...]) -> Pair:
    return Pair(
        "transpose", (shape,), {"axes": axes}, _moved(axes), OnnxNode("Transpose", {"perm": axes})
    )


def _concatenated(first: Shape, second: Shape, axis: int) -> Pair:
    node = OnnxNode("Concat", {"axis": axis})
    return Pair("concatenate", (first, second), {"axis": axis}, _joined(axis), node)


PAIRS: tuple[Pair, ...] = (
    _unary("relu", _IMAGE, "Relu", _relu),
    _unary("sigmoid", _SQUARE, "Sigmoid"),
    _unary("sigmoid", (1000,), "Sigmoid"),
    _unary("tanh", _TOKENS, "Tanh", np.tanh),
    Pair("clip", (_SQUARE,), {"minimum": -1.0, "maximum": 1.0}, _clip),
    _binary("add", _IMAGE, _IMAGE, "Add", np.add),
    _binary("add", _TOKENS, (768,), "Add", np.add),
    _binary("add", _IMAGE, (64, 1, 1), "Add", np.add),
    _binary("subtract", _SQUARE, (1024, 1), "Sub", np.subtract),
    _binary("multiply", _TOKENS, _TOKENS, "Mul", np.multiply),
    _binary("divide", _SQUARE, _SQUARE, "Div", np.divide),
    _transposed(_SQUARE, (1, 0)),
    _transposed(_IMAGE, (0, 2, 3, 1)),
    _transposed((8, 128, 12, 64), (0, 2, 1, 3)),
    _concatenated(_IMAGE, _IMAGE, 1),
    _concatenated((128, 256), (128, 512), 1),
    _concatenated(_SQUARE, _SQUARE, 0),
    Pair("flatten", (_IMAGE,), {}, None, OnnxNode("Flatten")),
    _matmul((512, 512), (512, 512)),
    _matmul((128, 768), (768, 768), weights=(1,)),
    _matmul((509, 515), (515, 521)),
    _matmul((12, 128, 64), (12, 64, 128)),
    _matmul((1, 1024), (1024, 1000), weights=(1,)),
    _dense(1, 2048, 1000),
    _dense(64, 1024, 1024),
    _convolution(64, 64, 56, 3),
    _convolution(64, 256, 56, 1),
    _convolution(3, 64, 224, 7, 2),
    _convolution(256, 256, 14, 3),
    _convolution(512, 512, 7, 3),
    _convolution(96, 96, 56, 3, 1, 96),
    _pool("max_pool2d", "MaxPool", (1, 64, 112, 112), 3, 2, 1),
    _pool("max_pool2d", "MaxPool", (1, 64, 56, 56), 2, 2, 0),
    _pool("avg_pool2d", "AveragePool", (1, 128, 28, 28), 3, 1, 1),
    Pair("global_avg_pool2d", ((1, 2048, 7, 7),), {}, _global_mean, OnnxNode("GlobalAveragePool")),
    Pair("batch_norm", (_IMAGE, *_CHANNELS), {}, _batch_norm, OnnxNode("BatchNormalization")),
    Pair("softmax", ((1024, 1000),), {}, _softmax, OnnxNode("Softmax", {"axis": -1})),
    Pair("softmax", ((12, 128, 128),), {}, _softmax, OnnxNode("Softmax", {"axis": -1})),
    _unary("exp", _SQUARE, "Exp", np.exp),
    _unary("log", _SQUARE, "Log", np.log),
    _unary("sqrt", _SQUARE, "Sqrt", np.sqrt),
    _unary("abs", _IMAGE, "Abs", np.abs),
    _unary("floor", _SQUARE, "Floor", np.floor),
    _unary("erf", _TOKENS, "Erf"),
    Pair("gelu", (_TOKENS,), {}, None, OnnxNode("Gelu")),
    _binary("maximum", _TOKENS, _TOKENS, "Max", np.maximum),
    _binary("power", _TOKENS, (1,), "Pow", np.power),
    _reduction("sum", _SQUARE, (1,), "ReduceSum", np.sum),
    _reduction("sum", _SQUARE, (0,), "ReduceSum", np.sum),
    _reduction("sum", _SQUARE, None, "ReduceSum", np.sum),
    _reduction("mean", _IMAGE, (2, 3), "ReduceMean", np.mean),
    _reduction("max", (1024, 1000), (1,), "ReduceMax", np.max),
    _reduction("prod", (256, 64), (1,), "ReduceProd", np.prod),
    _reduction("logsumexp", (1024, 1000), (1,), "ReduceLogSumExp", None),
    Pair(
        "argmax",
        ((1024, 1000),),
        {"axis": -1},
        _argmax,
        OnnxNode("ArgMax", {"axis": -1, "keepdims": 0}),
    ),
    Pair("cumsum", (_SQUARE,), {"axis": 1}, _cumsum),
    Pair(
        "layer_norm",
        (_TOKENS, (768,), (768,)),
        {},
        _layer_norm,
        OnnxNode("LayerNormalization", {"axis": -1, "epsilon": 1e-5}),
    ),
    Pair("log_softmax", ((1024, 1000),), {}, None, OnnxNode("LogSoftmax", {"axis": -1})),
    _matmul((8, 128, 768), (768, 768), weights=(1,)),
    _convolution(128, 128, 28, 3),
)
