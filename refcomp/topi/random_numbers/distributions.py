"""Random numbers of several distributions, each element from its own counter and a key.

Element e takes the two words x0 and x1 of `random_block`. Integers decide: with equal keys, all
targets give the same numbers, but for the rounding of the last float operations.

Reference: the ONNX operators RandomUniform, RandomNormal, Bernoulli and Dropout; TVM,
relay.random; D. Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29, 2019;
G. E. P. Box and M. E. Muller, "A Note on the Generation of Random Normal Deviates", 1958.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import F32, F64, DType, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import extents
from refcomp.te.operation import compute
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
from refcomp.topi.shapes import Array, require_float
from refcomp.topi.tags import SHARED

_FLOATS = ("float32", "float32", "float64", "float16", "bfloat16")


def _float_dtype(dtype: DTypeLike, operator: str) -> DType:
    kind = as_dtype(dtype)
    if not kind.is_float or kind.lanes > 1:
        raise UserError(
            f"{operator} cannot return {kind}",
            remedy="use a float dtype: float16, bfloat16, float32 or float64",
        )
    return kind


def _wide(dtype: DType) -> DType:
    """Return the dtype in which is computed: f64 for f64, else f32."""
    return F64 if dtype == F64 else F32


def _fraction(block: RandomBlock, wide: DType) -> Expr:
    """Return a float in [0, 1): a multiple of 2**-24 in f32, or of 2**-53 in f64."""
    low, high = block.words
    if wide == F64:
        bits = ((high.astype(U64) << 32) | low.astype(U64)) >> 11
        return bits.astype(F64) * const(2.0**-53, F64)
    return (low >> 8).astype(F32) * const(2.0**-24, F32)


def _fraction_numpy(words: tuple[Array, Array], wide: DType) -> Array:
    low, high = (word.astype(np.uint64) for word in words)
    if wide == F64:
        whole = high * np.uint64(2**32) + low
        return np.asarray(whole // np.uint64(2**11) / 2.0**53)
    return np.asarray(low // np.uint64(2**8) / 2.0**24)


def _rounded_numpy(value: float, wide: DType) -> np.float64:
    """Return a constant as the compute holds it: rounded to `wide`."""
    return np.float64(to_numpy(wide).type(value))


def random_uniform(
    key: Tensor,
    *,
    shape: Sequence[int],
    low: float = 0.0,
    high: float = 1.0,
    dtype: DTypeLike = "float32",
) -> Tensor:
    """Return floats that are uniform in [low, high).

        low + (high - low) * u

    Here u is a multiple of 2**-24, or of 2**-53 for f64: it is at least 0 and less than 1. The sum
    is computed in f32, or in f64, and rounded to the dtype. So `high` itself may occur by rounding,
    unless low is 0 and high is 1 in f32 or f64.

    Args:
        key: [2] of u32 (see `threefry_key`). Equal keys give equal numbers.
        shape: the extents of the result; outside of graphs also int64 variables.
        low: the least value.
        high: the upper limit.
        dtype: the float dtype of the result.

    Returns:
        A tensor of this shape and dtype.

    Raises:
        UserError: the key is not [2] of u32, the dtype is not a float, a limit is not finite, or an
            extent is negative.

    Reference: ONNX RandomUniform; TVM, relay.random.uniform.

    Example::

        >>> K = rc.topi.threefry_key(seed=0)
        >>> U = rc.topi.random_uniform(K, shape=(1000,))
        >>> (u,) = rc.oracle.evaluate([U], {})
        >>> bool(0 <= u.min() < u.max() < 1), bool(abs(u.mean() - 0.5) < 0.05)
        (True, True)
    """
    words = require_key(key, "random_uniform")
    kind = _float_dtype(dtype, "random_uniform")
    sizes = check_shape(shape, "random_uniform")
    _require_finite(low, high, "random_uniform")
    wide = _wide(kind)

    def element(*index: Expr) -> Expr:
        block = random_block(words, index, sizes)
        span = const(high - low, wide)
        scaled = _fraction(block, wide) * span + const(low, wide)
        return block.bind(scaled.astype(kind))

    return compute(sizes, element, name="random_uniform", tag=INJECTIVE)


def _require_finite(first: float, second: float, operator: str) -> None:
    if not math.isfinite(first) or not math.isfinite(second):
        raise UserError(
            f"{operator} cannot have the parameters {first} and {second}",
            remedy="use finite numbers",
        )


def _sample_random_uniform(draws: Draws) -> Sample:
    attributes = {
        "shape": draws.shape(),
        "low": draws.choice((0.0, draws.number(-3, 1))),
        "high": draws.choice((1.0, draws.number(1, 9))),
        "dtype": draws.choice(_FLOATS),
    }
    return Sample((sample_key(draws),), attributes)


@meaning_of(random_uniform, sample=_sample_random_uniform)
def random_uniform_numpy(
    key: Array,
    *,
    shape: Sequence[int],
    low: float = 0.0,
    high: float = 1.0,
    dtype: DTypeLike = "float32",
) -> Array:
    wide = _wide(as_dtype(dtype))
    fraction = _fraction_numpy(random_words_numpy(key, shape), wide)
    scaled = fraction * _rounded_numpy(high - low, wide) + _rounded_numpy(low, wide)
    return np.asarray(scaled).astype(to_numpy(as_dtype(dtype)))


def random_normal(
    key: Tensor,
    *,
    shape: Sequence[int],
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: DTypeLike = "float32",
) -> Tensor:
    """Return floats of the normal distribution with this mean and standard deviation.

        mean + scale * sqrt(-2 * log(u)) * cos(2 * pi * v)

    Here u is in (0, 1] and v in [0, 1): multiples of 2**-24 from the two words, or of 2**-32 for
    f64. So no number is farther from the mean than 5.8 standard deviations, or 6.7 for f64. The
    constant 2 * pi is rounded to f32, or to f64.

    Args:
        key: [2] of u32 (see `threefry_key`). Equal keys give equal numbers.
        shape: the extents of the result; outside of graphs also int64 variables.
        mean: the mean.
        scale: the standard deviation.
        dtype: the float dtype of the result. It is computed in f32, or in f64 for f64.

    Returns:
        A tensor of this shape and dtype.

    Raises:
        UserError: the key is not [2] of u32, the dtype is not a float, a parameter is not finite,
            or an extent is negative.

    Reference: G. E. P. Box and M. E. Muller, 1958; ONNX RandomNormal; TVM, relay.random.normal.

    Example::

        >>> K = rc.topi.threefry_key(seed=0)
        >>> N = rc.topi.random_normal(K, shape=(1000,), mean=3.0)
        >>> (n,) = rc.oracle.evaluate([N], {})
        >>> bool(abs(n.mean() - 3) < 0.1), bool(abs(n.std() - 1) < 0.1)
        (True, True)
    """
    words = require_key(key, "random_normal")
    kind = _float_dtype(dtype, "random_normal")
    sizes = check_shape(shape, "random_normal")
    _require_finite(mean, scale, "random_normal")
    wide = _wide(kind)
    bits = _NORMAL_BITS[wide]
    unit = const(2.0**-bits, wide)
    turn = const(2 * math.pi, wide)

    def element(*index: Expr) -> Expr:
        block = random_block(words, index, sizes)
        first, second = block.words
        # At least one, since log(0) is not finite.
        u = ((first >> (32 - bits)).astype(wide) + 1.0) * unit
        v = (second >> (32 - bits)).astype(wide) * unit
        radius = maths.sqrt(-2.0 * maths.log(u))
        normal = radius * maths.cos(turn * v)
        scaled = normal * const(scale, wide) + const(mean, wide)
        return block.bind(scaled.astype(kind))

    return compute(sizes, element, name="random_normal", tag=INJECTIVE)


_NORMAL_BITS = {F32: 24, F64: 32}  # of each of the two uniform numbers


def _sample_random_normal(draws: Draws) -> Sample:
    attributes = {
        "shape": draws.shape(),
        "mean": draws.choice((0.0, draws.number(-3, 3))),
        "scale": draws.choice((1.0, draws.number(0, 3))),
        "dtype": draws.choice(_FLOATS),
    }
    return Sample((sample_key(draws),), attributes)


@meaning_of(random_normal, sample=_sample_random_normal)
def random_normal_numpy(
    key: Array,
    *,
    shape: Sequence[int],
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: DTypeLike = "float32",
) -> Array:
    wide = _wide(as_dtype(dtype))
    bits = _NORMAL_BITS[wide]
    first, second = random_words_numpy(key, shape)
    u = (first // np.uint32(2 ** (32 - bits)) + 1.0) / 2.0**bits
    v = second // np.uint32(2 ** (32 - bits)) / 2.0**bits
    normal = np.sqrt(-2 * np.log(u)) * np.cos(_rounded_numpy(2 * math.pi, wide) * v)
    shifted = normal * _rounded_numpy(scale, wide) + _rounded_numpy(mean, wide)
    return np.asarray(shifted).astype(to_numpy(as_dtype(dtype)))


def random_integers(
    key: Tensor,
    *,
    shape: Sequence[int],
    low: int,
    high: int,
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Return integers that are uniform in low, ..., high - 1.

        low + floor(x * (high - low) / 2**64)

    Here x is the integer of 64 bits of `threefry_generate`. The probabilities of two values differ
    by at most 2**-32 of themselves.

    Args:
        key: [2] of u32 (see `threefry_key`). Equal keys give equal numbers.
        shape: the extents of the result; outside of graphs also int64 variables.
        low: the least integer.
        high: the limit, which is not reached. high - low is 1 to 2**32.
        dtype: the integer dtype of the result, which holds low and high - 1.

    Returns:
        A tensor of this shape and dtype: the same on each target.

    Raises:
        UserError: the key is not [2] of u32, the dtype does not hold the integers, there are none
            or too many of them, or an extent is negative.

    Reference: D. Lemire, ACM TOMACS 29, 2019; numpy.random.Generator.integers.

    Example::

        >>> K = rc.topi.threefry_key(seed=0)
        >>> D = rc.topi.random_integers(K, shape=(1000,), low=1, high=7)
        >>> (d,) = rc.oracle.evaluate([D], {})
        >>> print(np.unique(d))
        [1 2 3 4 5 6]
    """
    words = require_key(key, "random_integers")
    sizes = check_shape(shape, "random_integers")
    kind = as_dtype(dtype)
    if not kind.is_int or kind.lanes > 1:
        raise UserError(
            f"random_integers cannot return {kind}", remedy="use an integer dtype"
        )
    count = high - low
    fits = kind.min_value <= low and high - 1 <= kind.max_value
    if not 1 <= count <= 2**32 or not fits:
        raise UserError(
            f"random_integers cannot draw {low} to {high} - 1 as {kind}",
            remedy="give high > low, 2**32 numbers at most, which the dtype holds",
        )

    def element(*index: Expr) -> Expr:
        block = random_block(words, index, sizes)
        first, second = block.words
        factor = const(count, U64)
        # The upper 64 of 96 bits, and of these the upper 32.
        carried = (first.astype(U64) * factor) >> 32
        place = (second.astype(U64) * factor + carried) >> 32
        number = place + const(low % 2**64, U64)
        return block.bind(number.astype(kind))

    return compute(sizes, element, name="random_integers", tag=INJECTIVE)


