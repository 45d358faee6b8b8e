"""Operators on boxes: every version, the choices of each, and refusals."""

from dataclasses import replace

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import EVALUATOR, NodeCase, check
from tests.strategies.operands import floats

IMAGE = np.abs(floats(0, 2, 3, 6, 7))
ROIS = np.array([[0, 0, 3, 4], [1, 2, 6, 5.5], [-1, 0, 2, 9]], np.float32)
WHICH = np.array([1, 0, 1])
BOXES = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6], [0, 5.2, 1, 6]]], np.float32)
SCORES = np.array([[[0.8, 0.9, 0.7, 0.75], [0.1, 0.2, 0.3, 0.4]]], np.float32)


def align(version, label, **attributes):
    sizes = {"output_height": 2, "output_width": 3, "sampling_ratio": 2}
    return NodeCase("RoiAlign", version, [IMAGE, ROIS, WHICH], {**sizes, **attributes}, label=label)


def old_align(label, **attributes):
    """A case of RoiAlign-10, which is RoiAlign-16 without a shift."""
    alike = align(16, "", coordinate_transformation_mode="output_half_pixel", **attributes)
    case = align(10, label, **attributes)
    expected = ReferenceEvaluator(alike.model()).run(None, alike.feeds())
    reason = "shifts coordinates by half an element, as RoiAlign does since opset 16"
    return replace(case, expected=expected, wrong={EVALUATOR: reason})


def pool(version):
    """A case of MaxRoiPool, by the algorithm of the paper "Fast R-CNN"."""
    corners = np.array([[0, 0, 6, 8], [2, 4, 13, 11], [10, 2, 30, 6]], np.float32)
    boxes = np.concatenate([WHICH[:, None], corners], axis=1).astype(np.float32)
    expected = np.zeros((3, 3, 2, 3), np.float32)
    for r, (x1, y1, x2, y2) in enumerate((corners * 0.5 + 0.5).astype(int)):
        for i, j in np.ndindex(2, 3):
            rows = slice(y1 + i * (y2 - y1 + 1) // 2, y1 + -(-(i + 1) * (y2 - y1 + 1) // 2))
            columns = slice(x1 + j * (x2 - x1 + 1) // 3, x1 + -(-(j + 1) * (x2 - x1 + 1) // 3))
            window = IMAGE[WHICH[r], :, rows, columns]
            if window[0].size:
                expected[r, :, i, j] = window.max(axis=(1, 2))
    attributes = {"pooled_shape": [2, 3], "spatial_scale": 0.5}
    return NodeCase("MaxRoiPool", version, [IMAGE, boxes], attributes, expected=[expected])


def suppress(version, label, *limits, **attributes):
    limits = [
        np.array([one], np.int64 if place == 0 else np.float32) for place, one in enumerate(limits)
    ]
    return NodeCase("NonMaxSuppression", version, [BOXES, SCORES, *limits], attributes, label=label)


CASES = [
    old_align("mean"),
    old_align("max", mode="max", spatial_scale=0.75),
    *(align(v, "mean") for v in (16, 22)),
    *(align(v, "max", mode="max", spatial_scale=0.75) for v in (16, 22)),
    align(16, "counted", sampling_ratio=0, spatial_scale=0.6),
    align(22, "no_shift", coordinate_transformation_mode="output_half_pixel"),
    *(pool(v) for v in (1, 22)),
    *(suppress(v, "all", 4, 0.5) for v in (10, 11)),
    *(suppress(v, "one", 1, 0.5, 0.35, center_point_box=1) for v in (10, 11)),
    suppress(11, "none", 0),
    suppress(11, "no_limits"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize("limit", [2, 1])
def test_boxes_are_kept_by_constant_limits(limit):
    case = suppress(11, "", limit, 0.5)
    check(NodeCase(case.operator, 11, case.inputs, constants=[2, 3]))


def test_symbolic_boxes_are_counted_in_the_run():
    model = suppress(11, "", 3, 0.5).model()
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "M"
    model.graph.input[1].type.tensor_type.shape.dim[2].dim_param = "M"
    graph = from_onnx(model.SerializeToString())
    assert str(graph.outputs[0]) == "y0: i64[*]"


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (align(16, "", mode="mean"), "does not know the mode 'mean'"),
        (align(16, "", sampling_ratio=-1), "cannot take -1 samples"),
        (
            NodeCase("MaxRoiPool", 22, [IMAGE, ROIS], {"pooled_shape": [1, 1]}),
            "the extent of a box",
        ),
        (
            NodeCase(
                "NonMaxSuppression",
                11,
                [BOXES, SCORES, np.array([2]), np.array([1.5], np.float32)],
                constants=[2, 3],
            ),
            "cannot have the threshold 1.5",
        ),
    ],
)
def test_refusals(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
