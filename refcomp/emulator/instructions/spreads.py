"""The spread of undefined bits from sources to results.

Bitwise instructions spread them bit by bit, so that undefined padding beside a field does not
make the field undefined. Each function takes the shadows of the sources, then their values, all as
unsigned integers. It returns the shadow of the result: 1 for an undefined bit.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from refcomp.emulator.instructions.operation import Function
from refcomp.emulator.machine.arrays import UNSIGNED, Array, Mask, bits_of


def any_undefined(shadows: Iterable[Array]) -> Mask:
    """Return where any of the shadows has undefined bits."""
    found = np.zeros((), np.bool_)
    for shadow in shadows:
        found = found | (shadow != 0)
    return found


def all_bits(kind: str, where: Mask) -> Array:
    """Return, as unsigned integers, all bits of a value of type `kind` set `where`, else 0."""
    unsigned = UNSIGNED[bits_of(kind)]
    zero: Array = np.zeros((), unsigned)
    return np.where(where, ~zero, zero)


def of_and(s: Array, t: Array, a: Array, b: Array) -> Array:
    """Spread through `a & b`: a defined 0 makes a defined 0."""
    return (s & t) | (s & b) | (t & a)


def of_or(s: Array, t: Array, a: Array, b: Array) -> Array:
    """Spread through `a | b`: a defined 1 makes a defined 1."""
    return (s & t) | (s & ~b) | (t & ~a)


def of_xor(s: Array, t: Array, a: Array, b: Array) -> Array:
    return s | t


def of_copy(s: Array, a: Array) -> Array:
    return s


def of_sum(s: Array, t: Array, a: Array, b: Array) -> Array:
    """Spread through `a + b`: carries lead upwards only."""
    both = s | t
    return both | (~both + np.asarray(1, both.dtype))


def of_low_bits(*both: Array) -> Array:
    """Spread from each bit to all higher ones, as in sums, differences and products.

    A source of one bit (a carry) counts as the lowest bit.
    """
    shadows = [np.asarray(shadow) for shadow in both[: len(both) // 2]]
    widest = max((shadow.dtype for shadow in shadows), key=lambda dtype: dtype.itemsize)
    total: Array = np.zeros((), widest)
    for shadow in shadows:
        total = total | shadow.astype(widest)
    higher: Array = ~total + np.asarray(1, widest)
    spread: Array = total | higher
    return spread


def of_low_bits_and_carry(*both: Array) -> tuple[Array, Mask]:
    """Spread as `of_low_bits`, for an instruction that also returns a carry."""
    total = of_low_bits(*both)
    return total, total != 0


def of_and_inverted(s: Array, t: Array, a: Array, b: Array) -> Array:
    return of_and(s, t, a, ~b)


def of_or_inverted(s: Array, t: Array, a: Array, b: Array) -> Array:
    return of_or(s, t, a, ~b)


def of_choice(s: Array, t: Array, c: Array, a: Array, b: Array, chosen: Array) -> Array:
    """Spread through the choice of `b` where `chosen`, else `a`.

    Where `chosen` is undefined, the bits that `a` and `b` have in common are still defined.
    """
    either = s | t | (a ^ b)
    return np.where(c, either, np.where(chosen, t, s))


def by_shift(function: Function, amount: int) -> Function:
    """Return the spread of a shift whose amount is source number `amount` of two."""

    def spread(*both: Array) -> Array:
        shadows = both[:2]
        values = both[2:]
        moved = list(shadows)
        moved[amount] = values[amount]
        wide: Array = function(*moved)
        return np.where(shadows[amount] != 0, np.asarray(~np.zeros_like(wide)), wide)

    return spread


def by_signed_shift(function: Function, amount: int) -> Function:
    """Return the spread of a shift that brings in the sign, which may be undefined."""

    def moved(first: Array, second: Array) -> Array:
        pair = [first, second]
        shadow = np.asarray(pair[1 - amount])
        pair[1 - amount] = shadow.view(f"i{shadow.itemsize}")
        return np.asarray(function(*pair)).view(shadow.dtype)

    return by_shift(moved, amount)


def by_extension(function: Function) -> Function:
    """Return the spread of an instruction that sign-extends a part of its source."""
    return lambda s, a: np.asarray(function(s)).view(f"u{np.asarray(s).itemsize}")


def by_field(function: Function, sources: int) -> Function:
    """Return the spread of an instruction that moves bits of its first source.

    The other sources say where to. Where they are undefined, so is the whole result.
    """

    def spread(*both: Array) -> Array:
        shadows = both[:sources]
        values = both[sources:]
        moved: Array = function(shadows[0], *values[1:])
        return np.where(any_undefined(shadows[1:]), ~np.zeros_like(moved), moved)

    return spread


class Tracked(NamedTuple):
    """A function of two integers, with the spread of undefined bits through it."""

    function: Function
    # Shadows of the sources, then their values -> shadow of the result.
    spread: Function


def chained(first: Tracked, second: Tracked) -> Function:
    """Return the spread of `second(first(a, b), c)`."""

    def spread(s: Array, t: Array, u: Array, a: Array, b: Array, c: Array) -> Array:
        inner = first.spread(s, t, a, b)
        result: Array = second.spread(inner, u, first.function(a, b), c)
        return result

    return spread
