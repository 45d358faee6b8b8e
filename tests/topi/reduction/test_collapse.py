"""Sums over repeated axes: shapes and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.reduction.collapse import collapse_sum, collapse_sum_numpy
from tests.strategies.operands import assert_same, run_te, tensors


@pytest.mark.parametrize(
    ("given", "wanted"),
    [((), ()), ((4,), ()), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), (1, 1)), ((0, 3), (1, 3))],
)
def test_it_is_the_gradient_of_broadcasting(given, wanted):
    data = np.arange(int(np.prod(given)), dtype=np.int32).reshape(given)
    found = run_te(collapse_sum, data, is_symbolic=False, shape=wanted)
    assert_same(found, collapse_sum_numpy(data, shape=wanted))
    assert found.shape == wanted
    assert found.sum() == data.sum()


def test_a_symbolic_extent_is_collapsed():
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert run_te(collapse_sum, data, shape=(3,)).tolist() == [3, 5, 7]


def test_half_floats_are_accumulated_in_f32():
    data = np.float16([60000, 60000, -60000])
    assert run_te(collapse_sum, data, shape=(1,)).tolist() == [60000]


def test_ill_formed_calls_are_refused():
    (data,) = tensors((2, 3))
    with pytest.raises(UserError, match="collapse_sum cannot make 3 dimensions of 2"):
        collapse_sum(data, shape=(1, 2, 3))
    with pytest.raises(UserError, match="collapse_sum: extent 0 of the shape is 3 instead of 2"):
        collapse_sum(data, shape=(3, 3))
    with pytest.raises(UserError, match="collapse_sum takes numbers, not bool"):
        collapse_sum(*tensors((2,), dtype="bool"), shape=())
