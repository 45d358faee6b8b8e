"""Bits of floats, and rounding to odd."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.topi.conversion.bits import bits_of, float_of, round_to_odd_numpy, without_nan


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_bits_and_back(dtype) -> None:
    kind = rc.as_dtype(dtype)
    values = np.array([0, -0.0, 1, -2.5, np.inf, -np.inf]).astype(kind.dtype)
    data = rc.placeholder(values.shape, dtype, name="data")
    bits = rc.compute(data.shape, lambda i: bits_of(data[i]), name="bits")
    back = rc.compute(data.shape, lambda i: float_of(bits[i], kind), name="back")
    found, same = rc.oracle.evaluate([bits, back], {data: values})
    np.testing.assert_array_equal(found, values.view(f"uint{kind.bits}"))
    np.testing.assert_array_equal(same.view(found.dtype), found)


def test_nan_is_replaced() -> None:
    data = rc.placeholder((3,), name="data")
    made = rc.compute((3,), lambda i: without_nan(data[i]), name="made")
    values = np.array([np.nan, np.inf, 2], np.float32)
    (found,) = rc.oracle.evaluate([made], {data: values})
    assert list(found) == [0, np.inf, 2]


def test_rounding_to_odd_keeps_exact_values_and_never_ends_even() -> None:
    exact = np.array([0.0, -1.5, 2.0**-149, np.inf, -np.inf])
    np.testing.assert_array_equal(round_to_odd_numpy(exact), exact.astype(np.float32))
    assert np.isnan(round_to_odd_numpy(np.array([np.nan]))).all()
    between = np.array([1 + 2.0**-40, -1 - 2.0**-40, 1 + 2.0**-23 + 2.0**-40, 1e300, 1e-300])
    found = round_to_odd_numpy(between)
    assert (found.view(np.uint32) & 1 == 1).all()
    assert found[0] == np.float32(1 + 2.0**-23)
    assert found[3] == np.finfo(np.float32).max
