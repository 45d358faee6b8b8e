"""Operators that move blocks of pixels to channels, and back."""

from __future__ import annotations

from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("DepthToSpace")
def depth_to_space(node: OnnxNode) -> Value:
    """Convert DepthToSpace of any version; version 1 has the order DCR only."""
    return _moved(node, "depth_to_space")


@converter("SpaceToDepth")
def space_to_depth(node: OnnxNode) -> Value:
    """Convert SpaceToDepth of any version; before 28, the order is DCR."""
    return _moved(node, "space_to_depth")


def _moved(node: OnnxNode, operator: str) -> Value:
    data = node.required(0)
    for axis in range(1, len(data.shape)):
        node.extent(data, axis)
    return node.make(
        operator,
        [data],
        block_size=node.attributes["blocksize"],
        mode=node.attributes.get("mode", "DCR"),
    )
