"""strided_slice, slice_like, flip, reverse_sequence: known answers, refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.movement import slices
from tests.strategies.operands import run_te, tensors

FIVE = np.arange(5, dtype=np.int32)


@pytest.mark.parametrize(
    ("begin", "end", "stride", "taken"),
    [
        (1, 4, 1, [1, 2, 3]),
        (-2, 99, 1, [3, 4]),
        (-1, -99, -1, [4, 3, 2, 1, 0]),
        (-1, -(2**63), -2, [4, 2, 0]),
        (99, 0, -1, [4, 3, 2, 1]),
        (3, 3, 1, []),
        (1, 4, -1, []),
        (2**63 - 1, -(2**63), -1, [4, 3, 2, 1, 0]),
    ],
)
def test_slices_follow_the_rules_of_python(begin, end, stride, taken):
    found = run_te(
        slices.strided_slice, FIVE, is_symbolic=False, begin=[begin], end=[end], strides=[stride]
    )
    assert found.tolist() == taken


def test_slices_of_some_axes():
    data = np.arange(12, dtype=np.int32).reshape(3, 4)
    given = {"begin": [3], "end": [0], "strides": [-2], "axes": [-1]}
    found = run_te(slices.strided_slice, data, **given)
    assert found.tolist() == [[3, 1], [7, 5], [11, 9]]
    like = run_te(slices.slice_like, data, np.zeros((9, 2)), axes=[-1], is_symbolic=False)
    assert like.tolist() == [[0, 1], [4, 5], [8, 9]]


def test_flip_reverses_a_symbolic_axis():
    assert run_te(slices.flip, FIVE).tolist() == [4, 3, 2, 1, 0]
    assert run_te(slices.flip, np.array(3.0)).tolist() == 3.0


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
def test_lengths_of_sequences_are_clamped(dtype):
    extreme = np.iinfo(dtype)
    lengths = np.array([extreme.min, 2, extreme.max], dtype)
    data = np.arange(9, dtype=np.int32).reshape(3, 3)
    found = run_te(slices.reverse_sequence, data, lengths, is_symbolic=False)
    assert found.tolist() == [[0, 1, 2], [4, 3, 5], [8, 7, 6]]
    across = {"seq_axis": 0, "batch_axis": 1}
    found = run_te(slices.reverse_sequence, data, lengths, is_symbolic=False, **across)
    assert found.tolist() == [[0, 4, 8], [3, 1, 5], [6, 7, 2]]


def test_ill_formed_slices_are_refused():
    data, symbolic = tensors((2, 3), (var("n"), 3))
    with pytest.raises(UserError, match="1 begins, 2 ends, 1 strides and 1 axes"):
        slices.strided_slice(data, begin=[0], end=[1, 2])
    with pytest.raises(UserError, match="strided_slice has a stride of 0"):
        slices.strided_slice(data, begin=[0], end=[1], strides=[0])
    with pytest.raises(UserError, match="strided_slice names an axis twice"):
        slices.strided_slice(data, begin=[0, 0], end=[1, 1], axes=[0, -2])
    with pytest.raises(UserError, match="strided_slice: axis 2 is out of range"):
        slices.strided_slice(data, begin=[0] * 3, end=[1] * 3)
    with pytest.raises(UserError, match="the extent of axis 0 must be a constant"):
        slices.strided_slice(symbolic, begin=[0], end=[1])
    with pytest.raises(UserError, match="cannot take 4 of the 3 elements of axis 1"):
        slices.slice_like(data, *tensors((2, 4)))
    with pytest.raises(UserError, match="slice_like: axis 1 is out of range for 1 dim"):
        slices.slice_like(data, *tensors((2,)), axes=[1])
    with pytest.raises(UserError, match="extent 0 of data must be a constant"):
        slices.slice_like(symbolic, data)
    with pytest.raises(UserError, match="extent 0 of shape_like must be a constant"):
        slices.slice_like(data, symbolic)


def test_other_ill_formed_calls_are_refused():
    (data,) = tensors((2, 3))
    lengths, longer = tensors((2,), (3,), dtype="int32")
    with pytest.raises(UserError, match="flip names an axis twice"):
        slices.flip(data, axis=(0, 0))
    with pytest.raises(UserError, match="axis 1 both for batches and along sequences"):
        slices.reverse_sequence(data, lengths, seq_axis=1, batch_axis=-1)
    with pytest.raises(UserError, match="the number of seq_lengths is 3 instead of 2"):
        slices.reverse_sequence(data, longer)
    with pytest.raises(UserError, match="reverse_sequence takes integer tensors, not f32"):
        slices.reverse_sequence(data, *tensors((2,)))
    with pytest.raises(UserError, match="seq_lengths has 2 dimensions instead of 1"):
        slices.reverse_sequence(data, *tensors((2, 1), dtype="int32"))
    with pytest.raises(UserError, match="strided_slice is applied to a int"):
        slices.strided_slice(3, begin=[], end=[])
    with pytest.raises(UserError, match="flip is applied to a int"):
        slices.flip(3)
