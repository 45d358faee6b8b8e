"""gather_nd: coordinates, batches, indices out of range, refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.movement.gather_nd import gather_nd
from tests.strategies.operands import run_te, tensors

DATA = np.arange(8, dtype=np.int32).reshape(2, 2, 2)


def test_coordinates_select_elements_and_slices():
    assert run_te(gather_nd, DATA, np.array([[0, 0, 1], [1, 0, 1]])).tolist() == [1, 5]
    assert run_te(gather_nd, DATA, np.array([[1]])).tolist() == [[[4, 5], [6, 7]]]
    assert run_te(gather_nd, DATA, np.array([1, 0])).tolist() == [4, 5]
    assert run_te(gather_nd, DATA, np.zeros((1, 0), np.int32)).tolist() == [DATA.tolist()]


def test_batches_select_in_their_own_part():
    found = run_te(gather_nd, DATA, np.array([[1], [0]]), is_symbolic=False, batch_dims=1)
    assert found.tolist() == [[2, 3], [4, 5]]


def test_coordinates_are_clamped():
    far = np.array([[-(2**63), 2**63 - 1], [-1, -2], [-3, 2]])
    assert run_te(gather_nd, DATA, far).tolist() == [[2, 3], [4, 5], [2, 3]]
    empty = np.zeros((0, 2), np.float32)
    assert run_te(gather_nd, empty, np.array([[0, 1]])).tolist() == [0]


def test_ill_formed_calls_are_refused():
    (data,) = tensors((2, 3))
    indices, deep, rows, symbolic = tensors((4, 1), (4, 3), (3, 1), (var("n"),), dtype="int32")
    with pytest.raises(UserError, match="cannot use 3 coordinates and 0 batch axes"):
        gather_nd(data, deep)
    with pytest.raises(UserError, match="cannot have 2 batch axes in indices of 2 dimensions"):
        gather_nd(data, indices, batch_dims=2)
    with pytest.raises(UserError, match="cannot have -1 batch axes"):
        gather_nd(data, indices, batch_dims=-1)
    with pytest.raises(UserError, match="extent 0 of indices is 3 instead of 2"):
        gather_nd(data, rows, batch_dims=1)
    with pytest.raises(UserError, match="the number of coordinates must be a constant"):
        gather_nd(data, symbolic)
    with pytest.raises(UserError, match="gather_nd takes integer tensors, not f32"):
        gather_nd(data, data)
    with pytest.raises(UserError, match="gather_nd is applied to a int"):
        gather_nd(3, indices)
