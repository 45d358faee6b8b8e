"""Depthwise convolution: known answers, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.depthwise_conv2d import depthwise_conv2d_nchw, depthwise_conv2d_nhwc
from tests.strategies.operands import assert_same, integers, run_te, tensors


def _plain(data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the kernels of each channel, applied by a loop over the elements of windows."""
    channels, several, height, width = weight.shape
    rows, columns = data.shape[2] - height + 1, data.shape[3] - width + 1
    found = np.zeros((len(data), channels, several, rows, columns), data.dtype)
    for y, x in np.ndindex(height, width):
        part = data[:, :, y : y + rows, x : x + columns]
        found += part[:, :, None] * weight[None, :, :, y, x, None, None]
    return found.reshape(len(data), channels * several, rows, columns)


def test_each_channel_has_its_own_kernels() -> None:
    data, weight = integers(1, 2, 3, 4, 5), integers(2, 3, 2, 2, 3)
    expected = _plain(data, weight)
    assert_same(run_te(depthwise_conv2d_nchw, data, weight), expected)
    operands = (data.transpose(0, 2, 3, 1).copy(), weight.transpose(2, 3, 0, 1).copy())
    found = run_te(depthwise_conv2d_nhwc, *operands)
    assert_same(found, expected.transpose(0, 2, 3, 1))


def test_nan_stays_in_its_channel() -> None:
    data = np.array([np.nan, 3], np.float32).reshape(1, 2, 1, 1)
    found = run_te(depthwise_conv2d_nchw, data, np.ones((2, 1, 1, 1), np.float32))
    np.testing.assert_array_equal(found.ravel(), [np.nan, 3])


def test_ill_formed_convolutions_are_refused() -> None:
    name = "depthwise_conv2d_nchw"
    with pytest.raises(UserError, match=f"{name}: the data's channel extent is 2 instead of 3"):
        depthwise_conv2d_nchw(*tensors((1, 2, 5, 5), (3, 1, 3, 3)))
    with pytest.raises(UserError, match=f"{name}: the bias' extent is 2 instead of 4"):
        depthwise_conv2d_nchw(*tensors((1, 2, 5, 5), (2, 2, 3, 3), (2,)))
    with pytest.raises(UserError, match=f"{name}: the data has 3 dimensions instead of 4"):
        depthwise_conv2d_nchw(*tensors((1, 2, 5), (2, 2, 3, 3)))
    with pytest.raises(UserError, match="a window of 3 does not fit in 2 elements"):
        depthwise_conv2d_nhwc(*tensors((1, 2, 5, 2), (3, 3, 2, 1)))
    with pytest.raises(UserError, match="depthwise_conv2d_nhwc cannot multiply bool tensors"):
        depthwise_conv2d_nhwc(*tensors((1, 5, 5, 2), (3, 3, 2, 1), dtype="bool"))
