"""The core of attention: what it refuses, and sums that would overflow in f16."""

import numpy as np
import pytest

from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.topi.transformer.scaled_dot_product import scaled_dot_product_attention
from refcomp.topi.transformer.weighted_values import (
    HeadedTensor,
    Scoring,
    attend,
    attend_numpy,
)
from tests.strategies.operands import run_te, tensors


def headed(batch: int, heads: int, length: int, channels: int) -> HeadedTensor:
    (tensor,) = tensors((batch, heads, length, channels))
    return HeadedTensor(batch, heads, length, channels, lambda *index: tensor[index])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ((2, 3, 5, 8), (2, 3, 5, 8), "op cannot share 3 heads of keys and 3 of values among 4"),
        ((2, 4, 5, 8), (2, 2, 5, 8), "op cannot share 4 heads of keys and 2 of values among 4"),
        ((2, 0, 5, 8), (2, 0, 5, 8), "op cannot share 0 heads"),
        ((1, 4, 5, 8), (2, 4, 5, 8), "op: the batch of the keys is 1 instead of 2"),
        ((2, 4, 5, 8), (3, 4, 5, 8), "op: the batch of the values is 3 instead of 2"),
        ((2, 4, 5, 7), (2, 4, 5, 8), "op: the channels of the keys is 7 instead of 8"),
        ((2, 4, 5, 8), (2, 4, 6, 8), "op: the length of the values is 6 instead of 5"),
    ],
)
def test_operands_that_do_not_belong_together_are_refused(key, value, message):
    with pytest.raises(UserError, match=message):
        attend(headed(2, 4, 3, 8), headed(*key), headed(*value), Scoring("op"), F32)


def test_masks_that_do_not_broadcast_are_refused() -> None:
    operands = (headed(2, 4, 3, 8), headed(2, 4, 5, 8), headed(2, 4, 5, 8))
    (whole,) = tensors((3, 5), dtype="int32")
    with pytest.raises(UserError, match="op takes a mask of bools or floats, not i32"):
        attend(*operands, Scoring("op", mask=whole), F32)
    (deep,) = tensors((1, 2, 4, 3, 5), dtype="bool")
    with pytest.raises(UserError, match="op cannot broadcast the mask to"):
        attend(*operands, Scoring("op", mask=deep), F32)
    (wide,) = tensors((3, 4), dtype="bool")
    with pytest.raises(UserError, match="op: an extent of the second operand is 4 instead of 5"):
        attend(*operands, Scoring("op", mask=wide), F32)


def test_large_scores_do_not_overflow() -> None:
    query = np.full((1, 1, 1, 2), 200, np.float16)
    key = np.array([[[[200, 200], [-200, -200]]]], np.float16)
    value = np.array([[[[1], [2]]]], np.float16)
    for result in (
        run_te(scaled_dot_product_attention, query, key, value, is_symbolic=False),
        attend_numpy(query, key, value),
    ):
        assert result.tolist() == [[[[1]]]]
