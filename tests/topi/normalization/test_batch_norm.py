"""Batch normalization: te against its numpy meaning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.topi.normalization.batch_norm import batch_norm, batch_norm_numpy
from tests.strategies.operands import assert_same, batches, extents, floats, run_te, seeds, tensors


@pytest.mark.search
@given(batches, extents, st.lists(extents, max_size=2), st.floats(1e-6, 1e-2), seeds)
def test_batch_norm_is_its_meaning(n, channels, rest, epsilon, seed):
    data = floats(seed, n, channels, *rest)
    gamma, beta, mean = (floats(seed + k, channels) for k in (1, 2, 3))
    variance = np.abs(floats(seed + 4, channels)) + np.float32(0.1)
    operands = (data, gamma, beta, mean, variance)
    # Five roundings of values up to about 50, in f32.
    assert_same(
        run_te(batch_norm, *operands, epsilon=epsilon),
        batch_norm_numpy(*operands, epsilon=epsilon),
        tolerance=2e-4,
    )


def test_channels_may_be_last() -> None:
    data, channel = floats(0, 2, 3, 4), np.array([1, 2, 3, 4], np.float32)
    result = batch_norm_numpy(data, channel, channel, channel, channel, epsilon=0.0, axis=2)
    expected = (data - channel) / np.sqrt(channel) * channel + channel
    assert_same(result, expected.astype(np.float32), tolerance=1e-6)
    te = run_te(batch_norm, data, channel, channel, channel, channel, epsilon=0.0, axis=2)
    assert_same(te, result, tolerance=1e-5)


def test_ill_formed_normalizations_are_refused() -> None:
    data, four, three = tensors((2, 4, 5), (4,), (3,))
    with pytest.raises(UserError, match="mean is 3 instead of 4"):
        batch_norm(data, four, four, three, four)
    with pytest.raises(UserError, match="axis 3 is out of range"):
        batch_norm(data, four, four, four, four, axis=3)
    with pytest.raises(UserError, match="batch_norm takes float tensors, not i32"):
        batch_norm(*tensors((2, 4), (4,), (4,), (4,), (4,), dtype="int32"))
