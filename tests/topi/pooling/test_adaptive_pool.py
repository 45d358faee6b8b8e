"""Adaptive poolings: values by hand, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.pooling import adaptive_pool as pool
from tests.strategies.operands import assert_same, run_te, tensors

AVERAGES = [pool.adaptive_avg_pool1d, pool.adaptive_avg_pool2d, pool.adaptive_avg_pool3d]
MAXIMA = [pool.adaptive_max_pool1d, pool.adaptive_max_pool2d, pool.adaptive_max_pool3d]
ranks = pytest.mark.parametrize("rank", [1, 2, 3])


def cells(rank: int, *values: float) -> np.ndarray:
    return np.array(values, np.float32).reshape(1, 1, *[1] * (rank - 1), len(values))


@ranks
@pytest.mark.parametrize(
    ("count", "means", "maxima"),
    [(1, [3], [7]), (2, [1.5, 4.5], [3, 7]), (4, [0, 3, 2, 7], [0, 3, 2, 7])],
)
def test_windows_cover_the_data(rank, count, means, maxima):
    data = cells(rank, 0, 3, 2, 7)
    size = (*[1] * (rank - 1), count)
    assert_same(run_te(AVERAGES[rank - 1], data, output_size=size), cells(rank, *means))
    assert_same(run_te(MAXIMA[rank - 1], data, output_size=size), cells(rank, *maxima))


def test_windows_overlap_where_the_count_does_not_divide() -> None:
    data = cells(1, 0, 1, 2, 3)
    wanted = cells(1, 0.5, 1.5, 2.5)
    assert_same(run_te(pool.adaptive_avg_pool1d, data, output_size=(3,)), wanted)
    assert_same(pool.adaptive_avg_pool1d_numpy(data, output_size=(3,)), wanted)


@ranks
def test_ill_formed_calls_are_refused(rank):
    average, greatest = AVERAGES[rank - 1], MAXIMA[rank - 1]
    (data,) = tensors([2] * (rank + 2))
    with pytest.raises(UserError, match=f"{greatest.__name__} cannot have the output size"):
        greatest(data, output_size=(0,) * rank)
    with pytest.raises(UserError, match=f"{average.__name__} does not know the layout 'CHWN'"):
        average(data, output_size=(1,) * rank, layout="CHWN")
    (whole,) = tensors([2] * (rank + 2), dtype="int32")
    with pytest.raises(UserError, match=f"{average.__name__} takes float tensors"):
        average(whole, output_size=(1,) * rank)
