"""Layer and RMS normalization: special values, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.normalization.layer_norm import (
    layer_norm,
    layer_norm_numpy,
    rms_norm,
    rms_norm_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def test_layer_norm_by_hand() -> None:
    data = np.array([[1, 3], [5, -5]], np.float32)
    gamma = np.array([1, 2], np.float32)
    beta = np.array([0, 10], np.float32)
    expected = np.array([[-1, 12], [1, 8]], np.float32)
    assert_same(run_te(layer_norm, data, gamma, beta, epsilon=0.0), expected)
    assert_same(layer_norm_numpy(data, gamma, beta, epsilon=0.0), expected)


def test_layer_norm_over_all_axes_has_one_mean() -> None:
    data = np.array([[1, 3], [5, 7]], np.float32)
    gamma = np.ones((2, 2), np.float32)
    expected = (data - 4) / np.sqrt(np.float32(5))
    result = run_te(layer_norm, data, gamma, axis=0, epsilon=0.0, is_symbolic=False)
    assert_same(result, expected, 1e-6)


def test_rms_norm_by_hand() -> None:
    data = np.array([[1, 7]], np.float32)
    gamma = np.array([10, 5], np.float32)
    expected = np.array([[2, 7]], np.float32)
    assert_same(run_te(rms_norm, data, gamma, epsilon=0.0), expected)
    assert_same(rms_norm_numpy(data, gamma, epsilon=0.0), expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([np.nan, 1], [np.nan, np.nan]),
        ([np.inf, 1], [np.nan, 0]),
        ([0, 0], [0, 0]),
        ([], []),
    ],
)
def test_rms_norm_of_nan_infinities_and_nothing(values, expected):
    data = np.array([values], np.float32)
    gamma = np.ones(len(values), np.float32)
    wanted = np.array([expected], np.float32)
    assert_same(run_te(rms_norm, data, gamma), wanted)
    with np.errstate(invalid="ignore"):
        assert_same(rms_norm_numpy(data, gamma), wanted)


def test_sums_of_f16_do_not_overflow() -> None:
    data = np.full((1, 2), 60000, np.float16)
    gamma = np.ones(2, np.float16)
    assert_same(run_te(rms_norm, data, gamma), np.ones((1, 2), np.float16))


def test_ill_formed_calls_are_refused() -> None:
    data, gamma, short = tensors((2, 3), (3,), (2,))
    with pytest.raises(UserError, match="layer_norm: axis 2 is out of range for 2 dimensions"):
        layer_norm(data, gamma, axis=2)
    with pytest.raises(UserError, match="layer_norm: gamma is 2 instead of 3"):
        layer_norm(data, short)
    with pytest.raises(UserError, match="layer_norm: beta is 2 instead of 3"):
        layer_norm(data, gamma, short)
    with pytest.raises(UserError, match="rms_norm: gamma has 1 dimensions instead of 2"):
        rms_norm(data, gamma, axis=0)
    (wide,) = tensors((3,), dtype="float64")
    with pytest.raises(UserError, match="rms_norm cannot combine f32 with f64"):
        rms_norm(data, wide)
    (whole,) = tensors((2, 3), dtype="int32")
    with pytest.raises(UserError, match="layer_norm takes float tensors"):
        layer_norm(whole, gamma)
