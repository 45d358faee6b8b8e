"""sparse_to_dense: special values, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.movement.sparse import sparse_to_dense, sparse_to_dense_numpy
from tests.strategies.operands import tensors


def test_the_last_value_counts_and_places_out_of_range_are_left_out():
    places = np.array([1, 1, -1, 5], np.int32)
    values = np.array([2, 3, 4, 9], np.float32)
    i, v = tensors((4,), dtype="int32") + tensors((4,))
    dense = sparse_to_dense(i, v, output_shape=(3,), default_value=0.5)
    (found,) = rc.oracle.evaluate([dense], {i: places, v: values})
    meant = sparse_to_dense_numpy(places, values, output_shape=(3,), default_value=0.5)
    assert found.tolist() == meant.tolist() == [0.5, 3, 4]


def test_ill_formed_calls_are_refused():
    (values,) = tensors((3,))
    line, pairs, cube = tensors((3,), (3, 2), (1, 1, 1), dtype="int32")
    with pytest.raises(UserError, match="the tensor of values has 2 dimensions instead of 1"):
        sparse_to_dense(line, pairs, output_shape=(3,))
    for shape in ((), (-1,)):
        with pytest.raises(UserError, match="sparse_to_dense cannot make the shape"):
            sparse_to_dense(line, values, output_shape=shape)
    with pytest.raises(UserError, match="cannot index 3 dimensions by 2 numbers"):
        sparse_to_dense(pairs, values, output_shape=(2, 2, 2))
    with pytest.raises(UserError, match="the tensor of indices has 3 dimensions instead of 2"):
        sparse_to_dense(cube, values, output_shape=(2,))
    with pytest.raises(UserError, match="scatter_nd cannot read indices of the dtype f32"):
        sparse_to_dense(values, values, output_shape=(2,))
