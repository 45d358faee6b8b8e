"""Boxes: known overlaps and encodings, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.detection import boxes
from tests.strategies.operands import assert_same, run_te, tensors

SQUARE = np.array([[0, 0, 2, 2]], np.float32)


def test_overlaps_by_hand():
    others = np.array([[0, 0, 2, 2], [1, 1, 3, 3], [2, 2, 4, 4], [0, 0, 0, 0]], np.float32)
    made = run_te(boxes.box_iou, SQUARE, others)
    np.testing.assert_allclose(made, [[1, 1 / 7, 0, 0]], rtol=1e-6)
    centred = run_te(boxes.box_iou, SQUARE, SQUARE, box_format="center")
    assert centred.tolist() == [[1]]


def test_empty_boxes_and_nan():
    nothing = np.zeros((1, 4), np.float32)
    assert run_te(boxes.box_iou, nothing, nothing).tolist() == [[0]]
    undefined = np.array([[0, 0, np.nan, 2]], np.float32)
    assert np.isnan(run_te(boxes.box_iou, SQUARE, undefined)).all()


def test_decoding_inverts_encoding():
    box = np.array([[1, 2, 4, 3], [0, 0, 8, 8]], np.float32)
    anchor = np.array([[0, 0, 2, 2], [1, 1, 3, 5]], np.float32)
    encoded = run_te(boxes.box_encode, box, anchor, is_symbolic=False)
    np.testing.assert_allclose(encoded[0], [6, 6, 4 * np.log(1.5), 4 * np.log(0.5)], rtol=1e-6)
    assert_same(run_te(boxes.box_decode, encoded, anchor, is_symbolic=False), box, 1e-6)


def test_numbers_are_chosen_by_place_and_rounded():
    assert boxes.rounded_numbers((0.1,), SQUARE)[0] == np.float32(0.1)
    assert boxes.rounded_numbers((0.1,), SQUARE.astype(np.float64))[0] == np.float64(0.1)


@pytest.mark.parametrize("operator", [boxes.box_iou, boxes.box_encode, boxes.box_decode])
def test_ill_formed_boxes_are_refused(operator):
    name = operator.__name__
    with pytest.raises(UserError, match=f"{name}: a tensor of boxes has 3 dimensions"):
        operator(*tensors((1, 2, 4), (2, 4)))
    with pytest.raises(UserError, match=f"{name}: the extent of a box is 5 instead of 4"):
        operator(*tensors((2, 4), (2, 5)))
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        operator(*tensors((2, 4), (2, 4), dtype="int32"))
    (half,) = tensors((2, 4), dtype="float16")
    with pytest.raises(UserError, match=f"{name} cannot combine f32 with f16"):
        operator(*tensors((2, 4)), half)


def test_other_ill_formed_calls_are_refused():
    with pytest.raises(UserError, match="box_iou does not know the box_format 'xywh'"):
        boxes.box_iou(*tensors((2, 4), (2, 4)), box_format="xywh")
    with pytest.raises(UserError, match="box_encode: the number of anchors is 3 instead of 2"):
        boxes.box_encode(*tensors((2, 4), (3, 4)))
    with pytest.raises(UserError, match=r"box_decode cannot scale by \(1.0, 0.0, 1.0, 1.0\)"):
        boxes.box_decode(*tensors((2, 4), (2, 4)), stds=(1.0, 0.0, 1.0, 1.0))
