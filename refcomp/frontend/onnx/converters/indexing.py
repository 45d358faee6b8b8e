"""Operators that read or write elements at indices."""

from __future__ import annotations

from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("Gather")
def gather(node: OnnxNode) -> Value:
    """Convert Gather of any version; an index that is out of range is taken modulo the extent."""
    inputs = [node.required(0), node.required(1)]
    axis = node.axis(node.attributes["axis"], len(inputs[0].shape))
    return node.make("take", inputs, axis=axis, mode="wrap")
