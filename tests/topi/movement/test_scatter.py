"""Scatter operators: special values, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.movement.scatter import (
    index_put,
    scatter,
    scatter_add,
    scatter_elements,
    scatter_elements_numpy,
    scatter_nd,
)
from tests.strategies.operands import run_te, tensors

_DATA = np.array([1, 2, 3, np.nan], np.float32)
_PLACES = np.array([-4, 0, 5, 3], np.int32)
_UPDATES = np.array([10, 20, 30, 40], np.float32)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("none", [20, 2, 3, 40]),
        ("add", [31, 2, 3, np.nan]),
        ("mul", [200, 2, 3, np.nan]),
        ("min", [1, 2, 3, np.nan]),
        ("max", [20, 2, 3, np.nan]),
    ],
)
def test_updates_in_order_without_those_out_of_range(reduction, expected):
    wanted = np.array(expected, np.float32)
    found = run_te(scatter_elements, _DATA, _PLACES, _UPDATES, reduction=reduction)
    np.testing.assert_array_equal(found, wanted)
    found = scatter_elements_numpy(_DATA, _PLACES, _UPDATES, reduction=reduction)
    np.testing.assert_array_equal(found, wanted)


def test_fewer_updates_than_rows():
    (data, updates), (indices,) = tensors((3, 3), (2, 1)), tensors((2, 1), dtype="int32")
    feeds = {
        data: np.zeros((3, 3), np.float32),
        indices: np.array([[2], [2]], np.int32),
        updates: np.array([[5], [7]], np.float32),
    }
    (found,) = rc.oracle.evaluate([scatter_add(data, indices, updates)], feeds)
    assert found.tolist() == [[0, 0, 0], [0, 0, 0], [12, 0, 0]]


def test_no_updates():
    nothing = np.zeros(0, np.int64)
    for operator in (scatter, scatter_add):
        found = run_te(operator, _DATA, nothing, nothing.astype(np.float32))
        np.testing.assert_array_equal(found, _DATA)


def test_slices_at_indices():
    data = np.zeros((2, 2, 2), np.int32)
    indices = np.array([[1, 0], [0, 1], [1, 0]])
    updates = np.array([[1, 2], [3, 4], [5, 6]], np.int32)
    expected = [[[0, 0], [3, 4]], [[5, 6], [0, 0]]]
    assert run_te(scatter_nd, data, indices, updates).tolist() == expected
    columns = [np.ascontiguousarray(column) for column in indices.T]
    assert run_te(index_put, data, updates, *columns).tolist() == expected
    total = run_te(index_put, data, updates, *columns, accumulate=True)
    assert total.tolist() == [[[0, 0], [3, 4]], [[6, 8], [0, 0]]]


def test_an_index_of_no_axes_is_that_of_the_whole():
    (data, updates), (indices,) = tensors((2,), (3, 2)), tensors((3, 0), dtype="int64")
    assert scatter_nd(data, indices, updates).shape == data.shape


def test_ill_formed_calls_are_refused():
    data, updates, other, small = tensors((3, 4), (2, 4), (2, 5), (4,))
    (indices,) = tensors((2, 4), dtype="int32")
    wide, vector, deep, scalar = tensors((2, 5), (2,), (2, 3), (), dtype="int64")
    for operator in (scatter, scatter_add, scatter_elements):
        name = operator.__name__
        with pytest.raises(UserError, match=f"{name}: axis 2 is out of range"):
            operator(data, indices, updates, axis=2)
        with pytest.raises(UserError, match=f"{name}: the tensor of indices has 1 dim"):
            operator(data, vector, updates)
        with pytest.raises(UserError, match=f"{name}: the tensor of updates has 1 dim"):
            operator(data, indices, small)
        with pytest.raises(UserError, match=f"{name}: extent 1 of the updates is 5 instead of 4"):
            operator(data, indices, other)
        with pytest.raises(UserError, match=f"{name}: an extent of the indices is 5 instead of 4"):
            operator(data, wide, other)
        with pytest.raises(UserError, match=f"{name} cannot read indices of the dtype f32"):
            operator(data, updates, updates)
        with pytest.raises(UserError, match=f"{name} cannot combine f32 with i32"):
            operator(data, indices, indices)
    with pytest.raises(UserError, match="scatter_elements has no reduction 'sum'"):
        scatter_elements(data, indices, updates, reduction="sum")
    with pytest.raises(UserError, match="the tensor of indices has no dimension"):
        scatter_nd(data, scalar, updates)
    with pytest.raises(UserError, match="cannot index 2 dimensions by 3 numbers"):
        scatter_nd(data, deep, updates)
    with pytest.raises(UserError, match="scatter_nd: the tensor of updates has 2 dim"):
        scatter_nd(data, vector, updates)
    with pytest.raises(UserError, match="cannot index 2 dimensions by 0 tensors"):
        index_put(data, updates)
    with pytest.raises(UserError, match="index_put: a tensor of indices has 2 dimensions"):
        index_put(data, small, vector, indices)
    (longer,) = tensors((3,), dtype="int64")
    with pytest.raises(UserError, match="an extent of the indices is 3 instead of 2"):
        index_put(data, *tensors((2,)), vector, longer)
    with pytest.raises(UserError, match="index_put: extent 1 of the updates is 5 instead of 4"):
        index_put(data, other, vector)
