"""Keys of random numbers: made from a seed, split, and turned into bits.

A key is two words of u32. Element e of a tensor of random numbers is Threefry-2x32 of the counter
(e modulo 2**32, e // 2**32). Keys are made by counters whose second word is 2**32 - 1, which no
element has. A key must be used once: split it before.

Reference: J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; K. Claessen
and M. H. Pałka, "Splittable Pseudorandom Number Generators using Cryptographic Hashing", 2013; TVM,
relay.random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import Extent
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.random_numbers.counters import (
    U32,
    U64,
    Pair32,
    RandomBlock,
    require_key,
    sample_key,
    threefry_block,
    threefry_words_numpy,
)
from refcomp.topi.shapes import Array, product

_LAST_WORD = 2**32 - 1  # the second word of counters that make keys
_LEFT, _RIGHT, _NEXT = range(3)  # the first word of these


def check_shape(shape: Sequence[Extent], operator: str) -> tuple[Extent, ...]:
    """Return a shape as a tuple, or raise UserError if an extent is negative."""
    if any(not isinstance(extent, Expr) and extent < 0 for extent in shape):
        raise UserError(
            f"{operator} cannot make the shape {tuple(shape)}",
            remedy="use extents >= 0",
        )
    return tuple(shape)


def random_block(
    key: Pair32, index: Sequence[Expr], shape: Sequence[Extent]
) -> RandomBlock:
    """Return the two random words of the element at `index` of a tensor of `shape`."""
    size = product(shape)
    is_small = isinstance(size, int) and size <= 2**32
    wide = U32 if is_small else U64
    position = const(0, wide)
    for i, extent in zip(index, shape, strict=True):
        factor = const(extent, wide) if isinstance(extent, int) else extent.astype(wide)
        position = position * factor + i.astype(wide)
    high = const(0, U32) if is_small else (position >> 32).astype(U32)
    return threefry_block((position.astype(U32), high), key)


def random_words_numpy(key: Array, shape: Sequence[int]) -> tuple[Array, Array]:
    position = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    counter = (position & np.uint64(_LAST_WORD), position >> np.uint64(32))
    return threefry_words_numpy(counter, (key[0], key[1]))


def threefry_key(*, seed: int) -> Tensor:
    """Return the key of a seed: the lower and the upper word of its 64 bits.

    Args:
        seed: an integer, 0 to 2**64 - 1. Near seeds give unrelated numbers.

    Returns:
        A tensor [2] of u32.

    Raises:
        UserError: the seed is out of range.

    Reference: TVM, relay.random.threefry_key.

    Example::

        >>> K = rc.topi.threefry_key(seed=2**32 + 7)
        >>> print(*rc.oracle.evaluate([K], {}))
        [7 1]
    """
    if not 0 <= seed < 2**64:
        raise UserError(
            f"threefry_key cannot take the seed {seed}", remedy="use 0 to 2**64 - 1"
        )
    low = const(seed % 2**32, U32)
    high = const(seed // 2**32, U32)
    return compute(
        (2,), lambda word: maths.select(word == 0, low, high), name="threefry_key"
    )


def _sample_threefry_key(draws: Draws) -> Sample:
    parts = [draws.integer(0, _LAST_WORD) for _ in range(2)]
    return Sample((), {"seed": parts[0] * draws.integer(0, 1) * 2**32 + parts[1]})


@meaning_of(threefry_key, sample=_sample_threefry_key)
def threefry_key_numpy(*, seed: int) -> Array:
    return np.array(divmod(seed, 2**32)[::-1], np.uint32)


def _child(words: Pair32, number: int, name: str) -> Tensor:
    counter = (const(number, U32), const(_LAST_WORD, U32))

    def element(word: Expr) -> Expr:
        block = threefry_block(counter, words)
        first, second = block.words
        return block.bind(maths.select(word == 0, first, second))

    return compute((2,), element, name=name, tag=INJECTIVE)


def _child_numpy(key: Array, number: int) -> Array:
    last = np.array(_LAST_WORD)
    words = threefry_words_numpy((np.array(number), last), (key[0], key[1]))
    return np.stack(words)


def threefry_split(key: Tensor) -> list[Tensor]:
    """Return two keys, whose numbers are unrelated to each other and to those of `key`.

    Args:
        key: [2] of u32.

    Returns:
        Two tensors [2] of u32.

    Raises:
        UserError: the key is not a tensor [2] of u32.

    Reference: TVM, relay.random.threefry_split; the keys are refcomp's own.

    Example::

        >>> left, right = rc.topi.threefry_split(rc.topi.threefry_key(seed=1))
        >>> a, b = rc.oracle.evaluate([left, right], {})
        >>> a.shape, bool((a == b).any())
        ((2,), False)
    """
    words = require_key(key, "threefry_split")
    return [_child(words, _LEFT, "left"), _child(words, _RIGHT, "right")]


def _sample_one_key(draws: Draws) -> Sample:
    return Sample((sample_key(draws),))


@meaning_of(threefry_split, pattern="opaque", sample=_sample_one_key)
def threefry_split_numpy(key: Array) -> list[Array]:
    return [_child_numpy(key, _LEFT), _child_numpy(key, _RIGHT)]


def threefry_generate(key: Tensor, *, shape: Sequence[int]) -> list[Tensor]:
    """Return a key for the next numbers, and a tensor of random integers of 64 bits.

    Args:
        key: [2] of u32.
        shape: the extents of the tensor of integers.

    Returns:
        A tensor [2] of u32, and a tensor of u64 of this shape.

    Raises:
        UserError: the key is not a tensor [2] of u32, or an extent is negative.

    Reference: TVM, relay.random.threefry_generate, which takes Threefry-4x64.

    Example::

        >>> K = rc.topi.threefry_key(seed=0)
        >>> new_key, words = rc.topi.threefry_generate(K, shape=(1,))
        >>> print(hex(int(rc.oracle.evaluate([words], {})[0][0])))
        0x99ba4efe6b200159
    """
    words = require_key(key, "threefry_generate")
    sizes = check_shape(shape, "threefry_generate")

    def element(*index: Expr) -> Expr:
        block = random_block(words, index, sizes)
        low, high = block.words
        return block.bind((high.astype(U64) << 32) | low.astype(U64))

    bits = compute(sizes, element, name="threefry_generate", tag=INJECTIVE)
    return [_child(words, _NEXT, "new_key"), bits]


def _sample_threefry_generate(draws: Draws) -> Sample:
    return Sample((sample_key(draws),), {"shape": draws.shape()})


@meaning_of(threefry_generate, pattern="opaque", sample=_sample_threefry_generate)
def threefry_generate_numpy(key: Array, *, shape: Sequence[int]) -> list[Array]:
    low, high = (word.astype(np.uint64) for word in random_words_numpy(key, shape))
    return [_child_numpy(key, _NEXT), np.asarray(high * np.uint64(2**32) + low)]
