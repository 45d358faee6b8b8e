"""Counter-based generators of random bits: Threefry-2x32 and Philox-4x32.

Each is a bijection of counters for each key. So each element of a tensor gets its random bits from
its own counter, in any order and on any target, to the bit.

Reference: J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel Random Numbers: As Easy
as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr, Let, Var
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array

U32 = as_dtype("uint32")
U64 = as_dtype("uint64")
# Two words of 32 bits.
Pair32 = tuple[Expr, Expr]

# Bits by which the second word is rotated, in rounds 0 to 7 and again.
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA  # joins the words of the key, so that no key is all zeros
_THREEFRY_ROUNDS = 20
_ROUNDS_PER_KEY = 4
# The factors of the two products, and what is added to the key after each round.
_FACTORS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_PHILOX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class RandomBlock:
    """The random words of a counter, with the names on which they depend.

    Each round uses the words of the round before it several times. Without names, the expression
    would grow exponentially.

    Attributes:
        words: expressions of u32, of names that `bind` binds.
        names: each name with its value, in order.
    """

    words: tuple[Expr, ...]
    names: tuple[tuple[Var, Expr], ...]

    def bind(self, value: Expr) -> Expr:
        """Return `value`, an expression of the words, with all names bound."""
        for name, meant in reversed(self.names):
            value = Let(name, meant, value)
        return value


class _Names:
    """The names that are given so far."""

    def __init__(self) -> None:
        self.given: list[tuple[Var, Expr]] = []

    def name(self, value: Expr) -> Expr:
        """Return a variable that has this value."""
        var = Var(f"word{len(self.given)}", value.dtype)
        self.given.append((var, value))
        return var


def threefry_block(counter: Pair32, key: Pair32) -> RandomBlock:
    """Return the two random words of a counter and a key."""
    names = _Names()
    keys = [names.name(word) for word in key]
    keys.append(names.name(keys[0] ^ keys[1] ^ const(_PARITY, U32)))
    first = names.name(counter[0] + keys[0])
    second = names.name(counter[1] + keys[1])
    for step in range(_THREEFRY_ROUNDS):
        bits = _ROTATIONS[step % len(_ROTATIONS)]
        first = names.name(first + second)
        rotated = (second << bits) | (second >> (32 - bits))
        second = names.name(rotated ^ first)
        done = step + 1
        if done % _ROUNDS_PER_KEY == 0:
            group = done // _ROUNDS_PER_KEY
            first = names.name(first + keys[group % 3])
            shifted = keys[(group + 1) % 3] + const(group, U32)
            second = names.name(second + shifted)
    return RandomBlock((first, second), tuple(names.given))


def threefry_words_numpy(
    counter: Sequence[Array], key: Sequence[Array]
) -> tuple[Array, Array]:
    """Return the two random words of arrays of counters, in u64 modulo 2**32."""
    mask = np.uint64(0xFFFFFFFF)
    k0, k1 = (np.asarray(word).astype(np.uint64) for word in key)
    x0, x1 = (np.asarray(word).astype(np.uint64) for word in counter)
    schedule = [k0, k1, k0 ^ k1 ^ np.uint64(_PARITY)]
    x0 = x0 + k0 & mask
    x1 = x1 + k1 & mask
    for group in range(1, 6):
        for bits in _ROTATIONS[:4] if group % 2 else _ROTATIONS[4:]:
            x0 = x0 + x1 & mask
            doubled = x1 << np.uint64(bits)
            # What left the lower word comes back at its end.
            x1 = (doubled & mask) + (doubled >> np.uint64(32)) ^ x0
        x0 = x0 + schedule[group % 3] & mask
        x1 = x1 + schedule[(group + 1) % 3] + np.uint64(group) & mask
    return x0.astype(np.uint32), x1.astype(np.uint32)


def philox_block(counter: Sequence[Expr], key: Pair32) -> RandomBlock:
    """Return the four random words of a counter of four words and a key."""
    names = _Names()
    c0, c1, c2, c3 = (names.name(word) for word in counter)
    k0, k1 = (names.name(word) for word in key)
    for _ in range(_PHILOX_ROUNDS):
        high0, low0 = _product(c0, _FACTORS[0])
        high1, low1 = _product(c2, _FACTORS[1])
        block = (high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0)
        c0, c1, c2, c3 = (names.name(word) for word in block)
        k0 = names.name(k0 + const(_WEYL[0], U32))
        k1 = names.name(k1 + const(_WEYL[1], U32))
    return RandomBlock((c0, c1, c2, c3), tuple(names.given))


def _product(word: Expr, factor: int) -> Pair32:
    """Return the upper and the lower half of a product of 64 bits."""
    product = word.astype(U64) * const(factor, U64)
    return (product >> 32).astype(U32), product.astype(U32)


def require_key(key: Tensor, operator: str) -> Pair32:
    """Return the words of a key, or raise UserError if it is not a tensor [2] of u32."""
    require_tensor(key, operator)
    if key.dtype != U32 or key.ndim != 1:
        raise UserError(
            f"{operator}: the key is {key.dtype} of {key.ndim} dimensions",
            remedy="give two words of uint32, such as rc.topi.threefry_key makes",
            earlier=[key.declaration()],
        )
    require_extent(
        extents(key)[0], 2, operator, "the extent of the key", tensors=(key,)
    )
    return key[0], key[1]


def _require_counter(counter: Tensor, words: int, operator: str) -> None:
    require_tensor(counter, operator)
    if counter.dtype != U32 or counter.ndim < 1:
        raise UserError(
            f"{operator}: the counter is {counter.dtype} of {counter.ndim} dimensions",
            remedy=f"give a tensor of uint32 whose last extent is {words}",
            earlier=[counter.declaration()],
        )
    what = "the last extent of the counter"
    require_extent(extents(counter)[-1], words, operator, what, tensors=(counter,))


def threefry(counter: Tensor, key: Tensor) -> Tensor:
    """Return two random words for each counter of two words, by Threefry-2x32 with 20 rounds.

    Args:
        counter: [..., 2] of u32. The first word is the lower one.
        key: [2] of u32.

    Returns:
        A tensor of u32 of the shape of `counter`: the same bits on each target.

    Raises:
        UserError: an operand is not of u32, or has another last extent.

    Reference: Salmon et al., SC 2011, section 4.2.

    Example::

        >>> C, K = (rc.placeholder((2,), "uint32", name=name) for name in "CK")
        >>> B = rc.topi.threefry(C, K)
        >>> zeros = np.zeros(2, "uint32")
        >>> (b,) = rc.oracle.evaluate([B], {C: zeros, K: zeros})
        >>> print(*map(hex, b))
        0x6b200159 0x99ba4efe
    """
    _require_counter(counter, 2, "threefry")
    pair = require_key(key, "threefry")

    def element(*index: Expr) -> Expr:
        *place, word = index
        counted = (counter[(*place, 0)], counter[(*place, 1)])
        block = threefry_block(counted, pair)
        first, second = block.words
        return block.bind(maths.select(word == 0, first, second))

    return compute(counter.shape, element, name="threefry", tag=INJECTIVE)


def _sample_words(draws: Draws, shape: Sequence[int]) -> Array:
    return draws.integers(shape, 0, 2**32 - 1, "uint32")


def sample_key(draws: Draws) -> Array:
    """Return a random key."""
    return _sample_words(draws, (2,))


def _sample_threefry(draws: Draws) -> Sample:
    counter = _sample_words(draws, (*draws.shape(0, 2), 2))
    return Sample((counter, sample_key(draws)))


@meaning_of(threefry, sample=_sample_threefry)
def threefry_numpy(counter: Array, key: Array) -> Array:
    words = threefry_words_numpy((counter[..., 0], counter[..., 1]), (key[0], key[1]))
    return np.stack(words, axis=-1)


def philox(counter: Tensor, key: Tensor) -> Tensor:
    """Return four random words for each counter of four words, by Philox-4x32 with 10 rounds.

    Args:
        counter: [..., 4] of u32. The first word is the lowest one.
        key: [2] of u32.

    Returns:
        A tensor of u32 of the shape of `counter`: the same bits on each target.

    Raises:
        UserError: an operand is not of u32, or has another last extent.

    Reference: Salmon et al., SC 2011, section 4.3.

    Example::

        >>> C = rc.placeholder((4,), "uint32", name="C")
        >>> K = rc.placeholder((2,), "uint32", name="K")
        >>> B = rc.topi.philox(C, K)
        >>> feeds = {C: np.zeros(4, "uint32"), K: np.zeros(2, "uint32")}
        >>> (b,) = rc.oracle.evaluate([B], feeds)
        >>> print(*map(hex, b))
        0x6627e8d5 0xe169c58d 0xbc57ac4c 0x9b00dbd8
    """
    _require_counter(counter, 4, "philox")
    pair = require_key(key, "philox")

    def element(*index: Expr) -> Expr:
        *place, word = index
        block = philox_block([counter[(*place, k)] for k in range(4)], pair)
        chosen = block.words[3]
        for k in range(3):
            chosen = maths.select(word == k, block.words[k], chosen)
        return block.bind(chosen)

    return compute(counter.shape, element, name="philox", tag=INJECTIVE)


def _sample_philox(draws: Draws) -> Sample:
    counter = _sample_words(draws, (*draws.shape(0, 2), 4))
    return Sample((counter, sample_key(draws)))


@meaning_of(philox, sample=_sample_philox)
def philox_numpy(counter: Array, key: Array) -> Array:
    mask = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    block = [counter[..., word].astype(np.uint64) for word in range(4)]
    keys = key.astype(np.uint64)
    for _ in range(_PHILOX_ROUNDS):
        even, odd = (
            word * np.uint64(factor)
            for word, factor in zip(block[0::2], _FACTORS, strict=True)
        )
        block = [
            (odd >> shift) ^ block[1] ^ keys[0],
            odd & mask,
            (even >> shift) ^ block[3] ^ keys[1],
            even & mask,
        ]
        keys = keys + np.array(_WEYL, np.uint64) & mask
    return np.stack(block, axis=-1).astype(np.uint32)
