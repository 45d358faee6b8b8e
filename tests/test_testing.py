"""Comparing results as the classic API does."""

import numpy as np
import pytest

import refcomp
from refcomp.testing import assert_allclose


def test_what_is_close() -> None:
    assert_allclose(1.0, 1.0 + 1e-9)
    assert_allclose(np.array([1.0, np.nan, np.inf]), [1.0, np.nan, np.inf])
    assert_allclose(refcomp.array([1.0, 2.0]), np.array([1.0, 2.1]), rtol=0.1)
    assert_allclose([0.0], [1e-9])
    refcomp.testing.assert_allclose([100.0], [101.0], atol=1.0)


def test_what_is_not() -> None:
    for actual, desired in ([[1.0], [1.1]], [[0.0], [1e-6]], [[np.nan], [0.0]], [[1], [2]]):
        with pytest.raises(AssertionError, match="Mismatched elements|nan location"):
            assert_allclose(np.array(actual), desired)


def test_shapes_are_not_stretched() -> None:
    with pytest.raises(AssertionError, match=r"shapes differ: \(1,\), expected \(2,\)"):
        assert_allclose([1.0], [1.0, 1.0])


@pytest.mark.pocl
def test_arrays_of_a_device() -> None:
    assert_allclose(refcomp.array([1.0, 2.0], refcomp.opencl()), [1.0, 2.0])
