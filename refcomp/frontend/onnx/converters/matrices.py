"""Products of matrices."""

from __future__ import annotations

from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("MatMul")
def matmul(node: OnnxNode) -> Value:
    """Convert MatMul of any version."""
    return node.make_fitting("matmul", [node.required(0), node.required(1)])
