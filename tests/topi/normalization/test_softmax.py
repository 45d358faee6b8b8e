"""Softmax: te against its numpy meaning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.topi.normalization.softmax import softmax, softmax_numpy
from tests.strategies.operands import assert_same, batches, extents, floats, run_te, seeds, tensors


@pytest.mark.search
@given(batches, st.lists(extents, min_size=1, max_size=2), st.data(), seeds)
def test_softmax_is_its_meaning(n, rest, data, seed):
    axis = data.draw(st.integers(-len(rest), -1))
    array = floats(seed, n, *rest) * np.float32(5)
    assert_same(run_te(softmax, array, axis=axis), softmax_numpy(array, axis=axis), 1e-6)


def test_large_values_do_not_overflow() -> None:
    data = np.array([[1000, 1000, -1000]], np.float32)
    expected = np.array([[0.5, 0.5, 0]], np.float32)
    assert_same(run_te(softmax, data), expected)
    assert_same(softmax_numpy(data), expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([np.nan, 1, 2], [np.nan] * 3),
        ([np.inf, 1, 2], [np.nan] * 3),
        ([-np.inf, 1, 1], [0, 0.5, 0.5]),
        ([-np.inf, -np.inf], [np.nan] * 2),
        ([], []),
    ],
)
def test_softmax_of_nan_infinities_and_nothing(values, expected) -> None:
    data = np.array([values], np.float32)
    wanted = np.array([expected], np.float32)
    assert_same(run_te(softmax, data), wanted)
    assert_same(softmax_numpy(data), wanted)


def test_ill_formed_calls_are_refused() -> None:
    with pytest.raises(UserError, match="axis 2 is out of range for 2 dimensions"):
        softmax(*tensors((2, 3)), axis=2)
    with pytest.raises(UserError, match="softmax takes a float tensor"):
        softmax(*tensors((2, 3), dtype="int32"))
