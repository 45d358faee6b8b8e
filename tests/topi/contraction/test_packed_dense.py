"""dense_pack: known answers, weights in part of the last panel, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.te.operation import placeholder
from refcomp.te.tensor import var
from refcomp.topi.contraction.packed_dense import dense_pack, dense_pack_numpy
from tests.strategies.operands import assert_same, run_te, tensors


def test_columns_are_read_from_their_panels() -> None:
    data = np.array([[1, 10], [2, 0]], np.int32)
    panels = np.arange(8, dtype=np.int32).reshape(2, 2, 2)  # the columns 02, 13, 46, 57
    bias = np.array([100, 200, 300], np.int32)
    expected = np.array([[120, 231, 364], [100, 202, 308]], np.int32)
    assert_same(run_te(dense_pack, data, panels, bias, units=3, is_symbolic=False), expected)
    assert_same(dense_pack_numpy(data, panels, bias, units=3), expected)
    whole = np.array([[20, 31, 64, 75], [0, 2, 8, 10]], np.int32)
    assert_same(run_te(dense_pack, data, panels, is_symbolic=False), whole)


def test_what_lies_behind_the_last_column_is_not_read() -> None:
    panels = np.full((1, 2, 3), np.nan, np.float32)
    panels[:, :, 0] = 1
    found = run_te(dense_pack, np.ones((1, 2), np.float32), panels, units=1, is_symbolic=False)
    assert_same(found, np.full((1, 1), 2, np.float32))


def test_an_empty_sum_is_zero() -> None:
    data = np.zeros((2, 0), np.float32)
    panels = np.zeros((1, 0, 4), np.float32)
    found = run_te(dense_pack, data, panels, is_symbolic=False)
    assert_same(found, np.zeros((2, 4), np.float32))


def test_ill_formed_panels_are_refused() -> None:
    with pytest.raises(UserError, match="dense_pack: the panels has 2 dimensions instead of 3"):
        dense_pack(*tensors((2, 3), (4, 3)))
    with pytest.raises(UserError, match="dense_pack: the data have rank 0"):
        dense_pack(*tensors((), (1, 4, 3)))
    with pytest.raises(UserError, match="the reduced extent of the panels is 4 instead of 3"):
        dense_pack(*tensors((2, 3), (1, 4, 3)))
    with pytest.raises(UserError, match="dense_pack: 9 columns cannot lie in 2 panels of 4"):
        dense_pack(*tensors((2, 3), (2, 3, 4)), units=9)
    with pytest.raises(UserError, match="dense_pack: 4 columns cannot lie in 2 panels of 4"):
        dense_pack(*tensors((2, 3), (2, 3, 4)), units=4)
    with pytest.raises(UserError, match="dense_pack: 0 columns cannot lie in 2 panels of 0"):
        dense_pack(*tensors((2, 3), (2, 3, 0)))
    with pytest.raises(UserError, match="the number of panels must be a constant"):
        dense_pack(*tensors((2, 3), (var("p"), 3, 4)))
    with pytest.raises(UserError, match="dense_pack: the bias' extent is 8 instead of 7"):
        dense_pack(*tensors((2, 3), (2, 3, 4), (8,)), units=7)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_panels_are_converted_before_they_are_multiplied(dtype) -> None:
    data = np.array([[3, 2.0**-20]], np.float32)
    panels = np.array([[[0.5], [1.0]]]).astype(to_numpy(as_dtype(dtype)))
    found = run_te(dense_pack, data, panels, is_symbolic=False)
    assert_same(found, np.array([[1.5 + 2.0**-20]], np.float32))
    assert_same(dense_pack_numpy(data, panels), found)
    for other in ("float64", "int32"):
        with pytest.raises(UserError, match="dense_pack cannot combine"):
            dense_pack(placeholder((1, 2), other), placeholder((1, 2, 1), dtype))
