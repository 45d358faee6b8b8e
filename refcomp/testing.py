"""Comparison of results in tests, under its classic name `refcomp.testing.assert_allclose`."""

import numpy as np
from numpy.typing import ArrayLike

from refcomp.runtime.arrays.ndarray import NDArray


def assert_allclose(
    actual: NDArray | ArrayLike,
    desired: NDArray | ArrayLike,
    rtol: float = 1e-7,
    atol: float = 1e-7,
) -> None:
    """Raise AssertionError unless |actual - desired| <= atol + rtol * |desired| everywhere.

    Takes arrays on any device, numpy arrays and numbers. The shapes must be equal. NaN equals NaN.
    The message lists the elements that differ.
    """
    found = as_numpy(actual)
    wanted = as_numpy(desired)
    # numpy's own function would broadcast one shape to the other.
    assert found.shape == wanted.shape, (
        f"shapes differ: {found.shape}, expected {wanted.shape}"
    )
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, verbose=True)


def as_numpy(value: NDArray | ArrayLike) -> np.ndarray:
    """Return a numpy array with the elements of an array or number."""
    if isinstance(value, NDArray):
        return value.asnumpy()
    return np.asarray(value)
