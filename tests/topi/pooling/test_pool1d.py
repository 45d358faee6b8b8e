"""Pooling over one spatial axis: values by hand, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.pooling import pool1d as pool
from tests.strategies.operands import assert_same, run_te, tensors


def line(*values: float) -> np.ndarray:
    return np.array([[values]], np.float32)


def test_values_by_hand() -> None:
    how = {"kernel": (2,), "padding": (1, 0)}
    data = line(1, -2, 3)
    assert_same(run_te(pool.max_pool1d, data, **how), line(1, 1, 3))
    assert_same(run_te(pool.avg_pool1d, data, **how), line(1, -0.5, 0.5))
    with_padding = {**how, "count_include_pad": True}
    assert_same(run_te(pool.avg_pool1d, data, **with_padding), line(0.5, -0.5, 0.5))
    assert_same(run_te(pool.lp_pool1d, data, **how, p=1), line(1, 3, 5))


def test_last_window_may_reach_beyond_the_data() -> None:
    how = {"kernel": (2,), "strides": (2,), "ceil_mode": True}
    data = line(1, 2, 3)
    assert_same(run_te(pool.max_pool1d, data, **how), line(2, 3))
    # Only elements that exist count, with or without padding.
    for counted in (False, True):
        options = {**how, "count_include_pad": counted}
        assert_same(run_te(pool.avg_pool1d, data, **options), line(1.5, 3))
        assert_same(pool.avg_pool1d_numpy(data, **options), line(1.5, 3))


def test_no_window_starts_in_the_padding_at_the_end() -> None:
    how = {"kernel": (2,), "strides": (2,), "padding": (0, 1), "ceil_mode": True}
    data = line(1, 2, 3, 4)
    assert_same(run_te(pool.max_pool1d, data, **how), line(2, 4))
    assert_same(pool.max_pool1d_numpy(data, **how), line(2, 4))


def test_channels_may_be_last() -> None:
    data = line(1, -2, 3)
    moved = run_te(pool.max_pool1d, data.transpose(0, 2, 1), kernel=(2,), layout="NWC")
    assert_same(moved, line(1, 3).transpose(0, 2, 1))


def test_ill_formed_poolings_are_refused() -> None:
    image, data = tensors((1, 1, 4, 4), (1, 1, 4))
    with pytest.raises(UserError, match="max_pool1d: the data has 4 dimensions instead of 3"):
        pool.max_pool1d(image, kernel=(2,))
    with pytest.raises(UserError, match=r"avg_pool1d cannot have the kernel \(2, 2\)"):
        pool.avg_pool1d(data, kernel=(2, 2))
    with pytest.raises(UserError, match="lp_pool1d does not know the layout 'NCHW'"):
        pool.lp_pool1d(data, kernel=(2,), layout="NCHW")
