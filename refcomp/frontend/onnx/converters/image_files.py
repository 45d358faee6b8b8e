"""ImageDecoder, which reads image files."""

from __future__ import annotations

from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("ImageDecoder", control=True)
def image_decoder(node: OnnxNode) -> Value:
    """Convert ImageDecoder of any version. Only a run knows the extents of the image."""
    return node.builder.node(
        "decode_image",
        [node.required(0)],
        {"pixel_format": node.attributes["pixel_format"]},
    )
