"""Convolution as a product of matrices: against conv2d, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.conv2d_im2col import conv2d_im2col
from tests.strategies.operands import assert_same, integers, run_te, tensors


def test_it_is_conv2d() -> None:
    data, weight, bias = integers(1, 2, 3, 5, 6), integers(2, 4, 3, 2, 3), integers(3, 4)
    how = {"strides": (2, 1), "padding": (1, 0, 0, 2), "dilation": (1, 2)}
    expected = conv2d_numpy(data, weight, bias, **how)
    assert_same(run_te(conv2d_im2col, data, weight, bias, **how), expected)


def test_sums_of_bytes_need_not_wrap() -> None:
    data = np.full((1, 2, 1, 1), 100, np.int8)
    found = run_te(conv2d_im2col, data, data, out_dtype="int32")
    assert_same(found, np.array([[[[20000]]]], np.int32))


def test_ill_formed_convolutions_are_refused() -> None:
    name = "conv2d_im2col"
    with pytest.raises(UserError, match=f"{name}: the data has 3 dimensions instead of 4"):
        conv2d_im2col(*tensors((2, 5, 5), (4, 2, 3, 3)))
    with pytest.raises(UserError, match=f"{name}: the data's channel extent is 2 instead of 3"):
        conv2d_im2col(*tensors((1, 2, 5, 5), (4, 3, 3, 3)))
    with pytest.raises(UserError, match=f"{name}: height or width must be a constant"):
        conv2d_im2col(*tensors((1, 2, var("h"), 5), (4, 2, 3, 3)))
    with pytest.raises(UserError, match=f"{name} cannot have the dilation"):
        conv2d_im2col(*tensors((1, 2, 5, 5), (4, 2, 3, 3)), dilation=(1,))
    with pytest.raises(UserError, match=f"{name}: the bias' extent is 3 instead of 4"):
        conv2d_im2col(*tensors((1, 2, 5, 5), (4, 2, 3, 3), (3,)))
