"""Scaled dot-product attention over tensors that are divided into heads.

Reference: A. Vaswani et al., "Attention Is All You Need", NIPS 2017; ONNX Attention.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, is_same
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.normalization.moments import sum_dtype
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.transformer.weighted_values import (
    HeadedTensor,
    Scoring,
    attend,
    attend_numpy,
)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Tensor:
    """Return for each query the mean of the values, weighted by how well their keys match.

        scores = scale * q k', capped: softcap * tanh(scores / softcap), then masked
        y = softmax(scores) v

    A query without keys, or whose keys are all masked, gets 0. Floats of 16 bits are added up in
    f32. A NaN in a score makes its query NaN. A NaN or an infinity in a value makes its channel NaN
    for all queries of the head, also where it is masked: 0 times infinity is NaN.

    Args:
        query: floats [batch, heads, queries, channels]. Heads and channels are constant.
        key: [batch, key_heads, keys, channels], of the dtype of `query`. The number of its heads
            divides that of the queries; neighbouring heads of queries share one.
        value: [batch, key_heads, keys, out_channels], of the dtype of `query`.
        mask: bools, of which True keeps a key, or floats that are added to the scores. Its shape
            broadcasts to [batch, heads, queries, keys]. Left out, all keys count.
        is_causal: True if query i sees only the keys 0 to i.
        scale: the factor of products; left out, 1 / sqrt(channels).
        softcap: the greatest absolute score before the mask; 0 for no limit.

    Returns:
        A tensor [batch, heads, queries, out_channels] of the dtype of `query`.

    Raises:
        UserError: `query` does not hold floats, a rank, extent or dtype does not fit, or the limit
            is negative.

    Reference: PyTorch, torch.nn.functional.scaled_dot_product_attention; ONNX Attention, with the
    mask after the limit.

    Example::

        >>> Q, K = rc.placeholder((1, 1, 1, 1), name="Q"), rc.placeholder((1, 1, 2, 1), name="K")
        >>> Y = rc.topi.scaled_dot_product_attention(Q, K, K)
        >>> q, k = np.zeros((1, 1, 1, 1), "float32"), np.array([[[[2], [4]]]], "float32")
        >>> rc.oracle.evaluate([Y], {Q: q, K: k})[0].tolist()
        [[[[3.0]]]]
    """
    operator = "scaled_dot_product_attention"
    _check_floats(operator, query, key, value)
    _check_softcap(operator, softcap)
    result = attend(
        four_dimensional(operator, query, "query"),
        four_dimensional(operator, key, "key"),
        four_dimensional(operator, value, "value"),
        Scoring(operator, scale, softcap, is_causal, mask=mask),
        sum_dtype(query),
    )
    return rounded_to(result, query.dtype, operator)


def _check_floats(operator: str, query: Tensor, *others: Tensor | None) -> None:
    require_float(query, operator)
    require_one_dtype(operator, query, *others)


def _check_softcap(operator: str, softcap: float) -> None:
    if not softcap >= 0:
        raise UserError(
            f"{operator} cannot limit scores to {softcap}",
            remedy="give a positive limit, or 0 for none",
        )


def four_dimensional(operator: str, tensor: Tensor, name: str) -> HeadedTensor:
    require_rank(tensor, 4, operator, name)
    batch, heads, length, channels = extents(tensor)
    return HeadedTensor(
        batch,
        heads=require_constant(heads, f"{operator}: the heads of {name}"),
        length=length,
        channels=require_constant(channels, f"{operator}: the channels of {name}"),
        read=lambda *index: tensor[index],
    )


def rounded_to(result: Tensor, dtype: DType, name: str) -> Tensor:
    """Return `result` in another dtype."""
    if result.dtype == dtype:
        return result
    return compute(
        result.shape,
        lambda *index: result[index].astype(dtype),
        name=name,
        tag=INJECTIVE,
    )


def sample_heads(draws: Draws) -> list[Array]:
    """Return queries, keys and values, whose heads may be shared."""
    batch = draws.integer(0 if draws.integer(0, 9) == 0 else 1, 2)
    key_heads = draws.integer(1, 2)
    heads = key_heads * draws.integer(1, 2)
    queries = draws.extent(0) % 4
    keys = draws.extent(0) % 4
    channels = draws.integer(1, 3)
    dtype = draws.float_dtype()
    # Small products, so that no weight is lost in the sums of others.
    return [
        draws.uniform((batch, heads, queries, channels), -2, 2, dtype),
        draws.uniform((batch, key_heads, keys, channels), -2, 2, dtype),
        draws.array((batch, key_heads, keys, draws.integer(1, 3)), dtype),
    ]


def sample_scoring(draws: Draws) -> dict[str, object]:
    attributes: dict[str, object] = {"is_causal": draws.flag()}
    if draws.flag():
        attributes["scale"] = draws.choice((0.5, 1.0, -0.25))
    if draws.flag():
        attributes["softcap"] = draws.choice((0.5, 2.0))
    return attributes


def _sample_mask(draws: Draws, shape: tuple[int, ...], dtype: str) -> Array | None:
    kind = draws.integer(0, 2)
    if kind == 0:
        return None
    reduced = tuple(1 if draws.integer(0, 3) == 0 else extent for extent in shape)
    first = draws.integer(0, len(shape))
    if kind == 1:
        return draws.array(reduced[first:], "bool")
    return draws.uniform(reduced[first:], -2, 2, dtype)


def _sample_scaled_dot_product_attention(draws: Draws) -> Sample:
    query, key, value = sample_heads(draws)
    shape = (*query.shape[:3], key.shape[2])
    mask = _sample_mask(draws, shape, str(query.dtype))
    return Sample((query, key, value, mask), sample_scoring(draws))


@meaning_of(scaled_dot_product_attention, sample=_sample_scaled_dot_product_attention)
def scaled_dot_product_attention_numpy(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Array:
    result = attend_numpy(
        query,
        key,
        value,
        scale=scale,
        softcap=softcap,
        is_causal=is_causal,
        mask=mask,
    )
    return result.astype(query.dtype)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    *,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
) -> list[Tensor]:
    """Return the attention of queries to past and present keys, and all keys and values.

        scores = scale * q k', capped: softcap * tanh(scores / softcap), then masked
        y = softmax(scores) v

    A query whose keys are all masked gets 0. Floats of 16 bits are added up in f32. NaN propagates
    as in `scaled_dot_product_attention`.

    Args:
        query: floats [batch, heads, queries, channels], or [batch, queries, heads * channels].
        key: [batch, key_heads, keys, channels], or [batch, keys, key_heads * channels], of the
            dtype of `query`. The number of its heads divides that of the queries.
        value: [batch, key_heads, keys, out_channels], or [batch, keys, key_heads * out_channels].
        mask: bools, of which True keeps a key, or floats that are added to the scores. Its shape
            broadcasts to [batch, heads, queries, past + keys]. Left out, all keys count.
        past_key: [batch, key_heads, past, channels], the keys before the first; may be left out.
        past_value: [batch, key_heads, past, out_channels], if there are past keys.
        q_num_heads: the number of heads of queries; required for tensors of 3 dimensions.
        kv_num_heads: the number of heads of keys and values; required likewise.
        is_causal: True if query i sees only the keys 0 to past + i.
        scale: the factor of products; left out, 1 / sqrt(channels).
        softcap: the greatest absolute score before the mask; 0 for no limit.

    Returns:
        Three tensors of the dtype of `query`: y, of the rank of `query`, then all keys
        [batch, key_heads, past + keys, channels], and all values.

    Raises:
        UserError: `query` does not hold floats, a rank, extent or dtype does not fit, a number of
            heads is missing, only one of both pasts is given, or the limit is negative.

    Reference: ONNX Attention, with the mask after the limit.

    Example::

        >>> Q, K = rc.placeholder((1, 1, 1), name="Q"), rc.placeholder((1, 2, 1), name="K")
        >>> y, keys, values = rc.topi.attention(Q, K, K, q_num_heads=1, kv_num_heads=1)
        >>> q, k = np.zeros((1, 1, 1), "float32"), np.array([[[2], [4]]], "float32")
        >>> rc.oracle.evaluate([y], {Q: q, K: k})[0].tolist()
        [[[3.0]]]
    """
    _check_floats("attention", query, key, value, past_key, past_value)
    _check_softcap("attention", softcap)
    if (past_key is None) != (past_value is None):
        raise UserError(
            "attention takes past keys and past values together",
            remedy="give both past_key and past_value, or none",
        )
    queries = _headed(query, q_num_heads, "query")
    present_keys = _headed(key, kv_num_heads, "key")
    present_values = _headed(value, kv_num_heads, "value")
    past: Extent = 0 if past_key is None else extents(past_key)[2]
    keys = _prepend(past_key, present_keys, "past_key").packed(query.dtype, "keys")
    values = _prepend(past_value, present_values, "past_value").packed(
        query.dtype, "values"
    )
    scoring = Scoring("attention", scale, softcap, is_causal, past, mask)
    result = attend(
        queries,
        four_dimensional("attention", keys, "key"),
        four_dimensional("attention", values, "value"),
        scoring,
        sum_dtype(query),
    )
    if query.ndim == 3:
        result = join_heads(result, "attention")
    return [rounded_to(result, query.dtype, "attention"), keys, values]


def _headed(tensor: Tensor, heads: int | None, name: str) -> HeadedTensor:
    """Return a tensor of 3 or 4 dimensions, divided into heads."""
    if tensor.ndim == 4:
        return four_dimensional("attention", tensor, name)
    require_rank(tensor, 3, "attention", name)
    return divide_heads(tensor, heads, "attention", name)


def divide_heads(
    tensor: Tensor, heads: int | None, operator: str, name: str
) -> HeadedTensor:
    """Return a tensor [batch, length, heads * channels], divided into heads.

    Raises:
        UserError: the number of heads is missing, or does not divide the last extent.
    """
    batch, length, last = extents(tensor)
    whole = require_constant(last, f"{operator}: the channels of {name}")
    if heads is None or heads < 1 or whole % heads:
        raise UserError(
            f"{operator} cannot divide {whole} channels of {name} into {heads} heads",
            remedy="give a number of heads >= 1 that divides the channels",
            earlier=[tensor.declaration()],
        )
    channels = whole // heads

    def read(b: Expr, h: Expr, i: Expr, c: Expr) -> Expr:
        return tensor[b, i, h * channels + c]

    return HeadedTensor(batch, heads, length, channels, read)


def join_heads(result: Tensor, name: str) -> Tensor:
    """Return a tensor [batch, length, heads * channels] of one with an axis of heads."""
    batch, heads, length, channels = extents(result)
    size = require_constant(channels, f"{name}: the channels")
    whole = require_constant(heads, f"{name}: the heads") * size

    def element(b: Expr, i: Expr, c: Expr) -> Expr:
        return result[b, maths.floordiv(c, size), i, maths.floormod(c, size)]

    return compute((batch, length, whole), element, name=name, tag=INJECTIVE)


def _prepend(past: Tensor | None, present: HeadedTensor, name: str) -> HeadedTensor:
    """Return `present` after the positions of `past`."""
    if past is None:
        return present
    before = four_dimensional("attention", past, name)
    same = (before.heads, before.channels) == (present.heads, present.channels)
    if not same or not is_same(before.batch, present.batch):
        raise UserError(
            f"attention: {name} has other samples, heads or channels than the present ones",
            remedy="give a tensor [batch, key_heads, past, channels]",
            earlier=[past.declaration()],
        )

    def read(b: Expr, h: Expr, i: Expr, c: Expr) -> Expr:
        return maths.if_then_else(
            i < before.length,
            past[b, h, i, c],
            present.read(b, h, i - before.length, c),
        )

    length = before.length + present.length
    return HeadedTensor(present.batch, present.heads, length, present.channels, read)


def _sample_attention(draws: Draws) -> Sample:
    query, key, value = sample_heads(draws)
    batch, heads, queries, _ = query.shape
    _, key_heads, keys, _ = key.shape
    attributes = sample_scoring(draws)
    dtype = str(query.dtype)
    past: list[Array | None] = [None, None]
    count = 0
    if draws.flag():
        count = draws.integer(0, 2)
        shapes = [(batch, key_heads, count, array.shape[3]) for array in (key, value)]
        past = [draws.uniform(shape, -2, 2, dtype) for shape in shapes]
    mask = _sample_mask(draws, (batch, heads, queries, count + keys), dtype)
    operands = [query, key, value]
    if draws.flag():
        operands = [_packed_numpy(array) for array in operands]
        attributes["q_num_heads"] = heads
        attributes["kv_num_heads"] = key_heads
    return Sample((*operands, mask, *past), attributes)


def _packed_numpy(array: Array) -> Array:
    batch, heads, length, channels = array.shape
    return array.transpose(0, 2, 1, 3).reshape(batch, length, heads * channels)


def divided_numpy(array: Array, heads: int | None) -> Array:
    """Return an array [batch, heads, length, channels] of one without an axis of heads."""
    if array.ndim == 4 or heads is None:
        return array
    batch, length, whole = array.shape
    divided = array.reshape(batch, length, heads, whole // heads)
    return divided.transpose(0, 2, 1, 3)


@meaning_of(attention, pattern="opaque", sample=_sample_attention)
def attention_numpy(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    *,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
) -> list[Array]:
    keys = divided_numpy(key, kv_num_heads)
    values = divided_numpy(value, kv_num_heads)
    past = 0
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        keys = np.concatenate([past_key, keys], axis=2)
        values = np.concatenate([past_value, values], axis=2)
    result = attend_numpy(
        divided_numpy(query, q_num_heads),
        keys,
        values,
        scale=scale,
        softcap=softcap,
        is_causal=is_causal,
        past=past,
        mask=mask,
    )
    if query.ndim == 3:
        result = _packed_numpy(result)
    return [result.astype(query.dtype), keys.copy(), values.copy()]
