"""Operators that move elements, and those on shapes."""

from __future__ import annotations

import math

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("Shape")
def shape(node: OnnxNode) -> Value:
    """Convert Shape of any version; the result is a constant, once the shape is known."""
    extents = node.extents(node.required(0))
    start = node.attributes.get("start", 0)
    end = node.attributes.get("end", len(extents))
    return node.constant(extents[slice(start, end)], np.int64)


@converter("Reshape")
def reshape_by_attribute(node: OnnxNode) -> Value:
    """Convert Reshape-1, whose shape is an attribute."""
    return _reshaped(node, node.attributes.get("shape", ()))


@converter("Reshape", since=5)
def reshape(node: OnnxNode) -> Value:
    """Convert Reshape, whose shape is an input."""
    return _reshaped(node, node.integers(node.required(1), "shape"))


def _reshaped(node: OnnxNode, shape: tuple[int, ...]) -> Value:
    data = node.required(0)
    keeps_zeros = bool(node.attributes.get("allowzero", 0))
    if not keeps_zeros or 0 not in shape:
        return node.make("reshape", [data], shape=shape)
    if -1 in shape:
        raise UserError("its shape has both 0 and -1, although allowzero is 1")
    if math.prod(node.extents(data)) != 0:
        raise UserError(f"{data} has elements, but its shape {list(shape)} has none")
    return node.make("reshape", [data], shape=shape)
