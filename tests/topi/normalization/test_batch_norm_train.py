"""Batch normalization in training: special values, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.normalization.batch_norm_train import (
    batch_norm_train,
    batch_norm_train_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def test_statistics_by_hand() -> None:
    data = np.array([[[1, 3]], [[5, 7]]], np.float32)
    one = np.ones(1, np.float32)
    operands = (data, 2 * one, one, 0 * one, one)
    how = {"epsilon": 4.0, "momentum": 0.25}
    expected = [
        (data - 4) / 3 * 2 + 1,
        np.array([3], np.float32),
        np.array([4], np.float32),
        np.array([4], np.float32),
        np.array([5], np.float32),
    ]
    results = run_te(batch_norm_train, *operands, is_symbolic=False, **how)
    meanings = batch_norm_train_numpy(*operands, **how)
    for result, meaning, wanted in zip(results, meanings, expected, strict=True):
        assert_same(result, wanted, 1e-6)
        assert_same(meaning, wanted, 1e-6)


@pytest.mark.filterwarnings("error")
def test_statistics_of_nothing_are_nan() -> None:
    one = np.ones(2, np.float32)
    y, running, *_ = batch_norm_train_numpy(np.zeros((0, 2), np.float32), one, one, one, one)
    assert y.shape == (0, 2)
    assert np.isnan(running).all()


def test_ill_formed_calls_are_refused() -> None:
    data, good, short = tensors((2, 3), (3,), (2,))
    parameters = [good] * 4
    with pytest.raises(UserError, match="batch_norm_train: variance is 2 instead of 3"):
        batch_norm_train(data, good, good, good, short)
    with pytest.raises(UserError, match="batch_norm_train: gamma has 2 dimensions instead of 1"):
        batch_norm_train(data, data, good, good, good)
    with pytest.raises(UserError, match="batch_norm_train: axis 2 is out of range"):
        batch_norm_train(data, *parameters, axis=2)
    with pytest.raises(UserError, match="batch_norm_train takes data of two or more dimensions"):
        batch_norm_train(good, *parameters, axis=0)
    half = tensors((3,), dtype="float16")[0]
    with pytest.raises(UserError, match="batch_norm_train cannot combine f32 with f16"):
        batch_norm_train(data, half, *parameters[1:])
    whole = tensors((2, 3), dtype="int32")[0]
    with pytest.raises(UserError, match="batch_norm_train takes float tensors"):
        batch_norm_train(whole, *parameters)
