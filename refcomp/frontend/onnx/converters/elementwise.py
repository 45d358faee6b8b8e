"""Operators that compute each element from elements at the same place."""

from __future__ import annotations

from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("Relu")
def relu(node: OnnxNode) -> Value:
    """Convert Relu of any version."""
    return node.make("relu", [node.required(0)])
