"""unravel_index and invert_permutation: special values, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.search.positions import (
    invert_permutation,
    invert_permutation_numpy,
    unravel_index,
    unravel_index_numpy,
)
from tests.strategies.operands import run_te, tensors


def test_positions_out_of_range_are_moved_to_the_nearest():
    data = np.array([-7, 0, 5, 6, 99], np.int8)
    expected = [[0, 0, 1, 1, 1], [0, 0, 2, 2, 2]]
    assert run_te(unravel_index, data, shape=(2, 3)).tolist() == expected
    assert unravel_index_numpy(data, shape=(2, 3)).tolist() == expected
    big = np.array([2**64 - 1], np.uint64)
    assert run_te(unravel_index, big, shape=(2, 3)).tolist() == [[1], [2]]


def test_a_permutation_is_undone():
    data = np.array([3, 1, 0, 2])
    assert run_te(invert_permutation, data).tolist() == [2, 1, 3, 0]
    assert invert_permutation_numpy(data).tolist() == [2, 1, 3, 0]
    assert run_te(invert_permutation, np.array([1, 1, 0])).tolist() == [2, 1, 0]


def test_ill_formed_calls_are_refused():
    (floats,) = tensors((3,))
    (small,) = tensors((3,), dtype="int8")
    (matrix,) = tensors((2, 3), dtype="int32")
    with pytest.raises(UserError, match="unravel_index takes integers, not f32"):
        unravel_index(floats, shape=(2,))
    for shape in ((), (0, 3), (16, 16)):
        with pytest.raises(UserError, match="unravel_index cannot find i8 positions"):
            unravel_index(small, shape=shape)
    with pytest.raises(UserError, match="the permutation has 2 dimensions instead of 1"):
        invert_permutation(matrix)
    with pytest.raises(UserError, match="invert_permutation takes i32 or i64, not i8"):
        invert_permutation(small)
