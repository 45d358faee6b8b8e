"""Attention block by block of keys, with a softmax that is corrected as greater scores appear.

Of each query, only the greatest score so far, the sum of powers and the weighted sum are kept:

    m' = maximum(m, scores)
    l' = l * exp(m - m') + sum of exp(scores - m')
    a' = a * exp(m - m') + sum of exp(scores - m') * values

So the scores of all keys never exist together.

Reference: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao et
al., "FlashAttention", NeurIPS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
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
)
from refcomp.topi.tags import REDUCTION, SHARED
from refcomp.topi.transformer.scaled_dot_product import (
    four_dimensional,
    rounded_to,
    sample_heads,
    sample_scoring,
)
from refcomp.topi.transformer.weighted_values import (
    HeadedTensor,
    Scoring,
    attend_numpy,
    check_heads,
    score_keys,
)


@dataclass(frozen=True, slots=True)
class _RunningSoftmax:
    """The state of all queries after some blocks of keys.

    Attributes:
        greatest: the greatest score so far.
        total: the sum of powers.
        weighted: the sum of values, weighted by powers.
    """

    greatest: Tensor
    total: Tensor
    weighted: Tensor


def blocked_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    block: int = 64,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Tensor:
    """Return for each query the mean of the values, weighted by their keys, block by block.

        scores = scale * q k', capped: softcap * tanh(scores / softcap), then masked
        y = softmax(scores) v

    The result is that of `scaled_dot_product_attention`, but the scores of only one block of keys
    exist at a time. The blocks are unrolled. A query without keys gets 0. NaN and infinities
    propagate as there.

    Args:
        query: floats [batch, heads, queries, channels]. Heads and channels are constant.
        key: [batch, key_heads, keys, channels], of the dtype of `query`. The number of keys is
            constant. The number of heads divides that of the queries.
        value: [batch, key_heads, keys, out_channels], of the dtype of `query`.
        block: the number of keys of a block.
        is_causal: True if query i sees only the keys 0 to i.
        scale: the factor of products; left out, 1 / sqrt(channels).
        softcap: the greatest absolute score before the mask; 0 for no limit.

    Returns:
        A tensor [batch, heads, queries, out_channels] of the dtype of `query`.

    Raises:
        UserError: `query` does not hold floats, a rank, extent or dtype does not fit, the number of
            keys is symbolic, or the block or the limit is out of range.

    Reference: T. Dao et al., "FlashAttention", 2022.

    Example::

        >>> Q, K = rc.placeholder((1, 1, 1, 1), name="Q"), rc.placeholder((1, 1, 2, 1), name="K")
        >>> Y = rc.topi.blocked_attention(Q, K, K, block=1)
        >>> q, k = np.zeros((1, 1, 1, 1), "float32"), np.array([[[[2], [4]]]], "float32")
        >>> rc.oracle.evaluate([Y], {Q: q, K: k})[0].tolist()
        [[[[3.0]]]]
    """
    operator = "blocked_attention"
    require_float(query, operator)
    require_one_dtype(operator, query, key, value)
    if block < 1 or not softcap >= 0:
        raise UserError(
            f"{operator} cannot use the block {block} and the limit {softcap}",
            remedy="give a block of at least one key, and a limit of at least 0",
        )
    queries = four_dimensional(operator, query, "query")
    keys = four_dimensional(operator, key, "key")
    values = four_dimensional(operator, value, "value")
    check_heads(queries, keys, values, operator)
    count = require_constant(keys.length, f"{operator}: the number of keys")
    wide = sum_dtype(query)
    state: _RunningSoftmax | None = None
    for first in range(0, count, block):
        size = min(block, count - first)
        # Key j of the block is key first + j.
        scoring = Scoring(operator, scale, softcap, is_causal, past=-first)
        logits = score_keys(queries, _part(keys, first, size), scoring, wide)
        state = _advance(state, logits, _part(values, first, size), wide)
    shape = (queries.batch, queries.heads, queries.length, values.channels)
    zero = const(0, wide)

    def mean(*index: Expr) -> Expr:
        if state is None:
            return zero
        whole = state.total[index[:3]]
        divisor = maths.select(whole == zero, const(1, wide), whole)
        return state.weighted[index] / divisor

    result = compute(shape, mean, name=operator, tag=INJECTIVE)
    return rounded_to(result, query.dtype, operator)


def _part(whole: HeadedTensor, first: int, size: int) -> HeadedTensor:
    """Return `size` positions, from `first` on."""

    def read(b: Expr, h: Expr, i: Expr, c: Expr) -> Expr:
        return whole.read(b, h, i + first, c)

    return HeadedTensor(whole.batch, whole.heads, size, whole.channels, read)


def _advance(
    state: _RunningSoftmax | None, logits: Tensor, values: HeadedTensor, wide: DType
) -> _RunningSoftmax:
    """Return the state after the block with the scores `logits`."""
    batch, heads, length, keys = extents(logits)
    rows = (batch, heads, length)
    nothing = maths.min_value(wide)
    zero = const(0, wide)
    k = reduce_axis(keys, "k")
    found = compute(
        rows,
        lambda *row: reducer.max(logits[(*row, k.var)], axis=k),
        name="found",
        tag=REDUCTION,
    )

    def greater(*row: Expr) -> Expr:
        if state is None:
            return found[row]
        return maths.maximum(state.greatest[row], found[row])

    greatest = compute(rows, greater, name="greatest", tag=SHARED)

    def shifted(score: Expr, row: tuple[Expr, ...]) -> Expr:
        top = greatest[row]
        # Without a key that counts: not infinity - infinity.
        return maths.exp(score - maths.select(top == nothing, zero, top))

    powers = compute(
        logits.shape,
        lambda *index: shifted(logits[index], index[:3]),
        name="powers",
        tag=SHARED,
    )
    sums, products = _add_up(powers, values, wide)
    if state is None:
        return _RunningSoftmax(greatest, sums, products)
    before = state
    correction = compute(
        rows,
        lambda *row: shifted(before.greatest[row], row),
        name="correction",
        tag=SHARED,
    )
    total = compute(
        rows,
        lambda *row: before.total[row] * correction[row] + sums[row],
        name="total",
        tag=SHARED,
    )

    def corrected(*index: Expr) -> Expr:
        return before.weighted[index] * correction[index[:3]] + products[index]

    weighted = compute((*rows, values.channels), corrected, name="weighted", tag=SHARED)
    return _RunningSoftmax(greatest, total, weighted)


def _add_up(powers: Tensor, values: HeadedTensor, wide: DType) -> tuple[Tensor, Tensor]:
    """Return the sums of powers, and of values that are weighted by them."""
    batch, heads, length, keys = extents(powers)
    rows = (batch, heads, length)
    group = require_constant(heads, "the heads") // values.heads
    j = reduce_axis(keys, "j")
    sums = compute(
        rows,
        lambda *row: reducer.sum(powers[(*row, j.var)], axis=j),
        name="sums",
        tag=REDUCTION,
    )
    r = reduce_axis(keys, "r")

    def product(b: Expr, h: Expr, i: Expr, c: Expr) -> Expr:
        factor = values.read(b, maths.floordiv(h, group), r.var, c).astype(wide)
        return reducer.sum(powers[b, h, i, r.var] * factor, axis=r)

    shape = (*rows, values.channels)
    products = compute(shape, product, name="products", tag=REDUCTION)
    return sums, products


def _sample_blocked_attention(draws: Draws) -> Sample:
    attributes = {**sample_scoring(draws), "block": draws.integer(1, 3)}
    return Sample(tuple(sample_heads(draws)), attributes)


@meaning_of(blocked_attention, sample=_sample_blocked_attention)
def blocked_attention_numpy(
    query: Array,
    key: Array,
    value: Array,
    *,
    block: int = 64,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Array:
    result = attend_numpy(
        query, key, value, scale=scale, softcap=softcap, is_causal=is_causal
    )
    return result.astype(query.dtype)
