"""median: special values, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.search.median import median, median_numpy
from tests.strategies.operands import run_te, tensors


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3], 3),
        ([3, 1, 2], 2),
        ([4, 1, 2, 3], 2.5),
        ([np.inf, 1, np.inf], np.inf),
        ([-np.inf, np.inf], np.nan),
        ([1, np.nan, 2], np.nan),
    ],
)
def test_middle_of_elements(values, expected):
    data = np.array([values], np.float32)
    with np.errstate(invalid="ignore"):
        for found in (run_te(median, data), median_numpy(data)):
            np.testing.assert_array_equal(found, np.array([expected], np.float32))


def test_ill_formed_calls_are_refused():
    data, empty = tensors((2, 3), (2, 0))
    with pytest.raises(UserError, match="median takes float tensors, not i32"):
        median(*tensors((2, 3), dtype="int32"))
    with pytest.raises(UserError, match="axis 2 is out of range"):
        median(data, axis=2)
    with pytest.raises(UserError, match="median cannot find the middle of no elements"):
        median(empty)
