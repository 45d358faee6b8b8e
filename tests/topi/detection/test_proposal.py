"""Proposals of regions: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.detection.proposal import _anchors, proposal
from tests.strategies.operands import run_te, tensors

IMAGE = np.array([[40, 20, 1]], np.float32)
HOW = {"scales": (1.0,), "ratios": (1.0,), "rpn_post_nms_top_n": 2}


def propose(scores, deltas, **how):
    """The regions of an image with one anchor of 16 pixels at each of two places."""
    probabilities = np.array([[0, 0], scores], np.float32).reshape(1, 2, 2, 1)
    predictions = np.array(deltas, np.float32).T.reshape(1, 4, 2, 1)
    arrays = (probabilities, predictions, IMAGE)
    rois, counts = run_te(proposal, *arrays, is_symbolic=False, **{**HOW, **how})
    return rois.tolist(), counts.tolist()


def test_anchors_are_those_of_faster_rcnn():
    # Of R. Girshick's generate_anchors.py: extents for the base 16 and the scales 8 and 16.
    found = _anchors((8.0, 16.0), (0.5, 1.0, 2.0), 16)
    assert found == [(184, 96), (368, 192), (128, 128), (256, 256), (88, 176), (176, 352)]


def test_the_best_region_comes_first():
    still = [[0, 0, 0, 0]] * 2
    rois, counts = propose([0.5, 0.75], still)
    assert rois == [[0, 0, 16, 15, 31], [0, 0, 0, 15, 15]]
    assert counts == [2]


def test_regions_are_moved_into_the_image():
    rois, _ = propose([0.75, 0.5], [[0.5, -0.5, 0, 0], [0, 0, 0, 0]], rpn_min_size=0)
    assert rois[0] == [0, 8, 0, 19, 7]


def test_overlapping_small_and_undefined_regions_are_dropped():
    above = [[0, 0, 0, 0], [0, -1, 0, 0]]
    assert propose([0.5, 0.75], above)[1] == [1]
    beside = [[0, 0, 0, 0], [2, 0, 0, 0]]  # clipped to one column
    assert propose([0.5, 0.75], beside)[1] == [1]
    assert propose([0.5, 0.75], beside, rpn_min_size=1)[1] == [2]
    rois, counts = propose([0.5, np.nan], [[0, 0, 0, 0]] * 2)
    assert rois[1] == [0, 0, 0, 0, 0]
    assert counts == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": ()}, r"cannot use the scales \(\)"),
        ({"ratios": (0.0,)}, r"and the ratios \(0.0,\)"),
        ({"feature_stride": 0}, "cannot have the feature_stride 0"),
        ({"rpn_post_nms_top_n": 0}, "and the rpn_post_nms_top_n 0"),
        ({"threshold": 2.0}, "non_max_suppression"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        proposal(*tensors((1, 2, 2, 2), (1, 4, 2, 2), (1, 3)), **{**HOW, **options})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 2, 2), (1, 4, 2, 2), (1, 3)), "proposal: cls_prob has 3 dimensions"),
        (((1, 2, 2, 2), (1, 5, 2, 2), (1, 3)), "extent 1 of bbox_pred is 5 instead of 4"),
        (((1, 3, 2, 2), (1, 4, 2, 2), (1, 3)), "extent 1 of cls_prob is 3 instead of 2"),
        (((1, 2, 2, 2), (1, 4, 2, 2), (2, 3)), "extent 0 of im_info is 2 instead of 1"),
        (((1, 2, var("h"), 2), (1, 4, 2, 2), (1, 3)), "each extent of proposal must be a constant"),
        (((1, 2, 0, 2), (1, 4, 0, 2), (1, 3)), "a map without places"),
    ],
)
def test_unfit_predictions_are_refused(shapes, message):
    with pytest.raises(UserError, match=message):
        proposal(*tensors(*shapes), **HOW)


def test_integers_are_refused():
    with pytest.raises(UserError, match="proposal takes float tensors, not i32"):
        proposal(*tensors((1, 2, 2, 2), (1, 4, 2, 2), (1, 3), dtype="int32"), **HOW)
