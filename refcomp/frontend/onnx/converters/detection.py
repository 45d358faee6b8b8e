"""Operators on boxes: regions of interest, and non-maximum suppression."""

from __future__ import annotations

import numpy as np

from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value
from refcomp.topi.operator import Attribute


@converter("RoiAlign")
def roi_align_without_shift(node: OnnxNode) -> Value:
    """Convert RoiAlign-10, which does not move coordinates by half an element."""
    return _aligned(node, "output_half_pixel")


@converter("RoiAlign", since=16)
def roi_align(node: OnnxNode) -> Value:
    """Convert RoiAlign."""
    return _aligned(node, node.attributes["coordinate_transformation_mode"])


def _aligned(node: OnnxNode, coordinates: str) -> Value:
    size = (node.attributes["output_height"], node.attributes["output_width"])
    mode = node.attributes["mode"]
    _require_image(node)
    return node.make(
        "roi_align",
        node.all_inputs(),
        pooled_size=size,
        spatial_scale=node.attributes["spatial_scale"],
        sampling_ratio=node.attributes["sampling_ratio"],
        mode="max_weighted" if mode == "max" else mode,
        coordinates=coordinates,
    )


@converter("MaxRoiPool")
def max_roi_pool(node: OnnxNode) -> Value:
    """Convert MaxRoiPool of any version."""
    _require_image(node)
    return node.make(
        "roi_pool",
        node.all_inputs(),
        pooled_size=node.attributes["pooled_shape"],
        spatial_scale=node.attributes["spatial_scale"],
    )


def _require_image(node: OnnxNode) -> None:
    """Raise NotKnownError unless height and width of the image are numbers."""
    data = node.required(0)
    for axis in range(2, len(data.shape)):
        node.extent(data, axis)


@converter("NonMaxSuppression")
def non_max_suppression(node: OnnxNode) -> Value:
    """Convert NonMaxSuppression of any version. The number of kept boxes is known in a run only."""
    boxes = node.required(0)
    scores = node.required(1)
    node.extents(boxes)  # a run must know them
    node.extents(scores)
    most, overlap, least = (node.input(place) for place in (2, 3, 4))
    attributes: dict[str, Attribute] = {
        "max_output_boxes_per_class": 0,
        "center_point_box": bool(node.attributes["center_point_box"]),
    }
    if most is not None:
        count = node.integer(most, "max_output_boxes_per_class")
        attributes["max_output_boxes_per_class"] = max(count, 0)
    if overlap is not None:
        attributes["iou_threshold"] = node.number(overlap, "iou_threshold")
    if least is not None:
        attributes["score_threshold"] = node.number(least, "score_threshold")
    if attributes["max_output_boxes_per_class"] == 0:
        return node.constant(np.zeros((0, 3), np.int64))
    rows, kept = node.make_all(
        "all_class_non_max_suppression", [boxes, scores], **attributes
    )
    return node.builder.narrow(rows, kept)
