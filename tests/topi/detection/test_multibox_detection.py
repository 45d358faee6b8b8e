"""Detections of SSD networks: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.detection.multibox_detection import multibox_detection
from tests.strategies.operands import run_te, tensors

ANCHORS = np.array([[[0, 0, 1, 0.875], [0, 0, 1, 1], [0, 0, 0.25, 0.25]]], np.float32)


def detect(*foreground, **how):
    """The kept boxes of one image, from the probabilities of each class."""
    scores = np.array([np.zeros(3), *foreground], np.float32)[None]
    arrays = (scores, np.zeros((1, 12), np.float32), ANCHORS)
    boxes, counts = run_te(multibox_detection, *arrays, is_symbolic=False, **how)
    assert (boxes[0, counts[0] :] == -1).all()
    return boxes[0, : counts[0]]


def test_the_better_of_overlapping_boxes_is_kept():
    boxes = detect([0.5, 0.75, 0.25])
    np.testing.assert_array_equal(boxes[:, 1], [0.75, 0.25])
    np.testing.assert_array_equal(boxes[0, 2:], [0, 0, 1, 1])
    assert len(detect([0.5, 0.75, 0.25], nms_threshold=0.9)) == 3


def test_classes_do_not_suppress_each_other():
    scores = ([0.5, 0, 0], [0, 0.75, 0])
    assert detect(*scores)[:, 0].tolist() == [1, 0]
    assert detect(*scores, force_suppress=True)[:, 0].tolist() == [1]


def test_boxes_below_the_threshold_are_left_out():
    assert len(detect([0.5, 0.75, 0.25], threshold=0.3)) == 1
    assert len(detect([0.5, 0.75, 0.25], nms_topk=1)) == 1
    assert len(detect([0, 0, 0])) == 0


def test_ill_formed_predictions_are_refused():
    shapes = ((1, 3, 2), (1, 8), (1, 2, 4))
    with pytest.raises(UserError, match="the batch of loc_pred is 2 instead of 1"):
        multibox_detection(*tensors((1, 3, 2), (2, 8), (1, 2, 4)))
    with pytest.raises(UserError, match=r"cannot scale by \(0.1,\)"):
        multibox_detection(*tensors(*shapes), variances=(0.1,))
    with pytest.raises(UserError, match="non_max_suppression"):
        multibox_detection(*tensors(*shapes), nms_threshold=2.0)
