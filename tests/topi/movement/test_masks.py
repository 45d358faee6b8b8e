"""one_hot, sequence_mask, triangles and diagonals: known answers, refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.movement import masks
from tests.strategies.operands import run_te, tensors

MATRIX = np.arange(1, 7, dtype=np.int32).reshape(2, 3)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
def test_indices_out_of_range_are_nowhere(dtype):
    extreme = np.iinfo(dtype)
    given = np.array([1, extreme.max, extreme.min], dtype)
    found = run_te(masks.one_hot, given, depth=2, off_value=5, on_value=6)
    lowest = [6, 5] if extreme.min == 0 else [5, 5]
    assert found.tolist() == [[5, 6], [5, 5], lowest]
    first = run_te(masks.one_hot, given, depth=2, axis=0, dtype="bool")
    assert first.shape == (2, 3) and first[:, 0].tolist() == [False, True]


def test_sequences_end_at_their_lengths():
    lengths = np.array([-1, 1, 2**40])
    found = run_te(masks.sequence_mask, MATRIX, lengths, is_symbolic=False, mask_value=-1)
    assert found.tolist() == [[-1, 2, 3], [-1, -1, 6]]
    nan = np.full((1, 2), np.nan, np.float32)
    masked = run_te(masks.sequence_mask, nan, np.array([0]), is_symbolic=False, axis=1)
    assert masked.tolist() == [[0, 0]]


def test_triangles_and_diagonals():
    assert run_te(masks.triu, MATRIX, k=1).tolist() == [[0, 2, 3], [0, 0, 6]]
    assert run_te(masks.tril, MATRIX, k=-1).tolist() == [[0, 0, 0], [4, 0, 0]]
    assert run_te(masks.trilu, MATRIX, upper=False).tolist() == [[1, 0, 0], [4, 5, 0]]
    assert run_te(masks.diagonal, MATRIX, is_symbolic=False, offset=1).tolist() == [2, 6]
    assert run_te(masks.diagonal, MATRIX, is_symbolic=False, offset=9).shape == (0,)
    values = np.array([8], np.int32)
    found = run_te(masks.matrix_set_diag, MATRIX, values, is_symbolic=False, k=-1)
    assert found.tolist() == [[1, 2, 3], [8, 5, 6]]


def test_ill_formed_masks_are_refused():
    data, vector = tensors((2, 3), (2,))
    lengths, longer = tensors((3,), (4,), dtype="int32")
    with pytest.raises(UserError, match="one_hot takes integer tensors, not f32"):
        masks.one_hot(data, depth=1)
    with pytest.raises(UserError, match="one_hot has the depth -1"):
        masks.one_hot(lengths, depth=-1)
    with pytest.raises(UserError, match="one_hot: axis 2 is out of range"):
        masks.one_hot(lengths, depth=1, axis=2)
    with pytest.raises(UserError, match="1.5 is not a constant of dtype"):
        masks.one_hot(lengths, depth=1, on_value=1.5, dtype="int32")
    with pytest.raises(UserError, match="the number of lengths is 4 instead of 3"):
        masks.sequence_mask(data, longer)
    with pytest.raises(UserError, match="axis 1 both for batches and along sequences"):
        masks.sequence_mask(data, lengths, axis=1, batch_axis=1)
    with pytest.raises(UserError, match="sequence_mask takes integer tensors, not f32"):
        masks.sequence_mask(data, vector)
    with pytest.raises(UserError, match="valid_length has 2 dimensions instead of 1"):
        masks.sequence_mask(data, *tensors((2, 3), dtype="int32"))


def test_ill_formed_matrices_are_refused():
    data, vector, symbolic = tensors((2, 3), (2,), (var("n"), 3))
    for name in ("tril", "triu", "trilu", "diagonal"):
        with pytest.raises(UserError, match=f"{name} takes matrices, not a tensor of 1 dim"):
            getattr(masks, name)(vector)
    with pytest.raises(UserError, match="axis 1 both as rows and as columns"):
        masks.diagonal(data, axis1=1, axis2=-1)
    with pytest.raises(UserError, match="diagonal: the number of rows must be a constant"):
        masks.diagonal(symbolic)
    with pytest.raises(UserError, match="extent 0 of values is 2 instead of 1"):
        masks.matrix_set_diag(data, vector, k=2)
    with pytest.raises(UserError, match="values has 2 dimensions instead of 1"):
        masks.matrix_set_diag(data, data)
    with pytest.raises(UserError, match="matrix_set_diag cannot combine f32 with i32"):
        masks.matrix_set_diag(data, *tensors((2,), dtype="int32"))
    with pytest.raises(UserError, match="the number of rows must be a constant"):
        masks.matrix_set_diag(symbolic, vector)
    with pytest.raises(UserError, match="matrix_set_diag takes matrices"):
        masks.matrix_set_diag(vector, vector)
