"""Corners of boxes, and the condition that two of them overlap too much."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.te.tensor import as_dim
from refcomp.topi.detection.suppression import (
    Suppression,
    centered_corners,
    corners_of,
    overlaps_more,
)

NAN = np.nan


def _overlaps(a, b, threshold, corners=corners_of):
    boxes = rc.placeholder((2, 4), name="boxes")
    found = rc.compute(
        (1,),
        lambda _: overlaps_more(
            corners(*[boxes[0, k] for k in range(4)]),
            corners(*[boxes[1, k] for k in range(4)]),
            threshold,
        ),
        name="found",
    )
    return bool(rc.oracle.evaluate([found], {boxes: np.array([a, b], np.float32)})[0][0])


@pytest.mark.parametrize(
    ("a", "b", "threshold", "expected"),
    [
        ((0, 0, 1, 1), (0, 0, 1, 1), 0.99, True),
        ((0, 0, 1, 1), (0, 0, 1, 1), 1.0, False),
        ((1, 1, 0, 0), (0, 1, 1, 0), 0.99, True),
        ((0, 0, 2, 1), (0, 0, 1, 1), 0.5, False),
        ((0, 0, 2, 1), (0, 0, 1, 1), 0.49, True),
        ((0, 0, 1, 1), (1, 0, 2, 1), 0.0, False),
        ((0, 0, 0, 0), (0, 0, 0, 0), 0.0, False),
        ((0, 0, 1, NAN), (0, 0, 1, 1), 0.0, False),
    ],
)
def test_overlap_is_more_than_the_threshold(a, b, threshold, expected):
    assert _overlaps(a, b, threshold) == expected


def test_boxes_around_a_center():
    assert _overlaps((1, 1, 2, 2), (1, 1, 2, 1), 0.49, centered_corners)
    assert not _overlaps((1, 1, 2, 2), (1, 1, 2, 1), 0.5, centered_corners)


@pytest.mark.parametrize(("room", "kept", "count"), [(4, [3, 1, 0, 0], 2), (1, [3], 1)])
def test_boxes_are_kept_in_their_order(room, kept, count):
    order = rc.placeholder((1, 4), "int32", name="order")
    suppression = Suppression(
        order=order,
        inputs=(),
        room=room,
        is_candidate=lambda read, line, place, box: box > 0,
        suppresses=lambda read, line, other, box: other.equal(box + as_dim(1)),
    )
    found = rc.oracle.evaluate(suppression.kept("kept"), {order: np.array([[3, 2, 0, 1]], "int32")})
    assert [one.tolist() for one in found] == [[kept], [count]]
