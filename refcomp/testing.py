"""Comparison of results in tests, under its classic name `refcomp.testing.assert_allclose`.

Example::

    >>> rc.testing.assert_allclose(rc.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9]))
"""

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

    NaN equals NaN, and an infinity equals itself. The message lists the elements that differ.

    Args:
        actual: an array on any device, a numpy array or a number.
        desired: the same, of the same shape.
        rtol: the relative tolerance, a number of at least 0.
        atol: the absolute tolerance, a number of at least 0.

    Raises:
        AssertionError: an element differs by more, or the shapes differ.

    Source: TVM, tvm.testing.assert_allclose; numpy.testing.assert_allclose.

    Example::

        >>> rc.testing.assert_allclose(rc.array([1.0, np.nan]), np.array([1.0, np.nan]))
        >>> rc.testing.assert_allclose(1.0, 1.1)
        Traceback (most recent call last):
            ...
        AssertionError: ...
    """
    found = as_numpy(actual)
    wanted = as_numpy(desired)
    # numpy's own function would broadcast one shape to the other.
    assert found.shape == wanted.shape, (
        f"shapes differ: {found.shape}, expected {wanted.shape}"
    )
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, verbose=True)


def as_numpy(value: NDArray | ArrayLike) -> np.ndarray:
    """Return a numpy array with the elements of an array or number.

    Args:
        value: an array on any device, a numpy array or a number.

    Example::

        >>> rc.testing.as_numpy(rc.array([1, 2]))
        array([1, 2])
    """
    if isinstance(value, NDArray):
        return value.asnumpy()
    return np.asarray(value)
