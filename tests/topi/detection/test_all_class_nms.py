"""all_class_non_max_suppression: known selections, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.detection.all_class_nms import (
    all_class_non_max_suppression,
    all_class_non_max_suppression_numpy,
    check_thresholds,
    overlap,
)
from tests.strategies.operands import tensors

# The example of the specification of ONNX NonMaxSuppression.
_BOXES = np.array(
    [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1]]],
    np.float32,
)
_SCORES = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5]]], np.float32)


def _selected(boxes=_BOXES, scores=_SCORES, **attributes):
    attributes = {"max_output_boxes_per_class": 3, "iou_threshold": 0.5} | attributes
    inputs = tensors(boxes.shape, scores.shape)
    outputs = all_class_non_max_suppression(*inputs, **attributes)
    feeds = dict(zip(inputs, (boxes, scores), strict=True))
    rows, count = rc.oracle.evaluate(outputs, feeds)
    meant = all_class_non_max_suppression_numpy(boxes, scores, **attributes)
    np.testing.assert_array_equal(rows, meant[0])
    np.testing.assert_array_equal(count, meant[1])
    assert not rows[count[0] :].any()
    return rows[: count[0], 2].tolist()


def test_overlapping_boxes_are_suppressed():
    assert _selected() == [3, 0]
    assert _selected(iou_threshold=1.0) == [3, 0, 1]
    assert _selected(max_output_boxes_per_class=1) == [3]
    assert _selected(max_output_boxes_per_class=0) == []
    assert _selected(score_threshold=0.9) == [3]


def test_nan_and_equal_scores():
    scores = np.array([[[0.5, np.nan, -np.inf, 0.5, np.nan]]], np.float32)
    assert _selected(scores=scores, iou_threshold=1.0) == [0, 3, 2]
    assert _selected(scores=scores, iou_threshold=1.0, score_threshold=-1.0) == [0, 3]


def test_boxes_around_a_center():
    boxes = np.array([[[0.5, 0.5, 1, 1], [0.5, 0.6, 1, 1], [0.5, 10, 1, 1]]], np.float32)
    scores = np.array([[[0.7, 0.8, 0.9]]], np.float32)
    assert _selected(boxes, scores, center_point_box=True) == [2, 1]


def test_overlap_of_boxes():
    assert overlap(np.array([0.0, 0, 2, 1]), np.array([1.0, 1, 0, 0])) == 0.5
    assert np.isnan(overlap(np.zeros(4), np.zeros(4)))


def test_ill_formed_calls_are_refused():
    name = "all_class_non_max_suppression"
    boxes, scores, few = tensors((1, 5, 4), (1, 2, 5), (1, 2, 4))
    (integers,) = tensors((1, 5, 4), dtype="int32")
    most = {"max_output_boxes_per_class": 3}
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        all_class_non_max_suppression(integers, scores, **most)
    with pytest.raises(UserError, match="the number of scores is 4 instead of 5"):
        all_class_non_max_suppression(boxes, few, **most)
    with pytest.raises(UserError, match="the number of coordinates is 5 instead of 4"):
        all_class_non_max_suppression(scores, *tensors((1, 1, 2)), **most)
    with pytest.raises(UserError, match="the number of batches is 2 instead of 1"):
        all_class_non_max_suppression(boxes, *tensors((2, 1, 5)), **most)
    with pytest.raises(UserError, match="the tensor of boxes has 1 dimensions instead of 3"):
        all_class_non_max_suppression(*tensors((4,)), scores, **most)
    with pytest.raises(UserError, match="the tensor of scores has 1 dimensions instead of 3"):
        all_class_non_max_suppression(boxes, *tensors((4,)), **most)
    with pytest.raises(UserError, match=f"{name} cannot combine f32 with f64"):
        all_class_non_max_suppression(boxes, *tensors((1, 1, 5), dtype="float64"), **most)
    with pytest.raises(UserError, match="each extent must be a constant"):
        n = rc.var("n")
        all_class_non_max_suppression(*tensors((n, 5, 4), (n, 1, 5)), **most)
    with pytest.raises(UserError, match="f cannot keep -1 boxes"):
        check_thresholds("f", -1, 0.5)
    with pytest.raises(UserError, match="f cannot have the threshold 1.5 of overlap"):
        check_thresholds("f", 1, 1.5)
