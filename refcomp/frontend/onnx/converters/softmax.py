"""Softmax, its logarithm, and hardmax.

Before version 13, all axes from `axis` on are one axis. Since then, `axis` is the only one.
"""

from __future__ import annotations

import math

from refcomp.foundation.dtype import as_dtype
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value
from refcomp.graph.macros import NotKnownError


def _along_rest(node: OnnxNode, operator: str) -> Value:
    """Apply an operator along all axes from `axis` on, as if they were one."""
    data = node.required(0)
    rank = len(data.shape)
    first = node.axis(node.attributes.get("axis", 1), rank, ends=True)
    if first == rank - 1:
        return node.make(operator, [data], axis=first)
    rest = [dim for dim in data.shape[first:] if isinstance(dim, int)]
    if len(rest) != rank - first:
        raise NotKnownError
    kept = (0,) * first
    rows = node.make("reshape", [data], shape=(*kept, math.prod(rest)))
    result = node.make(operator, [rows], axis=first)
    return node.make("reshape", [result], shape=(*kept, *rest))


def _along_axis(node: OnnxNode, operator: str) -> Value:
    data = node.required(0)
    axis = node.axis(node.attributes.get("axis", -1), len(data.shape))
    return node.make(operator, [data], axis=axis)


@converter("Softmax")
def flattened_softmax(node: OnnxNode) -> Value:
    """Convert Softmax before version 13."""
    return _along_rest(node, "softmax")


@converter("Softmax", since=13)
def softmax(node: OnnxNode) -> Value:
    """Convert Softmax. For f16, each step is rounded as in ONNX's definition by a function.

    ONNX's cases of f16 compare results to less than two units in the last place. One kernel, whose
    sums are in f32, is more exact than that, and so differs.
    """
    data = node.required(0)
    if data.dtype != as_dtype("float16"):
        return _along_axis(node, "softmax")
    axes = (node.axis(node.attributes.get("axis", -1), len(data.shape)),)
    greatest = node.make("max", [data], axis=axes, keepdims=True)
    powers = node.make("exp", [node.make("subtract", [data, greatest])])
    total = node.make("sum", [powers], axis=axes, keepdims=True)
    return node.make("divide", [powers, total])


@converter("LogSoftmax")
def flattened_log_softmax(node: OnnxNode) -> Value:
    """Convert LogSoftmax before version 13."""
    return _along_rest(node, "log_softmax")


@converter("LogSoftmax", since=13)
def log_softmax(node: OnnxNode) -> Value:
    """Convert LogSoftmax."""
    return _along_axis(node, "log_softmax")


@converter("Hardmax")
def flattened_hardmax(node: OnnxNode) -> Value:
    """Convert Hardmax before version 13."""
    return _along_rest(node, "hardmax")


@converter("Hardmax", since=13)
def hardmax(node: OnnxNode) -> Value:
    """Convert Hardmax."""
    return _along_axis(node, "hardmax")
