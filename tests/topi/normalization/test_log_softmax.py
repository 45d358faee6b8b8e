"""The family of softmax: special values, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.normalization.log_softmax import (
    hardmax,
    hardmax_numpy,
    log_softmax,
    log_softmax_numpy,
    softmin,
    softmin_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

HALF = np.log(0.5)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1000, 1000], [HALF, HALF]),
        ([-np.inf, 1], [-np.inf, 0]),
        ([np.nan, 1], [np.nan] * 2),
        ([np.inf, 1], [np.nan] * 2),
        ([], []),
    ],
)
def test_log_softmax(values, expected):
    data = np.array([values], np.float32)
    wanted = np.array([expected], np.float32)
    assert_same(run_te(log_softmax, data), wanted, 1e-6)
    assert_same(log_softmax_numpy(data), wanted, 1e-6)


def test_softmin_prefers_small_values() -> None:
    data = np.array([[1000, 1000, np.inf]], np.float32)
    expected = np.array([[0.5, 0.5, 0]], np.float32)
    assert_same(run_te(softmin, data), expected)
    assert_same(softmin_numpy(data), expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 7, 7], [0, 1, 0]),
        ([np.inf, np.nan, 1], [0, 1, 0]),
        ([-np.inf, -np.inf], [1, 0]),
        ([-0.0, 0.0], [1, 0]),
        ([], []),
    ],
)
def test_hardmax_is_1_at_the_first_maximum(values, expected):
    data = np.array([values], np.float32)
    wanted = np.array([expected], np.float32)
    assert_same(run_te(hardmax, data), wanted)
    assert_same(hardmax_numpy(data), wanted)


@pytest.mark.parametrize("operator", [log_softmax, softmin, hardmax])
def test_an_axis_that_does_not_exist_is_refused(operator):
    message = f"{operator.__name__}: axis 2 is out of range for 2 dimensions"
    with pytest.raises(UserError, match=message):
        operator(tensors((2, 3))[0], axis=2)


def test_other_dtypes_are_refused() -> None:
    whole = tensors((2, 3), dtype="int32")[0]
    for operator in (log_softmax, softmin):
        with pytest.raises(UserError, match=f"{operator.__name__} takes float tensors"):
            operator(whole)
    flags = tensors((2, 3), dtype="bool")[0]
    with pytest.raises(UserError, match="hardmax takes numbers, not bool"):
        hardmax(flags)
    with pytest.raises(UserError, match="hardmax is applied to a int, not to a tensor"):
        hardmax(1)
