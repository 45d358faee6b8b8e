"""Global poolings: values by hand, nothing, NaN, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.pooling import global_pool as pool
from tests.strategies.operands import assert_same, run_te, tensors

AVERAGES = [pool.global_avg_pool1d, pool.global_avg_pool2d, pool.global_avg_pool3d]
MAXIMA = [pool.global_max_pool1d, pool.global_max_pool2d, pool.global_max_pool3d]
NORMS = [pool.global_lp_pool1d, pool.global_lp_pool2d, pool.global_lp_pool3d]
ranks = pytest.mark.parametrize("rank", [1, 2, 3])


def cells(rank: int, *values: float) -> np.ndarray:
    return np.array(values, np.float32).reshape(1, 1, *[1] * (rank - 1), len(values))


@ranks
def test_values_by_hand(rank):
    data = cells(rank, 3, -4)
    assert_same(run_te(AVERAGES[rank - 1], data), cells(rank, -0.5))
    assert_same(run_te(MAXIMA[rank - 1], data), cells(rank, 3))
    assert_same(run_te(NORMS[rank - 1], data), cells(rank, 5))


@ranks
def test_channels_may_be_last(rank):
    data = np.moveaxis(cells(rank, 3, -4), 1, -1)
    layout = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[rank]
    wanted = np.moveaxis(cells(rank, 3), 1, -1)
    assert_same(run_te(MAXIMA[rank - 1], data, layout=layout), wanted)


def test_channels_may_be_in_blocks():
    data = cells(2, 3, -4)
    blocked = np.stack([data, data], axis=-1)
    wanted = np.stack([cells(2, 3)] * 2, axis=-1)
    assert_same(run_te(MAXIMA[1], blocked, layout="NCHWc"), wanted)


@ranks
@pytest.mark.filterwarnings("error")
def test_nothing(rank):
    data = cells(rank)
    assert_same(run_te(AVERAGES[rank - 1], data), cells(rank, np.nan))
    assert_same(run_te(MAXIMA[rank - 1], data), cells(rank, -np.inf))
    assert_same(run_te(NORMS[rank - 1], data), cells(rank, 0))


@ranks
def test_nan_propagates(rank):
    data = cells(rank, np.nan, 1)
    for operators in (AVERAGES, MAXIMA, NORMS):
        assert_same(run_te(operators[rank - 1], data), cells(rank, np.nan))


def test_global_average_over_symbolic_extents() -> None:
    (data,) = tensors((1, 2, var("h"), 3))
    assert pool.global_avg_pool2d(data).shape[2].value == 1


@ranks
def test_ill_formed_calls_are_refused(rank):
    average, greatest, norm = (family[rank - 1] for family in (AVERAGES, MAXIMA, NORMS))
    (data,) = tensors([1] * (rank + 2))
    with pytest.raises(UserError, match=f"{greatest.__name__} does not know the layout 'CHWN'"):
        greatest(data, layout="CHWN")
    with pytest.raises(UserError, match=f"{norm.__name__} cannot take the norm of degree 0"):
        norm(data, p=0)
    (whole,) = tensors([1] * (rank + 2), dtype="int32")
    for operator in (average, norm):
        with pytest.raises(UserError, match=f"{operator.__name__} takes float tensors"):
            operator(whole)
    (flat,) = tensors((1, 1))
    with pytest.raises(UserError, match="the data has 2 dimensions instead of"):
        average(flat)
