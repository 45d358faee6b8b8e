"""Signs in words, and their products: known answers, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.contraction.binary import (
    binarize_pack,
    binarize_pack_numpy,
    binary_dense,
    binary_dense_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def test_only_numbers_above_zero_are_set() -> None:
    data = np.zeros((2, 32), np.float32)
    data[0, :4] = [np.nan, np.inf, -np.inf, 1e-45]
    data[1, 31], data[1, 30] = 1, -0.0
    expected = np.array([[0b0101 << 28], [1]], np.uint32)
    assert_same(run_te(binarize_pack, data), expected)
    assert_same(binarize_pack_numpy(data), expected)
    found = run_te(binarize_pack, data.T.copy(), is_symbolic=False, axis=0)
    assert_same(found, expected.T)


def test_products_of_signs() -> None:
    random = np.random.default_rng(3)
    x, w = random.choice([-1, 1], (3, 64)), random.choice([-1, 1], (2, 64))
    packed = (binarize_pack_numpy(x), binarize_pack_numpy(w))
    expected = (x @ w.T).astype(np.int32)
    assert_same(run_te(binary_dense, *packed), expected)
    assert_same(binary_dense_numpy(*packed), expected)


def test_ill_formed_operands_are_refused() -> None:
    with pytest.raises(UserError, match="binarize_pack cannot pack 31 signs into words of 32"):
        binarize_pack(*tensors((2, 31)))
    with pytest.raises(UserError, match="the extent of the packed axis must be a constant"):
        binarize_pack(*tensors((var("n"),)))
    with pytest.raises(UserError, match="binarize_pack takes numbers with an axis, not bool"):
        binarize_pack(*tensors((32,), dtype="bool"))
    with pytest.raises(UserError, match="not f32 of 0 dimensions"):
        binarize_pack(*tensors(()))
    with pytest.raises(UserError, match="binarize_pack: axis 1 is out of range"):
        binarize_pack(*tensors((32,)), axis=1)
    words, weight = tensors((2, 3), (4, 2), dtype="uint32")
    with pytest.raises(UserError, match="binary_dense: the weight's second extent is 2 instead"):
        binary_dense(words, weight)
    with pytest.raises(UserError, match="binary_dense: the data is i32, not uint32"):
        binary_dense(*tensors((2, 3), (4, 3), dtype="int32"))
    with pytest.raises(UserError, match="binary_dense: the weight has 1 dimensions instead of 2"):
        binary_dense(words, *tensors((3,), dtype="uint32"))
