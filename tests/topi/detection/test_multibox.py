"""Anchors of SSD detectors: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.detection.multibox import multibox_prior, multibox_transform_loc
from tests.strategies.operands import run_te, tensors


def test_anchors_of_places_and_ratios():
    data = np.zeros((1, 3, 1, 2), np.float32)
    made = run_te(multibox_prior, data, is_symbolic=False, sizes=(0.5,), ratios=(1.0, 4.0))[0]
    np.testing.assert_allclose(made[0], [0.125, 0.25, 0.375, 0.75])
    np.testing.assert_allclose(made[1], [0, 0.375, 0.5, 0.625])
    np.testing.assert_allclose(made[2:] - made[:2], [[0.5, 0, 0.5, 0]] * 2)


def test_steps_and_clipping():
    data = np.zeros((1, 3, 1, 1), np.float32)
    how = {"steps": (0.5, 0.25), "offsets": (1.0, 0.0)}
    assert run_te(multibox_prior, data, **how).ravel().tolist() == [-0.5, 0, 0.5, 1]
    assert run_te(multibox_prior, data, **how, clip=True).ravel().tolist() == [0, 0, 0.5, 1]


def transform(probabilities, **how):
    """The boxes and the count of one image, whose anchors are the left half."""
    scores = np.array(probabilities, np.float32).T[None]
    count = scores.shape[2]
    anchors = np.tile(np.array([0, 0, 0.5, 1], np.float32), (1, count, 1))
    offsets = np.zeros((1, 4 * count), np.float32)
    offsets[0, :4] = (10, 0, 0, 0)
    arrays = (scores, offsets, anchors)
    boxes, counts = run_te(multibox_transform_loc, *arrays, is_symbolic=False, **how)
    return boxes[0], counts.tolist()


def test_the_best_class_without_the_background():
    boxes, counts = transform([[0.9, 0.05, 0.05], [0.1, 0.2, 0.7], [1, 0, 0]])
    np.testing.assert_allclose(boxes[0], [0, 0.05, 0.5, 0, 1, 1], rtol=1e-6)
    np.testing.assert_allclose(boxes[1], [1, 0.7, 0, 0, 0.5, 1], rtol=1e-6)
    assert boxes[2, 0] == -1
    assert counts == [2]
    assert transform([[0, 0.5]], threshold=0.5)[1] == [1]


def test_undefined_probabilities_are_not_valid():
    boxes, counts = transform([[0.5, np.nan]])
    assert boxes[0, 0] == -1
    assert counts == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": ()}, r"cannot use the sizes \(\)"),
        ({"ratios": (1.0, 0.0)}, r"cannot use the ratios \(1.0, 0.0\)"),
        ({"steps": (1.0,)}, r"cannot use the steps \(1.0,\)"),
        ({"offsets": (1.0,)}, r"and the offsets \(1.0,\)"),
    ],
)
def test_ill_formed_anchors_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        multibox_prior(*tensors((1, 1, 2, 2)), **options)


def test_unfit_maps_are_refused():
    with pytest.raises(UserError, match="multibox_prior: the data has 3 dimensions"):
        multibox_prior(*tensors((1, 2, 2)))
    with pytest.raises(UserError, match="multibox_prior takes float tensors, not i32"):
        multibox_prior(*tensors((1, 1, 2, 2), dtype="int32"))
    with pytest.raises(UserError, match="a spatial extent must be a constant"):
        multibox_prior(*tensors((1, 1, var("h"), 2)))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((3, 2), (1, 8), (1, 2, 4)), "cls_prob has 2 dimensions"),
        (((1, 1, 2), (1, 8), (1, 2, 4)), "takes two or more classes, not 1"),
        (((1, 3, 2), (2, 8), (1, 2, 4)), "the batch of loc_pred is 2 instead of 1"),
        (((1, 3, 2), (1, 6), (1, 2, 4)), "the second extent of loc_pred is 6 instead of 8"),
        (((1, 3, 2), (1, 8), (2, 2, 4)), "the first extent of anchor is 2 instead of 1"),
        (((1, 3, 2), (1, 8), (1, 3, 4)), "the number of anchors is 3 instead of 2"),
        (((1, 3, 2), (1, 8), (1, 2, 5)), "the extent of an anchor is 5 instead of 4"),
        (((1, 3, var("a")), (1, 8), (1, 2, 4)), "the number of anchors must be a constant"),
        (((1, var("c"), 2), (1, 8), (1, 2, 4)), "the number of classes must be a constant"),
    ],
)
def test_ill_formed_predictions_are_refused(shapes, message):
    with pytest.raises(UserError, match=message):
        multibox_transform_loc(*tensors(*shapes))


def test_variances_are_four():
    with pytest.raises(UserError, match=r"cannot scale by \(0.1,\)"):
        multibox_transform_loc(*tensors((1, 3, 2), (1, 8), (1, 2, 4)), variances=(0.1,))
