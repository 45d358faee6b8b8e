"""Correlation of images: known answers, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.convolution.correlation import correlation, correlation_numpy
from tests.strategies.operands import assert_same, integers, run_te, tensors


def _plain(a, b, size, reach, stride1, stride2, is_multiply):
    """Return the sums by their definition, without padding."""
    radius = reach // stride2
    window = 2 * reach + size
    rows, columns = ((extent - window) // stride1 + 1 for extent in a.shape[2:])
    found = np.zeros((len(a), (2 * radius + 1) ** 2, rows, columns), a.dtype)
    for n, q, i, j in np.ndindex(found.shape):
        down, across = divmod(q, 2 * radius + 1)
        y, x = i * stride1 + reach, j * stride1 + reach
        v, u = y + (down - radius) * stride2, x + (across - radius) * stride2
        left = a[n, :, y : y + size, x : x + size]
        right = b[n, :, v : v + size, u : u + size]
        found[n, q, i, j] = (left * right if is_multiply else abs(left - right)).mean()
    return found


@pytest.mark.parametrize("is_multiply", [True, False])
@pytest.mark.parametrize(
    ("size", "reach", "stride1", "stride2"), [(1, 0, 1, 1), (1, 2, 1, 1), (3, 3, 2, 2)]
)
def test_patches_are_compared(size, reach, stride1, stride2, is_multiply):
    # The number of terms is a power of two, or the quotients are rounded alike.
    a, b = integers(1, 2, 4, 12, 11), integers(2, 2, 4, 12, 11)
    how = {
        "kernel_size": size,
        "max_displacement": reach,
        "stride1": stride1,
        "stride2": stride2,
        "is_multiply": is_multiply,
    }
    expected = _plain(a.astype(np.float64), b, size, reach, stride1, stride2, is_multiply)
    found = run_te(correlation, a, b, is_symbolic=False, **how)
    assert_same(found, expected.astype(np.float32))
    assert_same(correlation_numpy(a, b, **how), found)


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 2, 5), (1, 2, 5, 5)), {}, "the first image has 3 dimensions instead of 4"),
        (((1, 2, 5, 5), (1, 2, 5)), {}, "the second image has 3 dimensions instead of 4"),
        (((1, 2, 5, 5), (1, 2, 5, 4)), {}, "the second image's extent 3 is 4 instead of 5"),
        (((1, 0, 5, 5), (1, 0, 5, 5)), {}, "does not have a mean over 0 channels"),
        (((1, 2, 5, 5), (1, 2, 5, 5)), {"kernel_size": 2}, "cannot have patches of 2 rows"),
        (((1, 2, 5, 5), (1, 2, 5, 5)), {"stride2": 0}, "cannot have the stride2 0"),
        (((1, 2, 5, 5), (1, 2, 5, 5)), {"padding": -1}, "cannot have the padding -1"),
        (((1, 2, 5, 5), (1, 2, 5, 5)), {"max_displacement": 3}, "a window of 7 does not fit"),
    ],
)
def test_ill_formed_correlations_are_refused(shapes, options, message) -> None:
    with pytest.raises(UserError, match=message):
        correlation(*tensors(*shapes), **options)


def test_symbolic_channels_and_integers_are_refused() -> None:
    shape = (1, var("c"), 5, 5)
    with pytest.raises(UserError, match="does not have a mean over c channels"):
        correlation(*tensors(shape, shape))
    with pytest.raises(UserError, match="correlation takes float tensors, not i32"):
        correlation(*tensors((1, 2, 5, 5), (1, 2, 5, 5), dtype="int32"))
