"""How undefined bits spread: for bitwise instructions bit by bit, so that padding does no harm.

Each function takes the shadows of the sources, then their values, all as unsigned integers, and
gives the shadow of the result: 1 for a bit that nothing wrote.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.instructions.operation import Function
from refcomp.emulator.machine.arrays import Array


def of_and(s: Array, t: Array, a: Array, b: Array) -> Array:
    """A defined 0 makes 0."""
    return (s & t) | (s & b) | (t & a)


def of_or(s: Array, t: Array, a: Array, b: Array) -> Array:
    """A defined 1 makes 1."""
    return (s & t) | (s & ~b) | (t & ~a)


def of_xor(s: Array, t: Array, a: Array, b: Array) -> Array:
    return s | t


def of_copy(s: Array, a: Array) -> Array:
    return s


def of_sum(s: Array, t: Array, a: Array, b: Array) -> Array:
    """Carries lead upwards only."""
    both = s | t
    return both | (~both + np.asarray(1, both.dtype))


def of_low_bits(*both: Array) -> Array:
    """Each bit depends on the bits of the sources up to it: sums, differences, products. A source
    of one bit (a carry) counts as the lowest."""
    shadows = both[: len(both) // 2]
    widest = max((np.asarray(s) for s in shadows), key=lambda s: s.dtype.itemsize)
    total = np.zeros((), widest.dtype)
    for shadow in shadows:
        total = total | np.asarray(shadow).astype(widest.dtype)
    return total | (~total + np.asarray(1, total.dtype))


def of_low_bits_and_carry(*both: Array) -> tuple[Array, Array]:
    """The same, of an instruction that also gives a carry."""
    total = of_low_bits(*both)
    return total, total != 0


def of_and_inverted(s: Array, t: Array, a: Array, b: Array) -> Array:
    return of_and(s, t, a, ~b)


def of_or_inverted(s: Array, t: Array, a: Array, b: Array) -> Array:
    return of_or(s, t, a, ~b)


def of_choice(s: Array, t: Array, c: Array, a: Array, b: Array, chosen: Array) -> Array:
    """`b` where `chosen`, else `a`; where that is undefined, what both have in common is not."""
    either = s | t | (a ^ b)
    return np.where(c, either, np.where(chosen, t, s))


def by_shift(function: Function, amount: int) -> Callable[..., Array]:
    """Of a shift whose amount is source number `amount` of two."""

    def spread(*both: Array) -> Array:
        shadows, values = both[:2], both[2:]
        moved: Any = [shadows[0], shadows[1]]
        moved[amount] = values[amount]
        wide = function(*moved)
        return np.where(shadows[amount] != 0, np.asarray(~np.zeros_like(wide)), wide)

    return spread


def by_signed_shift(function: Function, amount: int) -> Callable[..., Array]:
    """Of one that brings in the sign, which is undefined where that is."""

    def moved(*given: Array) -> Array:
        pair: Any = list(given)
        shadow = np.asarray(pair[1 - amount])
        pair[1 - amount] = shadow.view(f"i{shadow.itemsize}")
        found: Array = np.asarray(function(*pair)).view(shadow.dtype)
        return found

    return by_shift(moved, amount)


def by_extension(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """Of an instruction that widens a part of its source by its sign."""
    return lambda s, a: np.asarray(function(s)).view(f"u{np.asarray(s).itemsize}")


def by_field(function: Function, sources: int) -> Callable[..., Array]:
    """Of an instruction that only moves bits of its first source, as the others tell."""

    def spread(*both: Array) -> Array:
        shadows, values = both[:sources], both[sources:]
        moved = function(shadows[0], *values[1:])
        unknown = np.zeros(np.shape(moved), np.bool_)
        for shadow in shadows[1:]:
            unknown = unknown | (shadow != 0)
        return np.where(unknown, ~np.zeros_like(moved), moved)

    return spread


class Tracked(NamedTuple):
    """A function of two integers, with how undefined bits spread through it."""

    function: Callable[[Array, Array], Array]
    # Shadows of the sources, then their values -> shadow of the result.
    spread: Callable[[Array, Array, Array, Array], Array]


def chained(first: Tracked, second: Tracked) -> Function:
    """Of `second(first(a, b), c)`."""

    def both(s: Array, t: Array, u: Array, a: Array, b: Array, c: Array) -> Array:
        result: Array = second.spread(
            first.spread(s, t, a, b), u, first.function(a, b), c
        )
        return result

    return both
