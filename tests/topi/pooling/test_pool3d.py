"""Pooling over three spatial axes: values by hand, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.pooling import pool3d as pool
from tests.strategies.operands import assert_same, run_te, tensors

CUBE = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 2, 2)


def test_values_by_hand() -> None:
    how = {"kernel": (2, 1, 2)}
    shape = (1, 1, 1, 2, 1)
    greatest = np.array([5, 7], np.float32).reshape(shape)
    assert_same(run_te(pool.max_pool3d, CUBE, **how), greatest)
    mean = np.array([2.5, 4.5], np.float32).reshape(shape)
    assert_same(run_te(pool.avg_pool3d, CUBE, **how), mean)
    assert_same(run_te(pool.lp_pool3d, CUBE, **how, p=1), mean * 4)


def test_each_axis_has_its_own_padding() -> None:
    how = {"kernel": (2, 2, 2), "padding": (1, 0, 0, 0, 0, 1), "strides": (2, 1, 1)}
    expected = np.array([3, 3], np.float32).reshape(1, 1, 1, 1, 2)
    assert_same(run_te(pool.max_pool3d, CUBE, **how), expected)
    assert_same(pool.max_pool3d_numpy(CUBE, **how), expected)


def test_ill_formed_poolings_are_refused() -> None:
    (data,) = tensors((1, 1, 4, 4, 4))
    with pytest.raises(UserError, match=r"max_pool3d cannot have the kernel \(2, 2\)"):
        pool.max_pool3d(data, kernel=(2, 2))
    with pytest.raises(UserError, match="avg_pool3d does not know the layout 'NHWC'"):
        pool.avg_pool3d(data, kernel=(1, 1, 1), layout="NHWC")
    with pytest.raises(UserError, match="lp_pool3d cannot take the norm of degree -1"):
        pool.lp_pool3d(data, kernel=(1, 1, 1), p=-1)
