"""Dense layers and products in batches: known answers, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.contraction.fully_connected import (
    batch_matmul,
    batch_matmul_numpy,
    dense,
    dense_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def test_dense_adds_the_bias_in_the_wider_dtype() -> None:
    data = np.array([[100, 100]], np.int8)
    bias = np.array([1000], np.int32)
    expected = np.array([[21000]], np.int32)
    assert_same(run_te(dense, data, data, bias, out_dtype="int32"), expected)
    assert_same(dense_numpy(data, data, bias, out_dtype="int32"), expected)


def test_dense_of_a_vector_and_of_nothing() -> None:
    weight = np.ones((3, 2), np.float32)
    found = run_te(dense, np.ones(2, np.float32), weight, is_symbolic=False)
    assert_same(found, np.full(3, 2, np.float32))
    empty = np.zeros((2, 0), np.float32)
    found = run_te(dense, empty, np.zeros((3, 0), np.float32), np.ones(3, np.float32))
    assert_same(found, np.ones((2, 3), np.float32))


def test_nan_stays_in_its_row() -> None:
    data = np.array([[np.nan, 1], [2, 3]], np.float32)
    found = run_te(dense, data, np.ones((1, 2), np.float32))
    assert np.isnan(found[0, 0])
    assert found[1, 0] == 5


def test_batch_matmul_repeats_one_matrix() -> None:
    a = np.arange(8, dtype=np.int32).reshape(2, 2, 2)
    b = np.array([[[1, 10]]], np.int32)
    expected = np.array([[[10], [32]], [[54], [76]]], np.int32)
    assert_same(run_te(batch_matmul, a, b, is_symbolic=False), expected)
    assert_same(batch_matmul_numpy(a, b), expected)


def test_ill_formed_products_are_refused() -> None:
    with pytest.raises(UserError, match="dense: the weight has 3 dimensions instead of 2"):
        dense(*tensors((2, 3), (1, 4, 3)))
    with pytest.raises(UserError, match="dense: the data have rank 0"):
        dense(*tensors((), (4, 3)))
    with pytest.raises(UserError, match="dense: the reduced extent of b is 4 instead of 3"):
        dense(*tensors((2, 3), (5, 4)))
    with pytest.raises(UserError, match="dense: the bias' extent is 4 instead of 5"):
        dense(*tensors((2, 3), (5, 3), (4,)))
    with pytest.raises(UserError, match="dense: the bias has 2 dimensions instead of 1"):
        dense(*tensors((2, 3), (5, 3), (1, 5)))
    with pytest.raises(UserError, match="dense cannot combine i32 with i8"):
        dense(*tensors((2, 3), (5, 3), (5,), dtype="int8"), out_dtype="int32")
    with pytest.raises(UserError, match="batch_matmul: a has 2 dimensions instead of 3"):
        batch_matmul(*tensors((2, 3), (1, 5, 3)))
    with pytest.raises(UserError, match="batch_matmul: b has 2 dimensions instead of 3"):
        batch_matmul(*tensors((1, 2, 3), (5, 3)))
