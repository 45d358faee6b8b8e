"""get_valid_counts and non_max_suppression: known selections, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.detection.nms import (
    get_valid_counts,
    get_valid_counts_numpy,
    non_max_suppression,
    non_max_suppression_numpy,
)
from tests.strategies.operands import tensors

# The example of TVM's documentation.
_DATA = np.array(
    [
        [
            [0, 0.8, 1, 20, 25, 45],
            [1, 0.7, 30, 60, 50, 80],
            [0, 0.4, 4, 21, 19, 40],
            [2, 0.9, 35, 61, 52, 79],
            [1, 0.5, 100, 60, 70, 110],
        ]
    ],
    np.float32,
)


def _checked(operator, meaning, arrays, **attributes):
    inputs = [rc.placeholder(a.shape, a.dtype, name=f"p{k}") for k, a in enumerate(arrays)]
    outputs = operator(*inputs, **attributes)
    found = rc.oracle.evaluate(outputs, dict(zip(inputs, arrays, strict=True)))
    for one, other in zip(found, meaning(*arrays, **attributes), strict=True):
        np.testing.assert_array_equal(one, other)
    return found


def _kept(valid=4, **attributes):
    counts = np.array([valid], np.int32)
    indices = np.arange(5, dtype=np.int32)[None]
    arrays = (_DATA, counts, indices)
    boxes, kept, count = _checked(
        non_max_suppression, non_max_suppression_numpy, arrays, **attributes
    )
    np.testing.assert_array_equal(boxes[0, : count[0]], _DATA[0, kept[0, : count[0]]])
    assert (boxes[0, count[0] :] == -1).all() and (kept[0, count[0] :] == -1).all()
    return kept[0, : count[0]].tolist()


def test_boxes_of_the_classic_example():
    assert _kept(iou_threshold=0.7, force_suppress=True, top_k=2) == [3, 0]
    assert _kept(iou_threshold=0.2) == [3, 0, 1]
    assert _kept(iou_threshold=0.2, force_suppress=True) == [3, 0]
    assert _kept(iou_threshold=0.2, id_index=-1) == [3, 0]
    assert _kept(iou_threshold=1.0) == [3, 0, 1, 2]
    assert _kept(iou_threshold=1.0, valid=5, max_output_size=4) == [3, 0, 1, 4]
    assert _kept(valid=0) == []
    assert _kept(max_output_size=0) == []


def test_valid_boxes_exceed_the_score_and_have_a_class():
    data = np.array([[[0, 0.5], [-1, 0.9], [3, 0.6], [2, np.nan]]], np.float32)
    counts, boxes, places = _checked(
        get_valid_counts, get_valid_counts_numpy, [data], score_threshold=0.5
    )
    assert counts.tolist() == [1] and places.tolist() == [[2, -1, -1, -1]]
    np.testing.assert_array_equal(boxes[0, 0], data[0, 2])
    counts, _, places = _checked(
        get_valid_counts, get_valid_counts_numpy, [data], score_threshold=0.5, id_index=-1
    )
    assert counts.tolist() == [2] and places.tolist() == [[1, 2, -1, -1]]


def test_ill_formed_valid_counts_are_refused():
    data, matrix = tensors((1, 4, 6), (4, 6))
    with pytest.raises(UserError, match="get_valid_counts: the tensor of boxes has 2 dim"):
        get_valid_counts(matrix)
    with pytest.raises(UserError, match="get_valid_counts takes float tensors, not i32"):
        get_valid_counts(*tensors((1, 4, 6), dtype="int32"))
    with pytest.raises(UserError, match="cannot find the column score_index = 6"):
        get_valid_counts(data, score_index=6)
    with pytest.raises(UserError, match="cannot find the column id_index = -2"):
        get_valid_counts(data, id_index=-2)


def test_ill_formed_suppressions_are_refused():
    (data,) = tensors((1, 4, 6))
    counts, indices, wrong = tensors((1,), (1, 4), (1, 5), dtype="int32")
    (long,) = tensors((1,), dtype="int64")
    with pytest.raises(UserError, match=r"cannot find the column coord_start \+ 3 = 6"):
        non_max_suppression(data, counts, indices, coord_start=3)
    with pytest.raises(UserError, match="cannot find the column score_index = -1"):
        non_max_suppression(data, counts, indices, score_index=-1)
    with pytest.raises(UserError, match="cannot have the threshold -0.5 of overlap"):
        non_max_suppression(data, counts, indices, iou_threshold=-0.5)
    with pytest.raises(UserError, match="takes counts and indices of i32, not i64"):
        non_max_suppression(data, long, indices)
    with pytest.raises(UserError, match="an extent of p2 is 5 instead of 4"):
        non_max_suppression(data, counts, wrong)
    with pytest.raises(UserError, match="the tensor of counts has 2 dimensions instead of 1"):
        non_max_suppression(data, indices, indices)
    with pytest.raises(UserError, match="the tensor of indices has 1 dimensions instead of 2"):
        non_max_suppression(data, counts, counts)
    with pytest.raises(UserError, match="the tensor of boxes has 1 dimensions instead of 3"):
        non_max_suppression(counts, counts, counts)
    with pytest.raises(UserError, match="each extent must be a constant"):
        non_max_suppression(*tensors((rc.var("n"), 4, 6)), counts, indices)
