"""Comparing results in tests, as the classic API does: `refcomp.testing.assert_allclose`."""

from typing import Any

import numpy as np

from refcomp.runtime.arrays.ndarray import NDArray


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Raises AssertionError, with the elements that differ, unless |a - d| <= atol + rtol * |d|.

    Takes arrays of any device, numpy arrays and numbers. Shapes must be equal; NaN equals NaN.
    """
    found, wanted = _as_numpy(actual), _as_numpy(desired)
    # numpy's own function would stretch the shorter one.
    assert found.shape == wanted.shape, f"shapes differ: {found.shape}, expected {wanted.shape}"
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, verbose=True)


def _as_numpy(value: Any) -> Any:
    return value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
