"""Attention: masks, limits, shared heads and past keys, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.transformer.scaled_dot_product import (
    attention,
    attention_numpy,
    scaled_dot_product_attention,
    scaled_dot_product_attention_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def row(*values: float) -> np.ndarray:
    """One sample, one head, one channel."""
    return np.array(values, np.float32).reshape(1, 1, -1, 1)


def attend(*operands, **how) -> list[float]:
    result = run_te(scaled_dot_product_attention, *operands, is_symbolic=False, **how)
    assert_same(result, scaled_dot_product_attention_numpy(*operands, **how), 1e-6)
    return result.ravel().tolist()


def test_without_preference_the_mean() -> None:
    assert attend(row(0), row(1, 5), row(2, 4)) == [3]


def test_causal_queries_see_no_later_keys() -> None:
    values = row(2, 4, 9)
    assert attend(row(0, 0, 0), row(1, 1, 1), values, is_causal=True) == [2, 3, 5]


def test_masks() -> None:
    query, keys, values = row(0), row(1, 1), row(2, 4)
    kept = np.array([[False, True]])
    assert attend(query, keys, values, kept) == [4]
    assert attend(query, keys, values, np.array([-np.inf, 0], np.float32)) == [4]
    three = np.array([0, np.log(3)], np.float32)
    assert attend(query, keys, values, three) == pytest.approx([3.5])


def test_queries_without_keys_get_0() -> None:
    nothing = np.array([[False, False]])
    assert attend(row(0), row(1, 1), row(2, 4), nothing) == [0]
    assert attend(row(0), row(), row()) == [0]


def test_limit_comes_before_the_mask() -> None:
    kept = np.array([[True, False]])
    assert attend(row(1), row(1, 99), row(2, 4), kept, softcap=1.0) == [2]
    weight = np.exp(np.tanh([1, 99]))
    mean = float((weight * [2, 4]).sum() / weight.sum())
    assert attend(row(1), row(1, 99), row(2, 4), softcap=1.0) == pytest.approx([mean])


def test_scale_replaces_the_root_of_the_channels() -> None:
    assert attend(row(9), row(9, 1), row(2, 4), scale=0.0) == [3]


def test_neighbouring_heads_share_keys() -> None:
    query = np.zeros((1, 4, 1, 1), np.float32)
    value = np.array([2, 6], np.float32).reshape(1, 2, 1, 1)
    assert attend(query, value, value) == [2, 2, 6, 6]


def test_past_keys_come_first() -> None:
    operands = (row(0), row(1), row(4), None, row(1), row(2))
    results = run_te(attention, *operands, is_causal=True, is_symbolic=False)
    meanings = attention_numpy(*operands, is_causal=True)
    for result, meaning, wanted in zip(
        results, meanings, (row(3), row(1, 1), row(2, 4)), strict=True
    ):
        assert_same(result, wanted)
        assert_same(meaning, wanted)


def test_heads_may_be_packed() -> None:
    query = np.zeros((1, 1, 2), np.float32)
    value = np.array([[[2, 10], [4, 30]]], np.float32)
    how = {"q_num_heads": 2, "kv_num_heads": 2}
    y, keys, _ = run_te(attention, query, value, value, is_symbolic=False, **how)
    assert_same(y, np.array([[[3, 20]]], np.float32))
    assert keys.tolist() == [[[[2], [4]], [[10], [30]]]]


SMALL = (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("shapes", "how", "message"),
    [
        ([(1, 1)] * 3, {}, "attention: query has 2 dimensions instead of 3"),
        ([(1, 1, 3)] * 3, {}, "attention cannot divide 3 channels of query into None heads"),
        (
            [(1, 1, 3)] * 3,
            {"q_num_heads": 2},
            "attention cannot divide 3 channels of query into 2 heads",
        ),
        ([SMALL] * 3, {"softcap": -1.0}, "attention cannot limit scores to -1.0"),
        ([SMALL] * 3, {"past_key": SMALL}, "attention takes past keys and past values together"),
        (
            [SMALL] * 3,
            {"past_key": (1, 2, 1, 1), "past_value": SMALL},
            "attention: past_key has other samples, heads or channels",
        ),
    ],
)
def test_ill_formed_calls_are_refused(shapes, how, message):
    given = {name: tensors(v)[0] if isinstance(v, tuple) else v for name, v in how.items()}
    with pytest.raises(UserError, match=message):
        attention(*tensors(*shapes), **given)


def test_other_dtypes_are_refused() -> None:
    whole = tensors(SMALL, dtype="int32")[0]
    (data,) = tensors(SMALL)
    with pytest.raises(UserError, match="scaled_dot_product_attention takes float tensors"):
        scaled_dot_product_attention(whole, whole, whole)
    with pytest.raises(UserError, match="cannot combine f32 with i32"):
        scaled_dot_product_attention(data, data, whole)
    with pytest.raises(UserError, match="key has 2 dimensions instead of 4"):
        scaled_dot_product_attention(data, tensors((1, 1))[0], data)
