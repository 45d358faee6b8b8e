"""Multi-head attention: values by hand, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.transformer.multi_head import (
    multi_head_attention,
    multi_head_attention_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def test_each_projection_has_its_weight_and_bias() -> None:
    query = np.zeros((1, 1, 1), np.float32)
    key = np.array([[[1], [2]]], np.float32)
    one = np.ones((1, 1), np.float32)
    bias = np.array([100], np.float32)
    # The mean of 3 * key + 100 is 104.5; the output doubles it and adds 100.
    operands = (query, key, key, one, one, 3 * one, 2 * one, None, None, bias, bias)
    expected = np.array([[[309]]], np.float32)
    result = run_te(multi_head_attention, *operands, num_heads=1, is_symbolic=False)
    assert_same(result, expected)
    assert_same(multi_head_attention_numpy(*operands, num_heads=1), expected)


def test_ill_formed_calls_are_refused() -> None:
    data, weight, other = tensors((1, 2, 3), (4, 3), (4, 2))
    (square,) = tensors((4, 4))
    good = [data, data, data, weight, weight, weight, square]
    name = "multi_head_attention"
    with pytest.raises(UserError, match=f"{name} cannot divide 4 channels of query into 3 heads"):
        multi_head_attention(*good, num_heads=3)
    with pytest.raises(UserError, match=f"{name}: key_weight is 2 instead of 3"):
        multi_head_attention(*good[:4], other, *good[5:], num_heads=1)
    with pytest.raises(UserError, match=f"{name}: output_weight is 3 instead of 4"):
        multi_head_attention(*good[:6], weight, num_heads=1)
    (bias,) = tensors((3,))
    with pytest.raises(UserError, match=f"{name}: value_bias is 3 instead of 4"):
        multi_head_attention(*good, None, None, bias, num_heads=1)
    with pytest.raises(UserError, match=f"{name}: query has 2 dimensions instead of 3"):
        multi_head_attention(weight, *good[1:], num_heads=1)
    (half,) = tensors((1, 2, 3), dtype="float16")
    with pytest.raises(UserError, match=f"{name} cannot combine f16 with f32"):
        multi_head_attention(data, half, *good[2:], num_heads=1)
    (whole,) = tensors((1, 2, 3), dtype="int32")
    with pytest.raises(UserError, match=f"{name} takes float tensors"):
        multi_head_attention(whole, *good[1:], num_heads=1)
