"""Group and instance normalization: special values, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.normalization.group_norm import (
    group_norm,
    group_norm_numpy,
    instance_norm,
    instance_norm_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

ONE = np.ones(4, np.float32)
SHIFT = np.array([0, 10, 20, 30], np.float32)


def test_groups_are_neighbouring_channels() -> None:
    data = np.array([[1, 3, 0, 8]], np.float32)
    expected = np.array([[-1, 11, 19, 31]], np.float32)
    how = {"num_groups": 2, "epsilon": 0.0}
    assert_same(run_te(group_norm, data, ONE, SHIFT, **how), expected)
    assert_same(group_norm_numpy(data, ONE, SHIFT, **how), expected)


def test_each_channel_has_its_own_statistics() -> None:
    data = np.array([[[1, 3], [8, 0], [5, 5], [np.nan, 1]]], np.float32)
    expected = np.array([[[-1, 1], [11, 9], [20, 20], [np.nan, np.nan]]], np.float32)
    assert_same(run_te(instance_norm, data, ONE, SHIFT), expected, 1e-4)
    assert_same(instance_norm_numpy(data, ONE, SHIFT), expected, 1e-4)


@pytest.mark.parametrize("groups", [0, 3, -2])
def test_groups_that_do_not_divide_the_channels_are_refused(groups):
    data, gamma = tensors((2, 4, 3), (4,))
    message = f"group_norm cannot divide 4 channels into {groups} groups"
    with pytest.raises(UserError, match=message):
        group_norm(data, gamma, gamma, num_groups=groups)


def test_ill_formed_calls_are_refused() -> None:
    data, gamma, short, flat = tensors((2, 4, 3), (4,), (3,), (4,))
    with pytest.raises(UserError, match="instance_norm takes data of two or more dimensions"):
        instance_norm(flat, gamma, gamma)
    with pytest.raises(UserError, match="instance_norm: beta is 3 instead of 4"):
        instance_norm(data, gamma, short)
    with pytest.raises(UserError, match="group_norm: gamma has 3 dimensions instead of 1"):
        group_norm(data, data, gamma, num_groups=2)
    (half,) = tensors((4,), dtype="float16")
    with pytest.raises(UserError, match="group_norm cannot combine f32 with f16"):
        group_norm(data, half, gamma, num_groups=2)
    (whole,) = tensors((2, 4), dtype="int32")
    with pytest.raises(UserError, match="group_norm takes float tensors"):
        group_norm(whole, gamma, gamma, num_groups=2)
