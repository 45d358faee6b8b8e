"""Operators of images and regions with classic arguments are those of refcomp with keywords."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.classic import topi
from refcomp.foundation.errors import UserError
from refcomp.oracle import evaluate

rng = np.random.default_rng(5)
X = rc.placeholder((1, 2, 4, 5), name="X")
BOXES = rc.placeholder((2, 4), name="BOXES")
IMAGES = rc.placeholder((2,), "int32", name="IMAGES")
ROIS = rc.placeholder((2, 5), name="ROIS")
VALUES = {
    X: rng.standard_normal((1, 2, 4, 5)).astype("float32"),
    BOXES: np.array([[0, 0, 1, 1], [0.25, 0.5, 0.75, 1.5]], "float32"),
    IMAGES: np.zeros(2, "int32"),
    ROIS: np.array([[0, 0, 0, 3, 2], [0, 1, 1, 4, 3]], "float32"),
}

CASES = {
    "multibox_prior": (
        topi.vision.ssd.multibox_prior(X, (0.5, 1), (1, 2)),
        rc.topi.multibox_prior(X, sizes=(0.5, 1), ratios=(1, 2)),
    ),
    "multibox_prior, steps": (
        topi.vision.ssd.multibox_prior(X, (0.5,), (1,), (0.5, 0.25), (0, 0.5), True),
        rc.topi.multibox_prior(X, sizes=(0.5,), steps=(0.5, 0.25), offsets=(0, 0.5), clip=True),
    ),
    "roi_pool_nchw": (
        topi.vision.rcnn.roi_pool_nchw(X, ROIS, 2, 0.5),
        rc.topi.roi_pool(X, ROIS, pooled_size=(2, 2), spatial_scale=0.5),
    ),
    "crop_and_resize": (
        topi.image.crop_and_resize(X, BOXES, IMAGES, (3, 2)),
        rc.topi.crop_and_resize(X, BOXES, IMAGES, crop_size=(3, 2), layout="NCHW"),
    ),
    "crop_and_resize, nearest": (
        topi.image.crop_and_resize(X, BOXES, IMAGES, [3, 2], "NHWC", "nearest", 9),
        rc.topi.crop_and_resize(
            X, BOXES, IMAGES, crop_size=(3, 2), method="nearest", extrapolation_value=9
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_classic_call_is_a_call_with_keywords(case: str) -> None:
    classic, keywords = (evaluate([tensor], VALUES)[0] for tensor in CASES[case])
    assert (classic.shape, classic.dtype) == (keywords.shape, keywords.dtype)
    np.testing.assert_array_equal(classic, keywords)


def test_sizes_are_one_or_two_numbers() -> None:
    with pytest.raises(UserError, match=r"the size of the result is \(1, 2, 3\)"):
        topi.vision.rcnn.roi_pool_nchw(X, ROIS, (1, 2, 3), 1.0)


@pytest.mark.parametrize(
    "name", ["get_valid_counts", "ssd.multibox_detection", "ssd.multibox_transform_loc"]
)
def test_operators_with_other_results_are_not_aliases(name: str) -> None:
    namespace = topi.vision
    *places, last = name.split(".")
    for place in places:
        namespace = getattr(namespace, place)
    with pytest.raises(AttributeError, match=f"see refcomp.topi.{last}. It takes"):
        getattr(namespace, last)
