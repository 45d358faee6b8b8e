"""Activations of neural networks."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.frontend.onnx.broadcasting import combined
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value

# ONNX's name -> refcomp's operator, and the attributes that both call the same.
_ACTIVATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Elu": ("elu", ("alpha",)),
    "HardSigmoid": ("hard_sigmoid", ("alpha", "beta")),
    "HardSwish": ("hard_swish", ()),
    "LeakyRelu": ("leaky_relu", ("alpha",)),
    "Mish": ("mish", ()),
    "Relu": ("relu", ()),
    "Selu": ("selu", ("alpha", "gamma")),
    "Sigmoid": ("sigmoid", ()),
    "Softplus": ("softplus", ()),
    "Softsign": ("softsign", ()),
    "Swish": ("swish", ("alpha",)),
    "Tanh": ("tanh", ()),
    "ThresholdedRelu": ("thresholded_relu", ("alpha",)),
}
_APPROXIMATIONS = ("none", "tanh")


def _register(name: str, operator: str, attributes: tuple[str, ...]) -> None:
    @converter(name)
    def convert(node: OnnxNode) -> Value:
        given = {key: node.attributes[key] for key in attributes}
        return node.make(operator, [node.required(0)], **given)


for _name, (_operator, _attributes) in _ACTIVATIONS.items():
    _register(_name, _operator, _attributes)


@converter("Celu")
def celu(node: OnnxNode) -> Value:
    """Convert Celu of any version, also where alpha is not positive."""
    data = node.required(0)
    alpha = node.attributes["alpha"]
    if alpha > 0 or not data.dtype.is_float:
        return node.make("celu", [data], alpha=alpha)
    kind = data.dtype.dtype
    ratio = node.make("divide", [data, node.constant(alpha, kind)])
    depth = node.make("scale", [node.make("expm1", [ratio])], factor=alpha)
    below = node.make("minimum", [depth, node.constant(0, kind)])
    return node.make("add", [node.make("relu", [data]), below])


@converter("Shrink")
def shrink(node: OnnxNode) -> Value:
    """Convert Shrink. For integers, the threshold and the bias are truncated to integers."""
    data = node.required(0)
    lambd = node.attributes["lambd"]
    bias = node.attributes["bias"]
    if lambd >= 0 and data.dtype.is_float:
        return node.make("shrink", [data], lambd=lambd, bias=bias)
    # A negative threshold lets both conditions hold; then the lower one counts.
    kind = data.dtype.dtype
    least, most, offset, zero = (
        _constant_within(node, number, kind) for number in (-lambd, lambd, bias, 0.0)
    )
    raised = node.make("add", [data, offset])
    lowered = node.make("subtract", [data, offset])
    above = node.make("greater", [data, most])
    below = node.make("less", [data, least])
    outside = node.make("where", [above, lowered, zero])
    return node.make("where", [below, raised, outside])


def _constant_within(
    node: OnnxNode, number: float, dtype: np.dtype[np.generic]
) -> Value:
    """Return a constant, truncated and clamped to an integer dtype."""
    if dtype.kind not in "iu":
        return node.constant(number, dtype)
    limits = np.iinfo(dtype.name)
    clamped = min(max(number, limits.min), limits.max)
    return node.constant(int(clamped), dtype)


@converter("Gelu")
def gelu(node: OnnxNode) -> Value:
    """Convert Gelu, exact or approximated by tanh."""
    form = node.attributes["approximate"]
    if form not in _APPROXIMATIONS:
        raise UserError(
            f"its attribute approximate is {form!r}",
            remedy=advise(str(form), _APPROXIMATIONS, "use none or tanh"),
        )
    return node.make("gelu", [node.required(0)], approximate=form)


@converter("SwiGLU")
def swiglu(node: OnnxNode) -> Value:
    """Convert SwiGLU: the swish of the gate, times the values."""
    gate = node.make("swish", [node.required(0)], alpha=node.attributes["alpha"])
    return combined(node, "multiply", [gate, node.required(1)])


@converter("PRelu")
def prelu_by_channel(node: OnnxNode) -> Value:
    """Convert PRelu before version 7: one slope for all elements, or one for each channel."""
    data = node.required(0)
    slope = node.required(1)
    if len(slope.shape) > 1:
        raise UserError(
            f"its slope is {slope}",
            why="before version 7, it has one slope, or one for each channel",
            remedy="give a vector",
        )
    following = len(data.shape) - 2
    if slope.shape and slope.shape != (1,) and following > 0:
        axes = tuple(range(1, 1 + following))
        slope = node.make("expand_dims", [slope], axis=axes)
    return _prelu(node, data, slope)


@converter("PRelu", since=7)
def prelu(node: OnnxNode) -> Value:
    """Convert PRelu, whose slopes broadcast to the shape of the data."""
    return _prelu(node, node.required(0), node.required(1))


def _prelu(node: OnnxNode, data: Value, slope: Value) -> Value:
    if data.dtype.is_float:
        return combined(node, "prelu", [data, slope])
    scaled = combined(node, "multiply", [data, slope])
    zero = node.constant(0, data.dtype.dtype)
    is_negative = node.make("less", [data, zero])
    return node.make("where", [is_negative, scaled, data])
