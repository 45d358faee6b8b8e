"""Operators of object detectors, compared with small cases worked by hand and with topi."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from tests.graph.symbol.applied import numbers, one, positive, run

X, Y, Z = (rc.sym.Variable(name) for name in "xyz")


def test_anchors_stand_at_each_place() -> None:
    made = one(rc.sym.multibox_prior(X, sizes=(0.5, 1.0)), numbers(1, 3, 1, 1))
    expected = np.array([[[0.25, 0.25, 0.75, 0.75], [0, 0, 1, 1]]], "float32")
    np.testing.assert_array_equal(made, expected)
    made = one(rc.sym.multibox_prior(X, steps=(0.5, 0.25), sizes="(0.5,)"), numbers(1, 3, 1, 1))
    np.testing.assert_array_equal(made, [[[-0.125, 0, 0.375, 0.5]]])


def test_valid_boxes_of_a_network_stand_first() -> None:
    # Class 0 is the background: anchor 0 is background, anchors 1 and 2 show classes 1 and 0.
    probabilities = np.array([[[0.9, 0.1, 0.2], [0.1, 0.2, 0.7], [0.0, 0.7, 0.1]]], "float32")
    anchors = np.array([[[0, 0, 1, 1], [0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]], "float32")
    net = rc.sym.multibox_transform_loc(X, Y, Z, threshold=0.5)
    boxes, counts = run(net, probabilities, np.zeros((1, 12), "float32"), anchors)
    np.testing.assert_array_equal(counts, [2])
    expected = [[1, 0.7, 0, 0, 0.5, 0.5], [0, 0.7, 0.5, 0.5, 1, 1], [-1] * 6]
    np.testing.assert_allclose(boxes[0], expected, rtol=1e-6)


BOXES = np.array(
    [[[0, 0.8, 0, 0, 4, 4], [0, 0.3, 0, 0, 4, 3], [1, 0.6, 0, 0, 4, 4], [0, 0.9, 9, 9, 12, 12]]],
    "float32",
)


def test_boxes_with_high_scores_are_counted() -> None:
    counts, boxes = run(rc.sym.get_valid_counts(X, score_threshold=0.5), BOXES)
    np.testing.assert_array_equal(counts, [3])
    np.testing.assert_array_equal(boxes[0, :3], BOXES[0, [0, 2, 3]])
    np.testing.assert_array_equal(boxes[0, 3], [-1] * 6)


def test_overlapping_boxes_of_a_class_are_dropped() -> None:
    count = np.array([4], "int32")
    made = one(rc.sym.non_max_suppression(X, Y), BOXES, count)
    np.testing.assert_array_equal(made[0, :3], BOXES[0, [3, 0, 2]])
    np.testing.assert_array_equal(made[0, 3], [-1] * 6)
    made = one(rc.sym.non_max_suppression(X, Y, force_suppress=True), BOXES, count)
    np.testing.assert_array_equal(made[0, :2], BOXES[0, [3, 0]])
    made = one(rc.sym.non_max_suppression(X, Y, return_indices=True), BOXES, count)
    np.testing.assert_array_equal(made, [[3, 0, 2, -1]])
    with pytest.raises(UserError, match="non_max_suppression needs boxes of constant extents"):
        rc.sym.non_max_suppression(X, Y).infer_shape(x=(1, "N", 6), y=(1,))


def test_regions_are_pooled() -> None:
    data = numbers(2, 3, 8, 8)
    regions = np.array([[0, 0, 0, 7, 7], [1, 2, 2, 5, 5]], "float32")
    pool = rc.sym.roi_pool(X, Y, pooled_size=(2, 2), spatial_scale=1.0)
    made = one(pool, data, regions)
    np.testing.assert_array_equal(made[0, :, 0, 0], data[0, :, :4, :4].max(axis=(1, 2)))
    np.testing.assert_array_equal(made[1, :, 1, 1], data[1, :, 4:6, 4:6].max(axis=(1, 2)))
    align = rc.sym.roi_align(X, Y, pooled_size=(2, 2), spatial_scale=1.0, sample_ratio=2)
    expected = rc.graph.find_operator("roi_align").numpy(
        data,
        regions[:, 1:],
        regions[:, 0].astype("int32"),
        pooled_size=(2, 2),
        spatial_scale=1.0,
        sampling_ratio=2,
        coordinates="output_half_pixel",
    )
    np.testing.assert_array_equal(one(align, data, regions), expected)


def test_yolo_layers_are_those_of_topi() -> None:
    data = numbers(1, 4, 4, 4)
    made = one(rc.sym.yolo_reorg(X, stride=2), data)
    expected = rc.graph.find_operator("yolo_reorg").numpy(data, stride=2)
    np.testing.assert_array_equal(made, expected)
    assert made.shape == (1, 16, 2, 2)
    data = positive(1, 16, 2, 2)
    made = one(rc.sym.yolo_region(X, n=2, classes=3), data)
    expected = rc.graph.find_operator("yolo_region").numpy(data, anchors=2, classes=3)
    np.testing.assert_array_equal(made, expected)
