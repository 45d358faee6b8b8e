"""The converters of ONNX operators, one for each operator, in a table at the end.

A converter declares the attributes that it supports and the values that it refuses. So a model can
be checked as a whole before anything is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx_attributes import Attributes
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import Array, Value
from refcomp.topi.operator import Attribute


class OnnxValues:
    """The values made so far, by their names in the model, and which of them are constants."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.values: dict[str, Value] = {}  # by their names in the model
        self._constants: dict[Value, Array] = {}

    def add(self, name: str, value: Value) -> None:
        """Let `name`, a name of the model, stand for `value`."""
        if name in self.values:
            raise UserError(
                f"two values of the model are named {name!r}",
                remedy="the file is damaged: export it again",
            )
        self.values[name] = value

    def add_constant(self, name: str, array: Array) -> None:
        """Add a constant of the model. The graph holds the memory of `array`."""
        value = self.builder.constant(name, array, copy=False)
        self._constants[value] = array
        self.add(name, value)

    def constant(self, value: Value, what: str) -> Array:
        """Return the elements of a constant, or raise Unsupported if the graph computes them."""
        if value not in self._constants:
            raise Unsupported(f"its {what} is not a constant")
        return self._constants[value]


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One node to convert."""

    context: OnnxValues
    inputs: tuple[Value | None, ...]  # None for an input that is left out
    outputs: tuple[str, ...]  # names of the outputs that are used
    attributes: Attributes

    def input(self, place: int) -> Value | None:
        """Return input number `place`, or None if it is left out."""
        return self.inputs[place] if place < len(self.inputs) else None

    def required(self, place: int) -> Value:
        """Return input number `place`, or raise UserError if it is left out."""
        value = self.input(place)
        if value is None:
            raise UserError(f"its input {place} is missing")
        return value

    def emit(
        self, operator: str, inputs: Sequence[Value | None], **attributes: Attribute
    ) -> None:
        """Add a node of `operator`, whose outputs are those of the ONNX node."""
        builder = self.context.builder
        made = builder.nodes(operator, inputs, attributes, self.outputs)
        # Not strict: an output that nothing reads may have no name.
        for name, value in zip(self.outputs, made, strict=False):
            self.context.add(name, value)


@dataclass(frozen=True, slots=True)
class Converter:
    """The conversion of one ONNX operator."""

    emit: Callable[[OnnxNode], None]  # builds nodes of the graph
    # Those that are supported: name -> kind (see `onnx_attributes`).
    attributes: Mapping[str, str] = field(default_factory=dict)
    # Raises Unsupported for values that are not supported.
    check: Callable[[Attributes], None] = lambda attributes: None
    max_outputs: int = 1

    def convert(
        self,
        context: OnnxValues,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: Attributes,
    ) -> None:
        """Build the nodes that mean one ONNX node. `context` holds the values of its inputs."""
        given = tuple(context.values[name] if name else None for name in inputs)
        self.emit(OnnxNode(context, given, tuple(filter(None, outputs)), attributes))


def _refuse_unless(allowed: Mapping[str, object]) -> Callable[[Attributes], None]:
    """Return a check that each attribute, if given, has the one value that refcomp supports."""

    def check(attributes: Attributes) -> None:
        for name, value in allowed.items():
            if attributes.get(name, value) != value:
                raise Unsupported(
                    f"its attribute {name} is {attributes[name]!r}, not {value!r}"
                )

    return check


def _same(operator: str, count: int) -> Converter:
    """Return a converter to `operator`, with `count` inputs and no attributes."""

    def emit(call: OnnxNode) -> None:
        call.emit(operator, [call.required(k) for k in range(count)])

    return Converter(emit)


# Convolution and pooling.

_WINDOW = {
    "auto_pad": "string",
    "kernel_shape": "ints",
    "pads": "ints",
    "strides": "ints",
}
_AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def _check_window(attributes: Attributes) -> None:
    lengths = {"kernel_shape": 2, "strides": 2, "dilations": 2, "pads": 4}
    for name, count in lengths.items():
        if len(attributes.get(name, (0,) * count)) != count:
            raise Unsupported(f"its attribute {name} is not for two spatial axes")
    if any(pad < 0 for pad in attributes.get("pads", ())):
        raise Unsupported("its padding is negative")
    if attributes.get("auto_pad", "NOTSET") not in _AUTO_PADS:
        raise Unsupported(f"its attribute auto_pad is {attributes['auto_pad']!r}")
    _refuse_unless({"ceil_mode": 0, "storage_order": 0})(attributes)


def _require_images(value: Value) -> None:
    if len(value.shape) != 4:
        raise Unsupported(f"its input has {len(value.shape)} dimensions, not 4")


def _padding(call: OnnxNode, data: Value, kernel: Sequence[int]) -> tuple[int, ...]:
    """Return the padding of the node: top, left, bottom, right."""
    mode = call.attributes.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return tuple(call.attributes.get("pads", (0, 0, 0, 0)))
    if mode == "VALID":
        return (0, 0, 0, 0)
    strides = call.attributes.get("strides", (1, 1))
    dilations = call.attributes.get("dilations", (1, 1))
    # SAME: there are ceil(size / stride) windows, and the padding makes them fit.
    before: list[int] = []
    after: list[int] = []
    for k, size in enumerate(data.shape[2:]):
        if not isinstance(size, int):
            raise Unsupported(
                f"its auto_pad is {mode} and its spatial extents are symbolic"
            )
        window = (kernel[k] - 1) * dilations[k] + 1
        last_start = (-(-size // strides[k]) - 1) * strides[k]
        total = max(0, last_start + window - size)
        # An odd element goes to the end for SAME_UPPER, to the beginning for SAME_LOWER.
        less = total // 2
        before.append(less if mode == "SAME_UPPER" else total - less)
        after.append(total - before[-1])
    return (*before, *after)


def _conv(call: OnnxNode) -> None:
    data = call.required(0)
    weight = call.required(1)
    _require_images(data)
    shape = tuple(weight.shape[2:])
    given = call.attributes.get("kernel_shape", shape)
    if len(weight.shape) != 4 or tuple(given) != shape:
        raise UserError(f"kernel_shape {given} does not fit the weight {weight}")
    kernel = [extent for extent in shape if isinstance(extent, int)]
    if not all(isinstance(extent, int) for extent in weight.shape):
        raise Unsupported("its weight has a symbolic shape")
    call.emit(
        "conv2d",
        [data, weight, call.input(2)],
        strides=call.attributes.get("strides", (1, 1)),
        dilation=call.attributes.get("dilations", (1, 1)),
        groups=call.attributes.get("group", 1),
        padding=_padding(call, data, kernel),
    )


def _pool(
    operator: str, name: str, onnx_name: str, read: Callable[[Attribute], Attribute]
) -> Callable[[OnnxNode], None]:
    """Return the `emit` of a pooling operator.

    One attribute is its own: refcomp's `name` for it, ONNX's name, and the function that converts
    the value.
    """

    def emit(call: OnnxNode) -> None:
        data = call.required(0)
        _require_images(data)
        if "kernel_shape" not in call.attributes:
            raise UserError("its attribute kernel_shape is missing")
        kernel = call.attributes["kernel_shape"]
        attributes: dict[str, Attribute] = {
            "kernel": kernel,
            "strides": call.attributes.get("strides", (1, 1)),
            "padding": _padding(call, data, kernel),
        }
        if onnx_name in call.attributes:
            attributes[name] = read(call.attributes[onnx_name])
        call.emit(operator, [data], **attributes)

    return emit


def _global_average_pool(call: OnnxNode) -> None:
    _require_images(call.required(0))
    call.emit("global_avg_pool2d", [call.required(0)])


def _batch_norm(call: OnnxNode) -> None:
    if len(call.required(0).shape) < 2:
        raise Unsupported("its input has no channel axis")
    inputs = [call.required(k) for k in range(5)]
    call.emit("batch_norm", inputs, epsilon=call.attributes.get("epsilon", 1e-5))


# Elementwise operators.


def _pass_through(call: OnnxNode) -> None:
    call.emit("identity", [call.required(0)])


def _dropout(call: OnnxNode) -> None:
    training = call.input(2)
    if training is not None and call.context.constant(training, "training_mode").any():
        raise Unsupported("it is in training mode")
    _pass_through(call)


def _clip(call: OnnxNode) -> None:
    # Since opset 11, the bounds are optional inputs.
    bounds = {"minimum": -math.inf, "maximum": math.inf}
    for place, name in enumerate(bounds, 1):
        bound = call.input(place)
        if bound is None:
            continue
        array = call.context.constant(bound, name)
        if array.size != 1:
            raise UserError(f"its {name} has {array.size} elements")
        bounds[name] = float(array.reshape(()))
    call.emit("clip", [call.required(0)], **bounds)


# Matrices.


def _gemm(call: OnnxNode) -> None:
    read = call.attributes.get
    call.emit(
        "gemm",
        [call.required(0), call.required(1), call.input(2)],
        alpha=read("alpha", 1.0),
        beta=read("beta", 1.0),
        trans_a=bool(read("transA", 0)),
        trans_b=bool(read("transB", 0)),
    )


def _matmul(call: OnnxNode) -> None:
    operands = [call.required(0), call.required(1)]
    if any(len(value.shape) < 2 for value in operands):
        raise Unsupported("an operand has fewer than two dimensions")
    call.emit("matmul", operands)


def _softmax(call: OnnxNode) -> None:
    call.emit("softmax", [call.required(0)], axis=call.attributes.get("axis", -1))


# Operators that move elements.


def _flatten(call: OnnxNode) -> None:
    call.emit("flatten", [call.required(0)], axis=call.attributes.get("axis", 1))


def _reshape(call: OnnxNode) -> None:
    shape = call.context.constant(call.required(1), "shape")
    if shape.ndim != 1 or shape.dtype.kind != "i":
        raise UserError("its shape is not a list of integers")
    call.emit("reshape", [call.required(0)], shape=tuple(int(dim) for dim in shape))


def _transpose(call: OnnxNode) -> None:
    data = call.required(0)
    reverse = tuple(reversed(range(len(data.shape))))
    call.emit("transpose", [data], axes=call.attributes.get("perm", reverse))


def _concat(call: OnnxNode) -> None:
    if "axis" not in call.attributes:
        raise UserError("its attribute axis is missing")
    inputs = [call.required(k) for k in range(len(call.inputs))]
    call.emit("concatenate", inputs, axis=call.attributes["axis"])


def _split(call: OnnxNode) -> None:
    data = call.required(0)
    axis = call.attributes.get("axis", 0)
    if not -len(data.shape) <= axis < len(data.shape):
        raise UserError(f"its axis {axis} is out of range")
    extent = data.shape[axis]
    given = call.input(1)
    if given is not None:
        parts = call.context.constant(given, "split").reshape(-1)
        sizes = tuple(int(size) for size in parts)
    elif isinstance(extent, int):
        count = len(call.outputs)
        size = -(-extent // count)  # the last part is the smaller one
        sizes = tuple(min(size, max(0, extent - size * k)) for k in range(count))
    else:
        raise Unsupported("it splits a symbolic extent")
    if len(sizes) != len(call.outputs):
        raise UserError(f"it has {len(sizes)} parts and {len(call.outputs)} outputs")
    call.emit("split", [data], axis=axis, sizes=sizes)


def _constant(call: OnnxNode) -> None:
    (kind, value), *more = call.attributes.items()
    if more:
        raise UserError("it has more than one value")
    # ONNX's floats are f32, and its ints i64. A tensor has its own dtype.
    dtypes = {"value": None, "value_float": "f4", "value_floats": "f4"}
    array = np.asarray(value, dtypes.get(kind, "i8"))
    call.context.add_constant(call.outputs[0], array)


def _check_constant(attributes: Attributes) -> None:
    if not attributes:
        raise Unsupported("its value is of a kind unknown to refcomp")


_CONSTANT_VALUES = {
    "value": "tensor",
    "value_float": "float",
    "value_floats": "floats",
    "value_int": "int",
    "value_ints": "ints",
}
_POOL_WINDOW = {**_WINDOW, "ceil_mode": "int"}

# By the names of ONNX. The meaning is that of `OPSETS` in onnx.py.
CONVERTERS: dict[str, Converter] = {
    "Conv": Converter(
        _conv, {**_WINDOW, "dilations": "ints", "group": "int"}, _check_window
    ),
    "MaxPool": Converter(
        _pool("max_pool2d", "dilation", "dilations", lambda value: value),
        {**_POOL_WINDOW, "dilations": "ints", "storage_order": "int"},
        _check_window,
    ),
    "AveragePool": Converter(
        _pool("avg_pool2d", "count_include_pad", "count_include_pad", bool),
        {**_POOL_WINDOW, "count_include_pad": "int"},
        _check_window,
    ),
    "GlobalAveragePool": Converter(_global_average_pool),
    "BatchNormalization": Converter(
        _batch_norm,
        {"epsilon": "float", "momentum": "float", "training_mode": "int"},
        _refuse_unless({"training_mode": 0}),
    ),
    "Relu": _same("relu", 1),
    "Sigmoid": _same("sigmoid", 1),
    "Tanh": _same("tanh", 1),
    "Clip": Converter(_clip),
    "Identity": Converter(_pass_through),
    "Dropout": Converter(_dropout, {"seed": "int"}),
    "Add": _same("add", 2),
    "Sub": _same("subtract", 2),
    "Mul": _same("multiply", 2),
    "Div": _same("divide", 2),
    "Gemm": Converter(
        _gemm, {"alpha": "float", "beta": "float", "transA": "int", "transB": "int"}
    ),
    "MatMul": Converter(_matmul),
    "Softmax": Converter(_softmax, {"axis": "int"}),
    "Flatten": Converter(_flatten, {"axis": "int"}),
    "Reshape": Converter(
        _reshape, {"allowzero": "int"}, _refuse_unless({"allowzero": 0})
    ),
    "Transpose": Converter(_transpose, {"perm": "ints"}),
    "Concat": Converter(_concat, {"axis": "int"}),
    "Split": Converter(
        _split, {"axis": "int", "num_outputs": "int"}, max_outputs=1 << 16
    ),
    "Constant": Converter(_constant, _CONSTANT_VALUES, _check_constant),
}
