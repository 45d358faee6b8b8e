"""Attention block by block: it is attention, whatever the block, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.transformer.blocked import blocked_attention
from refcomp.topi.transformer.scaled_dot_product import scaled_dot_product_attention_numpy
from tests.strategies.operands import assert_same, floats, run_te, tensors


@pytest.mark.parametrize("block", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("is_causal", [False, True])
def test_blocks_do_not_change_the_result(block, is_causal):
    query, key, value = (floats(seed, 1, 2, 5, 3) * np.float32(4) for seed in range(3))
    operands = (query, key[:, :1], value[:, :1])
    how = {"is_causal": is_causal, "softcap": 9.0}
    result = run_te(blocked_attention, *operands, block=block, is_symbolic=False, **how)
    assert_same(result, scaled_dot_product_attention_numpy(*operands, **how), 1e-5)


def test_later_blocks_may_have_much_greater_scores() -> None:
    query = np.ones((1, 1, 1, 1), np.float32)
    key = np.array([0, 1000, 0, -1000], np.float32).reshape(1, 1, 4, 1)
    value = np.array([1, 2, 3, 4], np.float32).reshape(1, 1, 4, 1)
    result = run_te(blocked_attention, query, key, value, block=1, is_symbolic=False)
    assert result.ravel().tolist() == [2]


def test_no_keys_give_0() -> None:
    query = np.ones((1, 1, 2, 1), np.float32)
    nothing = np.ones((1, 1, 0, 1), np.float32)
    result = run_te(blocked_attention, query, nothing, nothing, is_symbolic=False)
    assert result.ravel().tolist() == [0, 0]


def test_ill_formed_calls_are_refused() -> None:
    (data,) = tensors((1, 2, 3, 4))
    name = "blocked_attention"
    with pytest.raises(UserError, match=f"{name} cannot use the block 0 and the limit 0.0"):
        blocked_attention(data, data, data, block=0)
    with pytest.raises(UserError, match=f"{name} cannot use the block 64 and the limit -1.0"):
        blocked_attention(data, data, data, softcap=-1.0)
    (symbolic,) = tensors((1, 2, var("n"), 4))
    with pytest.raises(UserError, match=f"{name}: the number of keys must be a constant"):
        blocked_attention(data, symbolic, symbolic)
    (other,) = tensors((1, 2, 3, 5))
    with pytest.raises(UserError, match=f"{name}: the channels of the keys is 5 instead of 4"):
        blocked_attention(data, other, data)
    (whole,) = tensors((1, 2, 3, 4), dtype="int32")
    with pytest.raises(UserError, match=f"{name} takes float tensors"):
        blocked_attention(whole, whole, whole)
