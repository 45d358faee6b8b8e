"""The comparison of sorted order: NaN is the greatest, zeros are equal."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.topi.search.comparison import is_less, precedes


def _compared(a, b, function=is_less):
    first, second = np.array([a]), np.array([b])
    x = rc.placeholder((1,), first.dtype, name="x")
    y = rc.placeholder((1,), second.dtype, name="y")
    result = rc.compute((1,), lambda i: function(x[i], y[i]), name="less")
    return bool(rc.oracle.evaluate([result], {x: first, y: second})[0][0])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (1.0, 2.0, True),
        (2.0, 1.0, False),
        (np.inf, np.nan, True),
        (np.nan, -np.inf, False),
        (np.nan, np.nan, False),
        (-0.0, 0.0, False),
        (0.0, -0.0, False),
        (-1, 1, True),
        (False, True, True),
        (True, False, False),
        (True, True, False),
    ],
)
def test_which_element_is_less(a, b, expected):
    assert _compared(a, b) == expected


def test_descending_order_begins_with_nan():
    assert _compared(np.nan, 1.0, lambda a, b: precedes(a, b, is_ascend=False))
    assert not _compared(1.0, np.nan, lambda a, b: precedes(a, b, is_ascend=False))
    assert not _compared(1.0, 1.0, lambda a, b: precedes(a, b, is_ascend=False))