def _sample_random_integers(draws: Draws) -> Sample:
    dtype = draws.choice(("int32", "int64", "uint8", "int8", "uint32", "uint64"))
    kind = as_dtype(dtype)
    count = draws.choice((1, 2, 100, 128, 2**31 - 1, 2**32))
    count = min(count, kind.max_value)
    least = draws.choice((kind.min_value, kind.max_value - count + 1, 0))
    attributes = {
        "shape": draws.shape(),
        "low": least,
        "high": least + count,
        "dtype": dtype,
    }
    return Sample((sample_key(draws),), attributes)


@meaning_of(random_integers, sample=_sample_random_integers)
def random_integers_numpy(
    key: Array,
    *,
    shape: Sequence[int],
    low: int,
    high: int,
    dtype: DTypeLike = "int32",
) -> Array:
    first, second = random_words_numpy(key, shape)
    # Python's integers have as many digits as needed.
    whole = second.astype(object) * 2**32 + first.astype(object)
    numbers = whole * (high - low) // 2**64 + low
    return np.asarray(numbers).astype(to_numpy(as_dtype(dtype)))


def bernoulli(
    key: Tensor, probability: Tensor, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return 1 with the probability of each element, else 0.

    An element is 1 if u < probability, where u is uniform in [0, 1), a multiple of 2**-24. A
    probability of 0 or less gives 0, of 1 or more gives 1, and NaN gives 0.

    Args:
        key: [2] of u32 (see `threefry_key`). Equal keys give equal numbers.
        probability: floats of any shape.
        dtype: the dtype of the result; that of `probability` by default.

    Returns:
        A tensor of the shape of `probability`: the same on each target.

    Raises:
        UserError: the key is not [2] of u32, `probability` does not hold floats, or the dtype is of
            vectors.

    Reference: ONNX Bernoulli.

    Example::

        >>> K, P = rc.topi.threefry_key(seed=0), rc.placeholder((3,), name="P")
        >>> B = rc.topi.bernoulli(K, P)
        >>> print(*rc.oracle.evaluate([B], {P: np.array([0, 1, np.nan], "float32")}))
        [0. 1. 0.]
    """
    words = require_key(key, "bernoulli")
    require_float(probability, "bernoulli")
    kind = probability.dtype if dtype is None else as_dtype(dtype)
    if kind.lanes > 1:
        raise UserError(
            f"bernoulli cannot return {kind}", remedy="use the dtype of a scalar"
        )
    wide = _wide(probability.dtype)
    sizes = extents(probability)

    def element(*index: Expr) -> Expr:
        block = random_block(words, index, sizes)
        fraction = _fraction(block, F32).astype(wide)
        hit = fraction < probability[index].astype(wide)
        return block.bind(hit.astype(kind))

    return compute(probability.shape, element, name="bernoulli", tag=INJECTIVE)


def _sample_bernoulli(draws: Draws) -> Sample:
    shape = draws.shape()
    dtype = draws.float_dtype()
    usual = draws.uniform(shape, 0, 1, dtype)
    probability = usual if draws.flag() else draws.array(shape, dtype)
    wanted = draws.choice((None, "bool", "int32", "float32"))
    return Sample((sample_key(draws), probability), {"dtype": wanted})


@meaning_of(bernoulli, sample=_sample_bernoulli)
def bernoulli_numpy(
    key: Array, probability: Array, *, dtype: DTypeLike | None = None
) -> Array:
    fraction = _fraction_numpy(random_words_numpy(key, probability.shape), F32)
    hit = fraction < probability.astype(np.float64)
    return np.asarray(hit).astype(
        probability.dtype if dtype is None else to_numpy(as_dtype(dtype))
    )


def dropout(key: Tensor, data: Tensor, *, rate: float = 0.5) -> list[Tensor]:
    """Return `data` with random elements set to 0 and the others scaled, and the mask.

        mask = u >= rate
        result = data * (1 / (1 - rate)) where mask, else 0

    Here u is uniform in [0, 1), a multiple of 2**-24. The scale keeps the expectation. It is
    rounded to f32, or to f64 for f64, and so is the product before it is rounded to the dtype.

    Args:
        key: [2] of u32 (see `threefry_key`). Equal keys give equal masks.
        data: floats of any shape.
        rate: the probability that an element is dropped, 0 <= rate < 1.

    Returns:
        The result, of the shape and dtype of `data`, and the mask, of bool.

    Raises:
        UserError: the key is not [2] of u32, `data` does not hold floats, or the rate is out of
            range.

    Reference: N. Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from
    Overfitting", JMLR 15, 2014; ONNX Dropout with training_mode.

    Example::

        >>> K, A = rc.topi.threefry_key(seed=0), rc.placeholder((6,), name="A")
        >>> B, M = rc.topi.dropout(K, A, rate=0.5)
        >>> b, m = rc.oracle.evaluate([B, M], {A: np.ones(6, "float32")})
        >>> bool((b == 2 * m).all())
        True
    """
    words = require_key(key, "dropout")
    require_float(data, "dropout")
    if not 0 <= rate < 1:
        raise UserError(
            f"dropout cannot have the rate {rate}",
            remedy="use a probability that is less than 1",
        )
    wide = _wide(data.dtype)
    sizes = extents(data)
    limit = const(rate, F64)

    def is_kept(*index: Expr) -> Expr:
        block = random_block(words, index, sizes)
        return block.bind(_fraction(block, F32).astype(F64) >= limit)

    mask = compute(data.shape, is_kept, name="mask", tag=SHARED)

    def element(*index: Expr) -> Expr:
        scaled = data[index].astype(wide) * const(1 / (1 - rate), wide)
        return maths.select(mask[index], scaled, 0.0).astype(data.dtype)

    result = compute(data.shape, element, name="dropout", tag=INJECTIVE)
    return [result, mask]


def _sample_dropout(draws: Draws) -> Sample:
    data = draws.array(draws.shape(), draws.float_dtype())
    rate = draws.choice((0.0, 0.5, draws.number(0, 0.99)))
    return Sample((sample_key(draws), data), {"rate": rate})


@meaning_of(dropout, pattern="opaque", sample=_sample_dropout)
def dropout_numpy(key: Array, data: Array, *, rate: float = 0.5) -> list[Array]:
    wide = _wide(as_dtype(data.dtype))
    mask = _fraction_numpy(random_words_numpy(key, data.shape), F32) >= rate
    factor = _rounded_numpy(1 / (1 - rate), wide)
    with np.errstate(over="ignore"):
        scaled = np.where(mask, data.astype(np.float64) * factor, 0)
        return [scaled.astype(data.dtype), np.asarray(mask)]
