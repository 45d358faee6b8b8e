"""The core of attention: means of values, weighted by the softmax of scaled products with keys.

    weights = softmax(mask(cap(scale * q k')))
    y = weights v

A query for which all keys are masked gets 0. Floats of 16 bits are added up in f32.

Reference: A. Vaswani et al., "Attention Is All You Need", NIPS 2017, section 3.2; ONNX Attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import (
    Extent,
    broadcast_extents,
    extents,
    is_same,
    read_broadcast,
    require_tensor,
)
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.shapes import Array, widen
from refcomp.topi.tags import REDUCTION, SHARED

# Reads an element: sample, head, position, channel.
ReadHead = Callable[[Expr, Expr, Expr, Expr], Expr]


@dataclass(frozen=True, slots=True)
class HeadedTensor:
    """Queries, keys or values, divided into heads.

    Attributes:
        batch: the number of samples.
        heads: the number of heads.
        length: the number of positions.
        channels: the number of channels of a head.
        read: reads an element by sample, head, position and channel.
    """

    batch: Extent
    heads: int
    length: Extent
    channels: int
    read: ReadHead

    def packed(self, dtype: DType, name: str) -> Tensor:
        """Return the elements as a tensor [batch, heads, length, channels]."""
        shape = (self.batch, self.heads, self.length, self.channels)
        return compute(
            shape,
            lambda *index: self.read(*index).astype(dtype),
            name=name,
            tag=INJECTIVE,
        )


@dataclass(frozen=True, slots=True)
class Scoring:
    """The rules by which products of queries and keys become scores.

    Attributes:
        operator: the name of the operator, for messages.
        scale: the factor of products; None for 1 / sqrt(channels).
        softcap: the greatest absolute score before the mask; 0 for no limit.
        is_causal: True if a query sees only keys up to its own position.
        past: the number of keys before the first query's own.
        mask: bools, of which True keeps a key, or floats that are added to the scores.
    """

    operator: str
    scale: float | None = None
    softcap: float = 0.0
    is_causal: bool = False
    past: Extent = 0
    mask: Tensor | None = None


def attend(
    query: HeadedTensor,
    key: HeadedTensor,
    value: HeadedTensor,
    scoring: Scoring,
    wide: DType,
) -> Tensor:
    """Return the weighted means [batch, heads, queries, channels] in the dtype `wide`."""
    check_heads(query, key, value, scoring.operator)
    logits = score_keys(query, key, scoring, wide)
    rows = (query.batch, query.heads, query.length)
    group = query.heads // key.heads
    keys = key.length
    r = reduce_axis(keys, "r")
    greatest = compute(
        rows,
        lambda b, h, i: reducer.max(logits[b, h, i, r.var], axis=r),
        name="greatest",
        tag=REDUCTION,
    )
    nothing = maths.min_value(wide)  # minus infinity, the score of a masked key
    zero = const(0, wide)

    def power(b: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        top = greatest[b, h, i]
        # Without a key that counts: not infinity - infinity.
        shift = maths.select(top == nothing, zero, top)
        return maths.exp(logits[b, h, i, j] - shift)

    powers = compute((*rows, keys), power, name="powers", tag=SHARED)
    s = reduce_axis(keys, "s")
    total = compute(
        rows,
        lambda b, h, i: reducer.sum(powers[b, h, i, s.var], axis=s),
        name="total",
        tag=REDUCTION,
    )
    j = reduce_axis(keys, "j")

    def weighted(b: Expr, h: Expr, i: Expr, c: Expr) -> Expr:
        factor = value.read(b, maths.floordiv(h, group), j.var, c).astype(wide)
        return reducer.sum(powers[b, h, i, j.var] * factor, axis=j)

    shape = (*rows, value.channels)
    sums = compute(shape, weighted, name="weighted", tag=REDUCTION)

    def mean(b: Expr, h: Expr, i: Expr, c: Expr) -> Expr:
        whole = total[b, h, i]
        # Without a key that counts, the sum is 0; 0 / 0 would also be a NaN of the gradient.
        return sums[b, h, i, c] / maths.select(whole == zero, const(1, wide), whole)

    return compute(shape, mean, name=scoring.operator, tag=INJECTIVE)


def check_heads(
    query: HeadedTensor, key: HeadedTensor, value: HeadedTensor, operator: str
) -> None:
    """Raise UserError unless queries, keys and values belong together."""
    if not key.heads or query.heads % key.heads or key.heads != value.heads:
        raise UserError(
            f"{operator} cannot share {key.heads} heads of keys and {value.heads} of values "
            f"among {query.heads} heads of queries",
            remedy="give as many heads of keys as of values; they divide those of queries",
        )
    pairs = (
        ("the batch of the keys", key.batch, query.batch),
        ("the batch of the values", value.batch, query.batch),
        ("the channels of the keys", key.channels, query.channels),
        ("the length of the values", value.length, key.length),
    )
    for what, actual, expected in pairs:
        if not is_same(actual, expected):
            raise UserError(
                f"{operator}: {what} is {actual} instead of {expected}",
                remedy="give tensors whose shapes agree",
            )


def score_keys(
    query: HeadedTensor, key: HeadedTensor, scoring: Scoring, wide: DType
) -> Tensor:
    """Return the scores, with minus infinity for masked keys."""
    group = query.heads // key.heads
    c = reduce_axis(query.channels, "c")

    def product(b: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        factor = key.read(b, maths.floordiv(h, group), j, c.var).astype(wide)
        return reducer.sum(query.read(b, h, i, c.var).astype(wide) * factor, axis=c)

    shape = (query.batch, query.heads, query.length, key.length)
    products = compute(shape, product, name="products", tag=REDUCTION)
    factor = const(_scale(scoring.scale, query.channels), wide)
    nothing = maths.min_value(wide)
    mask = scoring.mask
    if mask is not None:
        _check_mask(mask, shape, scoring.operator)

    def logit(*index: Expr) -> Expr:
        score = products[index] * factor
        if scoring.softcap:
            cap = const(scoring.softcap, wide)
            score = cap * maths.tanh(score / cap)
        if mask is not None:
            seen = read_broadcast(mask, index)
            if mask.dtype.is_bool:
                score = maths.select(seen, score, nothing)
            else:
                score = score + seen.astype(wide)
        if scoring.is_causal:
            _, _, i, j = index
            score = maths.select(j <= i + scoring.past, score, nothing)
        return score

    return compute(shape, logit, name="logits", tag=SHARED)


def _check_mask(mask: Tensor, shape: tuple[Extent, ...], operator: str) -> None:
    require_tensor(mask, operator)
    if not (mask.dtype.is_bool or mask.dtype.is_float):
        raise UserError(
            f"{operator} takes a mask of bools or floats, not {mask.dtype}",
            remedy="give True for each key that counts, or a float to add to each score",
            earlier=[mask.declaration()],
        )
    found = broadcast_extents(shape, extents(mask), operator, tensors=(mask,))
    if len(found) != 4 or not all(map(is_same, found, shape)):
        raise UserError(
            f"{operator} cannot broadcast the mask to [batch, heads, queries, keys]",
            remedy="give a mask whose extents are 1 or those of the scores",
            earlier=[mask.declaration()],
        )


def _scale(scale: float | None, channels: int) -> float:
    return 1 / math.sqrt(max(1, channels)) if scale is None else scale


def attend_numpy(
    query: Array,
    key: Array,
    value: Array,
    *,
    scale: float | None = None,
    softcap: float = 0.0,
    is_causal: bool = False,
    past: int = 0,
    mask: Array | None = None,
) -> Array:
    """Return the weighted means in f64, of arrays [batch, heads, length, channels]."""
    q = widen(query)
    group = query.shape[1] // key.shape[1]
    k = np.repeat(widen(key), group, axis=1)
    v = np.repeat(widen(value), group, axis=1)
    with np.errstate(all="ignore"):
        scores = np.einsum("bhic,bhjc->bhij", q, k) * _scale(scale, query.shape[3])
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        if mask is not None:
            is_kept = mask.dtype == np.bool_
            scores = np.where(mask, scores, -np.inf) if is_kept else scores + mask
        if is_causal:
            visible = np.tri(scores.shape[2], scores.shape[3], past)
            scores = np.where(visible == 1, scores, -np.inf)
        top = scores.max(axis=3, keepdims=True, initial=-np.inf)
        powers = np.exp(scores - np.where(top == -np.inf, 0, top))
        total = powers.sum(axis=3, keepdims=True)
        weighted = np.einsum("bhij,bhjc->bhic", powers, v)
        return np.asarray(weighted / np.where(total == 0, 1, total))
