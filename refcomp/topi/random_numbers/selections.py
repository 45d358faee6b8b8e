"""Random choices: classes by their log-probabilities, and permutations.

Reference: ONNX Multinomial; TVM, relay.random.multinomial; E. J. Gumbel, "Statistical Theory of
Extreme Values and Some Practical Applications", 1954; numpy.random.Generator.permutation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import F32, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.random_numbers.counters import (
    U64,
    RandomBlock,
    require_key,
    sample_key,
)
from refcomp.topi.random_numbers.keys import (
    check_shape,
    random_block,
    random_words_numpy,
)
from refcomp.topi.reduction.extrema import argmax
from refcomp.topi.shapes import Array, require_constant, require_float, require_rank
from refcomp.topi.tags import REDUCTION, SHARED

_GUMBEL_BITS = 23  # with the half that is added, all digits of an f32


def random_gumbel(key: Tensor, *, shape: Sequence[int]) -> Tensor:
    """Return f32 of the standard Gumbel distribution: -log(-log(u)).

    Here u is in (0, 1): an odd multiple of 2**-24. The class of the greatest logit plus such a
    number has the probability of the softmax of the logits.

    Args:
        key: [2] of u32 (see `threefry_key`). Equal keys give equal numbers.
        shape: the extents of the result.

    Returns:
        A tensor of f32 of this shape, with numbers of -2.82 to 16.64.

    Raises:
        UserError: the key is not [2] of u32, or an extent is negative.

    Reference: E. J. Gumbel, 1954.

    Example::

        >>> K = rc.topi.threefry_key(seed=0)
        >>> G = rc.topi.random_gumbel(K, shape=(1000,))
        >>> (g,) = rc.oracle.evaluate([G], {})
        >>> bool(abs(g.mean() - 0.5772) < 0.1)
        True
    """
    words = require_key(key, "random_gumbel")
    sizes = check_shape(shape, "random_gumbel")

    def element(*index: Expr) -> Expr:
        block = random_block(words, index, sizes)
        return block.bind(_gumbel(block))

    return compute(sizes, element, name="random_gumbel", tag=INJECTIVE)


def _gumbel(block: RandomBlock) -> Expr:
    whole = (block.words[0] >> (32 - _GUMBEL_BITS)).astype(F32)
    u = (whole + 0.5) * const(2.0**-_GUMBEL_BITS, F32)
    return -maths.log(-maths.log(u))


def _sample_random_gumbel(draws: Draws) -> Sample:
    return Sample((sample_key(draws),), {"shape": draws.shape()})


@meaning_of(random_gumbel, sample=_sample_random_gumbel)
def random_gumbel_numpy(key: Array, *, shape: Sequence[int]) -> Array:
    return _gumbel_numpy(key, shape).astype(np.float32)


def _gumbel_numpy(key: Array, shape: Sequence[int]) -> Array:
    whole = random_words_numpy(key, shape)[0] // np.uint32(2 ** (32 - _GUMBEL_BITS))
    u = (whole + 0.5) / 2.0**_GUMBEL_BITS
    return np.asarray(-np.log(-np.log(u)))


def multinomial(
    key: Tensor, logits: Tensor, *, sample_size: int = 1, dtype: DTypeLike = "int32"
) -> Tensor:
    """Return random classes, each with the probability of the softmax of its row of logits.

    Each is the class of the greatest sum of a logit and a number of `random_gumbel`, in f32. Minus
    infinity is never chosen, unless all are. A NaN or an infinity is always chosen: the first NaN,
    else the first infinity.

    Args:
        key: [2] of u32 (see `threefry_key`). Equal keys give equal classes.
        logits: [batch, classes] of floats: logarithms of probabilities, each plus any constant of
            its row. There is a class at least, and their number is constant.
        sample_size: the number of classes to draw for each row, with repetition.
        dtype: the integer dtype of the result.

    Returns:
        A tensor [batch, sample_size] of `dtype`.

    Raises:
        UserError: the key is not [2] of u32, `logits` is not a matrix of floats with classes, the
            size is negative, or the dtype is not an integer of 32 or 64 bits.

    Reference: ONNX Multinomial.

    Example::

        >>> K, L = rc.topi.threefry_key(seed=0), rc.placeholder((1, 2), name="L")
        >>> M = rc.topi.multinomial(K, L, sample_size=1000)
        >>> logits = np.log(np.array([[0.3, 0.7]], "float32"))
        >>> (m,) = rc.oracle.evaluate([M], {L: logits})
        >>> bool(abs(m.mean() - 0.7) < 0.05)
        True
    """
    words = require_key(key, "multinomial")
    require_rank(logits, 2, "multinomial", "the tensor of logits")
    require_float(logits, "multinomial")
    kind = as_dtype(dtype)
    if not kind.is_int or kind.bits < 32 or kind.lanes > 1:
        raise UserError(
            f"multinomial cannot return {kind}",
            remedy="use int32, int64, uint32 or uint64",
        )
    batch, classes = extents(logits)
    count = require_constant(classes, "multinomial: the number of classes")
    if count < 1 or sample_size < 0:
        raise UserError(
            f"multinomial cannot draw {sample_size} of {count} classes",
            remedy="give one class or more, and a size of 0 or more",
        )
    shape = (batch, sample_size, count)

    def score(row: Expr, place: Expr, label: Expr) -> Expr:
        block = random_block(words, (row, place, label), shape)
        return block.bind(logits[row, label].astype(F32) + _gumbel(block))

    scores = compute(shape, score, name="scores", tag=SHARED)
    best = argmax(scores, axis=2)
    return compute(
        (batch, sample_size),
        lambda *index: best[index].astype(kind),
        name="multinomial",
        tag=INJECTIVE,
    )


def _sample_multinomial(draws: Draws) -> Sample:
    shape = (draws.extent(0), draws.extent(1))
    logits = draws.array(shape, draws.float_dtype())
    attributes = {
        "sample_size": draws.integer(0, 4),
        "dtype": draws.choice(("int32", "int64")),
    }
    return Sample((sample_key(draws), logits), attributes)


@meaning_of(multinomial, sample=_sample_multinomial)
def multinomial_numpy(
    key: Array, logits: Array, *, sample_size: int = 1, dtype: DTypeLike = "int32"
) -> Array:
    noise = _gumbel_numpy(key, (logits.shape[0], sample_size, logits.shape[1]))
    with np.errstate(over="ignore"):
        scores = logits.astype(np.float32)[:, None] + noise
    best = np.argmax(scores, axis=2)
    return np.asarray(best).astype(to_numpy(as_dtype(dtype)))


def random_permutation(key: Tensor, *, size: int, dtype: DTypeLike = "int32") -> Tensor:
    """Return the integers 0, ..., size - 1 in random order.

    Element e is the rank of its 64 random bits among those of all elements; of equal bits, the
    earlier element comes first. It takes size * size comparisons.

    Args:
        key: [2] of u32 (see `threefry_key`). Equal keys give equal orders.
        size: the number of integers.
        dtype: the integer dtype of the result, which holds size - 1.

    Returns:
        A tensor [size]: the same on each target.

    Raises:
        UserError: the key is not [2] of u32, the size is negative, or the dtype does not hold the
            integers.

    Reference: numpy.random.Generator.permutation.

    Example::

        >>> K = rc.topi.threefry_key(seed=0)
        >>> P = rc.topi.random_permutation(K, size=5)
        >>> (p,) = rc.oracle.evaluate([P], {})
        >>> print(np.sort(p))
        [0 1 2 3 4]
    """
    words = require_key(key, "random_permutation")
    (extent,) = check_shape((size,), "random_permutation")
    count = require_constant(extent, "the size of a permutation")
    kind = as_dtype(dtype)
    if not kind.is_int or kind.lanes > 1 or count - 1 > kind.max_value:
        raise UserError(
            f"random_permutation cannot return {count} integers as {kind}",
            remedy="use an integer dtype that holds all of them",
        )

    def bits(e: Expr) -> Expr:
        block = random_block(words, (e,), (count,))
        low, high = block.words
        return block.bind((high.astype(U64) << 32) | low.astype(U64))

    drawn = compute((count,), bits, name="bits", tag=SHARED)
    other = reduce_axis(count, "other")

    def rank(e: Expr) -> Expr:
        here = drawn[e]
        there = drawn[other.var]
        is_before = maths.any(there < here, maths.all(there == here, other.var < e))
        return reducer.sum(is_before.astype(kind), axis=other)

    return compute((count,), rank, name="random_permutation", tag=REDUCTION)


def _sample_random_permutation(draws: Draws) -> Sample:
    attributes = {
        "size": draws.integer(0, 20),
        "dtype": draws.choice(("int32", "int64", "uint8")),
    }
    return Sample((sample_key(draws),), attributes)


@meaning_of(random_permutation, sample=_sample_random_permutation)
def random_permutation_numpy(
    key: Array, *, size: int, dtype: DTypeLike = "int32"
) -> Array:
    low, high = (word.astype(np.uint64) for word in random_words_numpy(key, (size,)))
    order = np.argsort(high * np.uint64(2**32) + low, kind="stable")
    ranks = np.empty(size, to_numpy(as_dtype(dtype)))
    ranks[order] = np.arange(size)
    return ranks
