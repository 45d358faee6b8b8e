"""The spread of undefined bits from sources to results.

Functions take the values of all sources, and then their undefined bits, as `ValueRule` calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from refcomp.emulator.instructions import spreads
from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.ptx.instructions.types import as_unsigned, unsigned_of

Spread: TypeAlias = Callable[..., Array]


def shadows_first(spread: Spread) -> Spread:
    """Return a function of `refcomp.emulator.instructions.spreads` for use in a rule."""

    def undefined(*both: Array) -> Array:
        middle = len(both) // 2
        values = map(as_unsigned, both[:middle])
        shadows = map(np.asarray, both[middle:])
        return np.asarray(spread(*shadows, *values))

    return undefined


def all_bits(kind: str, where: Mask) -> Array:
    """Return unsigned integers. All bits of a type are set where `where` holds, else none."""
    unsigned = unsigned_of(kind)
    zero = np.zeros((), unsigned)
    return np.where(where, ~zero, zero)


def any_or(kind: str, unspecified: Callable[..., Mask]) -> Spread:
    """Return the usual spread, for an instruction whose result PTX does not specify in some cases.

    Args:
        kind: the type of the result.
        unspecified: a function of the values of the sources. It returns True where PTX does not
            specify the result.
    """

    def undefined(*both: Array) -> Array:
        middle = len(both) // 2
        where = spreads.any_undefined(both[middle:]) | unspecified(*both[:middle])
        return all_bits(kind, where)

    return undefined


def of_selp(a: Array, b: Array, chosen: Array, s: Array, t: Array, c: Array) -> Array:
    """Spread through `a if chosen else b`."""
    first = as_unsigned(a)
    second = as_unsigned(b)
    return spreads.of_choice(t, s, c, second, first, chosen)
