"""searchsorted and bucketize: special values, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.search.searchsorted import (
    bucketize,
    bucketize_numpy,
    searchsorted,
    searchsorted_numpy,
)
from tests.strategies.operands import run_te, tensors

_SEQUENCE = np.array([-np.inf, -0.0, 0, 2, np.nan, np.nan], np.float32)
_VALUES = np.array([-np.inf, 0, 1, np.inf, np.nan], np.float32)


@pytest.mark.parametrize(("right", "expected"), [(False, [0, 1, 3, 4, 4]), (True, [1, 3, 3, 4, 6])])
def test_infinities_zeros_and_nan(right, expected):
    attributes = {"right": right, "dtype": "int32"}
    assert run_te(searchsorted, _SEQUENCE, _VALUES, **attributes).tolist() == expected
    assert searchsorted_numpy(_SEQUENCE, _VALUES, **attributes).tolist() == expected
    assert run_te(bucketize, _VALUES, _SEQUENCE, **attributes).tolist() == expected
    assert bucketize_numpy(_VALUES, _SEQUENCE, **attributes).tolist() == expected


def test_each_row_has_its_own_sequence():
    sequence = np.array([[1, 2, 3], [10, 20, 30]], np.int32)
    values = np.array([[2, 10], [2, 10]], np.int32)
    s, v = tensors((2, 3), (2, 2), dtype="int32")
    (found,) = rc.oracle.evaluate([searchsorted(s, v)], {s: sequence, v: values})
    assert found.tolist() == [[1, 3], [0, 0]]
    assert searchsorted_numpy(sequence, values).tolist() == [[1, 3], [0, 0]]


def test_ill_formed_calls_are_refused():
    sequence, rows, values, scalar = tensors((4,), (2, 4), (3, 2), ())
    (integers,) = tensors((4,), dtype="int32")
    with pytest.raises(UserError, match="searchsorted cannot combine f32 with i32"):
        searchsorted(sequence, integers)
    with pytest.raises(UserError, match="searchsorted cannot give positions of the dtype i8"):
        searchsorted(sequence, values, dtype="int8")
    with pytest.raises(UserError, match="searchsorted cannot search in a tensor without dim"):
        searchsorted(scalar, values)
    with pytest.raises(UserError, match="searchsorted: the values has 1 dimensions instead of 2"):
        searchsorted(rows, sequence)
    with pytest.raises(UserError, match="searchsorted: extent 0 of the values is 3 instead of 2"):
        searchsorted(rows, values)
    with pytest.raises(UserError, match="bucketize: the tensor of boundaries has 2 dimensions"):
        bucketize(sequence, rows)
    with pytest.raises(UserError, match="bucketize cannot combine f32 with i32"):
        bucketize(values, integers)
    with pytest.raises(UserError, match="bucketize cannot give positions of the dtype f16"):
        bucketize(values, sequence, dtype="float16")
