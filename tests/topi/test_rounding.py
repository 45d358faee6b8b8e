"""Saturating rounding: ties, limits and NaN, in te and in numpy."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.topi.rounding import round_to_integer, round_to_integer_numpy


def _rounded(values: np.ndarray, dtype: rc.DType, zero: int | None) -> np.ndarray:
    data = rc.placeholder(values.shape, values.dtype, name="data")
    point = None if zero is None else rc.const(zero, "int32")
    made = rc.compute(data.shape, lambda i: round_to_integer(data[i], dtype, point), name="made")
    (found,) = rc.oracle.evaluate([made], {data: values})
    return found


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("zero", [None, 3])
def test_ties_limits_and_nan(source: str, dtype: str, zero: int | None) -> None:
    kind = rc.as_dtype(dtype)
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 200, -200, np.inf, -np.inf, np.nan], source)
    found = _rounded(values, kind, zero)
    np.testing.assert_array_equal(found, round_to_integer_numpy(values, kind, zero or 0))
    assert found.dtype == kind.dtype
    # Ties go to the even integer before the zero point is added.
    assert list(found[:3]) == [0 + (zero or 0), 2 + (zero or 0), 2 + (zero or 0)]
    assert list(found[-3:]) == [kind.max_value, kind.min_value, 0]


def test_sum_of_large_integers_is_exact() -> None:
    values = np.array([2**24 + 2], np.float32)
    assert _rounded(values, rc.as_dtype("int32"), 1)[0] == 2**24 + 3
