"""Bisection in a sequence, whole or up to a length that is read."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.topi.search.bisection import bisect


def _evaluated(right, length=None):
    sequence = rc.placeholder((6,), name="S")
    values = rc.placeholder((2, 2), name="V")
    feeds = {
        sequence: np.array([1, 2, 2, 4, 0, 0], np.float32),
        values: np.array([[0, 2], [4, 9]], np.float32),
    }
    counted = None
    if length is not None:
        counted = rc.placeholder((1,), "int64", name="L")
        feeds[counted] = np.array([length])
    else:
        feeds[sequence] = np.array([1, 2, 2, 4, 9, 9], np.float32)
    found = bisect(sequence, values, right=right, length=counted)
    return rc.oracle.evaluate([found], feeds)[0].tolist()


@pytest.mark.parametrize(
    ("right", "length", "expected"),
    [
        (False, None, [[0, 1], [3, 4]]),
        (True, None, [[0, 3], [4, 6]]),
        (False, 4, [[0, 1], [3, 4]]),
        (True, 4, [[0, 3], [4, 4]]),
        (True, 2, [[0, 2], [2, 2]]),
        (True, 0, [[0, 0], [0, 0]]),
    ],
)
def test_places_of_values(right, length, expected):
    assert _evaluated(right, length) == expected


def test_a_symbolic_sequence():
    n = rc.var("n")
    sequence, values = rc.placeholder((n,), name="S"), rc.placeholder((n,), name="V")
    found = bisect(sequence, values, right=True)
    given = np.array([1, 3, 5], np.float32)
    (places,) = rc.oracle.evaluate([found], {sequence: given, values: given[::-1].copy()})
    assert places.tolist() == [3, 2, 1]
