"""Further forms of convolution: known answers, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.conv2d_layouts import conv2d_hwcn, group_conv2d_nchw
from tests.strategies.operands import assert_same, integers, run_te, tensors


def test_hwcn_is_conv2d_with_other_axes() -> None:
    data, weight = integers(1, 2, 3, 5, 4), integers(2, 4, 3, 2, 2)
    how = {"strides": (2, 1), "padding": (1, 0, 0, 1)}
    expected = conv2d_numpy(data, weight, **how).transpose(2, 3, 1, 0)
    operands = (data.transpose(2, 3, 1, 0).copy(), weight.transpose(2, 3, 1, 0).copy())
    assert_same(run_te(conv2d_hwcn, *operands, is_symbolic=False, **how), expected)


def test_groups_do_not_mix() -> None:
    data = np.array([np.nan, 3], np.float32).reshape(1, 2, 1, 1)
    weight = np.array([10, 100], np.float32).reshape(2, 1, 1, 1)
    found = run_te(group_conv2d_nchw, data, weight, groups=2)
    np.testing.assert_array_equal(found.ravel(), [np.nan, 300])


def test_ill_formed_convolutions_are_refused() -> None:
    with pytest.raises(UserError, match="conv2d_hwcn: the data's channel extent is 2 instead of 3"):
        conv2d_hwcn(*tensors((5, 5, 2, 1), (3, 3, 3, 1)))
    with pytest.raises(UserError, match="conv2d_hwcn: the weight has 3 dimensions instead of 4"):
        conv2d_hwcn(*tensors((5, 5, 2, 1), (3, 3, 2)))
    with pytest.raises(UserError, match="group_conv2d_nchw cannot divide 3 output channels"):
        group_conv2d_nchw(*tensors((1, 2, 5, 5), (3, 1, 3, 3)), groups=2)
    with pytest.raises(UserError, match="the data's channel extent is 2 instead of 4"):
        group_conv2d_nchw(*tensors((1, 2, 5, 5), (4, 2, 3, 3)), groups=2)
