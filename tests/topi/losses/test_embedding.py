"""Losses of pairs of vectors: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.losses.embedding import cosine_embedding_loss, cosine_embedding_loss_numpy
from tests.strategies.operands import assert_same, run_te, tensors


def both(a, b, target, **attributes):
    """Return the result of the compute, which must be its meaning."""
    operands = (np.float32(a), np.float32(b), np.int32(target))
    found = run_te(cosine_embedding_loss, *operands, is_symbolic=False, **attributes)
    assert_same(cosine_embedding_loss_numpy(*operands, **attributes), found, 1e-6)
    return found


@pytest.mark.parametrize(
    ("a", "b", "target", "margin", "expected"),
    [
        ([3, 4], [4, 3], 1, 0.0, 0.04),
        ([3, 4], [4, 3], -1, 0.0, 0.96),
        ([3, 4], [4, 3], 0, 0.5, 0.46),
        ([1, 0], [-2, 0], -1, 0.0, 0),
        ([0, 0], [1, 1], 1, 0.0, 1),
        ([np.inf, 0], [1, 1], 1, 0.0, np.nan),
        ([np.nan, 0], [1, 1], -1, 0.0, np.nan),
    ],
)
def test_special_pairs(a, b, target, margin, expected):
    found = both([a], [b], [target], margin=margin, reduction="none")
    np.testing.assert_allclose(found, np.float32([expected]), rtol=1e-5, atol=1e-7)


def test_sums_and_means():
    rows = ([[3, 4], [1, 0]], [[4, 3], [2, 0]], [1, -1])
    assert both(*rows, reduction="sum") == pytest.approx(1.04)
    assert both(*rows) == pytest.approx(0.52)
    assert np.isnan(both(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0)))


def test_ill_formed_calls_are_refused():
    (a, b) = tensors((2, 3), (2, 3))
    (target,) = tensors((2,), dtype="int32")
    name = "cosine_embedding_loss"
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        cosine_embedding_loss(*tensors((2, 3), (2, 3), dtype="int32"), target)
    with pytest.raises(UserError, match=f"{name}: the first operand has 1 dimensions"):
        cosine_embedding_loss(*tensors((3,)), b, target)
    with pytest.raises(UserError, match=f"{name}: the second operand has 1 dimensions"):
        cosine_embedding_loss(a, *tensors((3,)), target)
    with pytest.raises(UserError, match=f"{name} cannot combine f32 with f64"):
        cosine_embedding_loss(a, *tensors((2, 3), dtype="float64"), target)
    with pytest.raises(UserError, match=f"{name}: extent 1 of the second operand is 4"):
        cosine_embedding_loss(a, *tensors((2, 4)), target)
    with pytest.raises(UserError, match=f"{name} takes integer tensors, not f32"):
        cosine_embedding_loss(a, b, *tensors((2,)))
    with pytest.raises(UserError, match=f"{name}: the target has 2 dimensions instead of 1"):
        cosine_embedding_loss(a, b, *tensors((2, 1), dtype="int32"))
    with pytest.raises(UserError, match=f"{name}: the number of targets is 3 instead of 2"):
        cosine_embedding_loss(a, b, *tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name} cannot have the reduction 'all'"):
        cosine_embedding_loss(a, b, target, reduction="all")
