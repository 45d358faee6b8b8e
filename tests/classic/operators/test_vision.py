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

CORNERS = "output_half_pixel"
ALIGNED = rc.placeholder((2, 4), name="ALIGNED")
VALUES[ALIGNED] = np.ascontiguousarray(VALUES[ROIS][:, 1:])
EVEN = rc.placeholder((1, 4, 4, 4), name="EVEN")
VALUES[EVEN] = rng.standard_normal((1, 4, 4, 4)).astype("float32")
DETECTED = rc.placeholder((1, 3, 6), name="DETECTED")
VALUES[DETECTED] = np.array([[[0, 0.1], [-1, 0.9], [2, 0.8]]], "float32").repeat(3, -1)
VALUES[DETECTED][..., 1] = [0.1, 0.9, 0.8]

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
    "get_valid_counts, boxes": (
        topi.vision.get_valid_counts(DETECTED, 0.5)[1],
        rc.topi.get_valid_counts(DETECTED, score_threshold=0.5)[1],
    ),
    "get_valid_counts, counts": (
        topi.vision.get_valid_counts(DETECTED, 0.5)[0],
        rc.topi.get_valid_counts(DETECTED, score_threshold=0.5)[0],
    ),
    "roi_align_nchw": (
        topi.vision.rcnn.roi_align_nchw(X, ROIS, 2, 0.5),
        rc.topi.roi_align(
            X, ALIGNED, IMAGES, pooled_size=(2, 2), spatial_scale=0.5, coordinates=CORNERS
        ),
    ),
    "roi_align_nchw, samples": (
        topi.vision.rcnn.roi_align_nchw(X, ROIS, (1, 2), 1.0, 2),
        rc.topi.roi_align(
            X, ALIGNED, IMAGES, pooled_size=(1, 2), sampling_ratio=2, coordinates=CORNERS
        ),
    ),
    "reorg": (topi.vision.reorg(EVEN, 2), rc.topi.yolo_reorg(EVEN, stride=2)),
    "resize": (
        topi.image.resize(X, (8, 10)),
        rc.topi.resize2d(X, size=(8, 10), mode="linear", coordinates="align_corners"),
    ),
    "resize, not aligned": (
        topi.image.resize(X, (6, 10), "NCHW", "bilinear", False),
        rc.topi.resize2d(X, size=(6, 10), mode="linear", coordinates="asymmetric"),
    ),
    "resize, nearest": (
        topi.image.resize(X, (6, 10), "NCHW", "nearest_neighbor", align_corners=False),
        rc.topi.resize2d(
            X, size=(6, 10), mode="nearest", coordinates="asymmetric", rounding="floor"
        ),
    ),
    "resize, the order of TVM 0.5": (
        topi.image.resize(X, (6, 10), "NCHW", False, "BILINEAR"),
        rc.topi.resize2d(X, size=(6, 10), mode="linear", coordinates="asymmetric"),
    ),
    "resize, a dtype": (
        topi.image.resize(X, 8, "NCHW", True, out_dtype="float64"),
        rc.topi.cast(
            rc.topi.resize2d(X, size=(8, 8), mode="linear", coordinates="align_corners"),
            dtype="float64",
        ),
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


def test_valid_boxes_of_anchors_come_first() -> None:
    probabilities = rc.placeholder((1, 3, 3), name="P")
    offsets = rc.placeholder((1, 12), name="L")
    anchors = rc.placeholder((1, 3, 4), name="A")
    made = topi.vision.ssd.multibox_transform_loc(probabilities, offsets, anchors, threshold=0.5)
    p = np.array([[[0.8, 0.1, 0.3], [0.1, 0.2, 0.6], [0.1, 0.7, 0.1]]], "float32")
    corners = np.array([[[0.1, 0.1, 0.3, 0.3], [0.2, 0.2, 0.4, 0.4], [0.5, 0.5, 0.75, 1]]])
    feeds = {probabilities: p, anchors: corners.astype("float32")}
    boxes, counts = evaluate(made, {**feeds, offsets: np.zeros((1, 12), "float32")})
    assert counts.tolist() == [2]
    expected = [[1, 0.7, 0.2, 0.2, 0.4, 0.4], [0, 0.6, 0.5, 0.5, 0.75, 1], [-1] * 6]
    np.testing.assert_allclose(boxes[0], expected, rtol=1e-5)


def test_regions_have_five_columns() -> None:
    with pytest.raises(UserError, match=r"regions of the shape .* do not have 5 columns") as info:
        topi.vision.rcnn.roi_align_nchw(X, BOXES, 2, 1.0)
    assert info.value.remedy == "give the number of the image, then x1, y1, x2 and y2"


def test_unknown_methods_of_resize_are_refused() -> None:
    with pytest.raises(UserError, match="the method of resize is 'bicubic'") as info:
        topi.image.resize(X, (8, 8), method="BICUBIC")
    assert info.value.remedy == "use bilinear or nearest_neighbor"


def test_the_best_boxes_are_kept() -> None:
    data = rc.placeholder((1, 5, 6), name="data")
    count = rc.placeholder((1,), "int32", name="count")
    rows = [
        [0, 0.8, 1, 20, 25, 45],
        [1, 0.7, 30, 60, 50, 80],
        [0, 0.4, 4, 21, 19, 40],
        [2, 0.9, 35, 61, 52, 79],
        [1, 0.5, 100, 60, 70, 110],
    ]
    feeds = {data: np.array([rows], "float32"), count: np.array([4], "int32")}
    options = {"iou_threshold": 0.5, "force_suppress": True, "top_k": 2}
    suppress = topi.vision.non_max_suppression
    boxes = suppress(data, count, return_indices=False, invalid_to_bottom=False, **options)
    expected = [rows[3], rows[0], *[[-1] * 6] * 3]
    np.testing.assert_array_equal(evaluate([boxes], feeds)[0], np.array([expected], "float32"))
    places = suppress(data, count, -1, 0.5, True, 2)
    assert evaluate([places], feeds)[0].tolist() == [[3, 0, -1, -1, -1]]


def test_detected_boxes_are_a_single_tensor() -> None:
    operands = [rc.placeholder(shape) for shape in ((1, 2, 3), (1, 12), (1, 3, 4))]
    feeds = {operands[0]: rng.uniform(0, 1, (1, 2, 3)), operands[1]: np.zeros((1, 12))}
    feeds[operands[2]] = rng.uniform(0, 1, (1, 3, 4))
    feeds = {tensor: array.astype("float32") for tensor, array in feeds.items()}
    made = topi.vision.ssd.multibox_detection(*operands, True, 0.1, 0.5)
    wanted, _ = rc.topi.multibox_detection(*operands, threshold=0.1, nms_threshold=0.5)
    np.testing.assert_array_equal(*(evaluate([boxes], feeds)[0] for boxes in (made, wanted)))


def test_operators_without_classic_arguments_say_so() -> None:
    with pytest.raises(AttributeError, match="see refcomp.topi.proposal. It takes attributes"):
        topi.vision.rcnn.proposal  # noqa: B018
    with pytest.raises(AttributeError, match="see refcomp.topi.yolo_region. It takes attributes"):
        topi.vision.yolo.region  # noqa: B018
