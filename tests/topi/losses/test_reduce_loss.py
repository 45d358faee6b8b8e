"""The reduction of losses: none, sums and means, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.draws import Draws
from refcomp.topi.losses.reduce_loss import (
    REDUCTIONS,
    pair_of_floats,
    pair_of_probabilities,
    pointwise_loss,
    pointwise_meaning,
    reduced_meaning,
)
from tests.strategies.operands import assert_same, run_te, tensors


def difference(data, target, reduction="mean"):
    return pointwise_loss(data, target, lambda x, t: x - t, reduction, "difference")


@pytest.mark.parametrize(
    ("reduction", "expected"), [("none", [[1, 2], [4, 5]]), ("sum", 12), ("mean", 3)]
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_reductions(reduction, expected, dtype):
    data = np.array([[2, 3], [5, 6]], dtype)
    target = np.ones((2, 2), dtype)
    found = run_te(difference, data, target, is_symbolic=False, reduction=reduction)
    assert_same(found, np.array(expected, dtype))
    assert_same(pointwise_meaning(data, target, np.subtract, reduction), found)


def test_half_floats_are_accumulated_in_f32():
    data = np.float16([60000, 60000, -60000])
    found = run_te(difference, data, np.zeros_like(data), is_symbolic=False, reduction="sum")
    assert found == np.float16(60000)


def test_losses_without_elements():
    nothing = np.zeros((0, 2), np.float32)
    assert run_te(difference, nothing, nothing, is_symbolic=False, reduction="sum") == 0
    assert np.isnan(run_te(difference, nothing, nothing, is_symbolic=False))
    with np.errstate(invalid="ignore"):
        assert np.isnan(reduced_meaning(nothing, "mean"))


def test_ill_formed_calls_are_refused():
    with pytest.raises(UserError, match="difference cannot have the reduction 'max'"):
        difference(*tensors((2,), (2,)), reduction="max")
    with pytest.raises(UserError, match="difference takes float tensors, not i32"):
        difference(*tensors((2,), (2,), dtype="int32"))
    with pytest.raises(UserError, match="difference: the target has 1 dimensions instead of 2"):
        difference(*tensors((2, 3), (3,)))
    with pytest.raises(UserError, match="difference: extent 1 of the target is 1 instead of 3"):
        difference(*tensors((2, 3), (2, 1)))
    with pytest.raises(UserError, match="difference cannot combine f32 with f64"):
        difference(*tensors((2,)), *tensors((2,), dtype="float64"))


def test_samples_are_pairs_of_one_shape():
    for seed in range(50):
        for draw in (pair_of_floats, pair_of_probabilities):
            sample = draw(Draws(seed), margin=1.0)
            data, target = sample.operands
            assert data.shape == target.shape and data.dtype == target.dtype
            assert sample.attributes["reduction"] in REDUCTIONS
            assert sample.attributes["margin"] == 1.0
