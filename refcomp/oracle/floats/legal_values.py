"""Sets of legal values of an element: an interval about a reference, and what lies outside of it.

An interval alone has no room for results that are infinite, NaN or a zero of the other sign, and
one such result must not make all others legal. So an Approx has bits for them. `over_cases`
applies a rule for intervals to each possible combination; `join` is the union of two sets.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.oracle.floats.rounding import WIDE
from refcomp.oracle.tensors.arrays import Array

PLUS_INF, MINUS_INF, NAN, PLUS_ZERO, MINUS_ZERO = (np.uint8(1 << k) for k in range(5))
NO_OTHERS = np.uint8(0)
_VALUES = {
    PLUS_INF: np.inf,
    MINUS_INF: -np.inf,
    NAN: np.nan,
    PLUS_ZERO: 0.0,
    MINUS_ZERO: -0.0,
}


@dataclass(frozen=True, slots=True)
class Approx:
    """Legal values of the elements of arrays that broadcast together.

    Attributes:
        value: the reference; of floats in WIDE, possibly not finite.
        error: the greatest distance of a legal finite value from it, in WIDE; inf: any is legal.
        doubtful: bool; the error holds because either branch may be taken.
        magnitude: the sum of the absolute values that `value` was added up from. Its ratio to
            |value| is the condition number (Higham, section 4.2).
        others: bits PLUS_INF, ... of further legal values.
        keeps_sign: bool; no legal finite value lies on the other side of zero than `value`.
        contracted: what a sum takes of each product that may overflow and that it is contracted
            into, in the range of WIDE; of other elements, these themselves. Contains all finite
            legal values. None where no element is such a product.
    """

    value: Any
    error: Any
    doubtful: Any
    magnitude: Any
    others: Any = NO_OTHERS
    keeps_sign: Any = np.False_
    contracted: Approx | None = None

    @property
    def unrounded(self) -> Approx:
        """Return what a sum takes that each product is contracted into."""
        return self if self.contracted is None else self.contracted

    @property
    def _parts(self) -> tuple[Any, ...]:
        parts = (self.value, self.error, self.doubtful, self.magnitude)
        return (*parts, self.others, self.keeps_sign)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, place: Any) -> Approx:
        """Return the elements at `place`, an index of arrays that have one shape."""
        contracted = None if self.contracted is None else self.contracted[place]
        return replace(
            Approx(*(part[place] for part in self._parts)), contracted=contracted
        )

    def __setitem__(self, place: Any, fresh: Approx) -> None:
        """Put `fresh` at `place`, an index of arrays that have one shape. It is rounded there."""
        for part, values in zip(self._parts, fresh._parts, strict=True):
            part[place] = values

    def spread(self, shape: tuple[int, ...]) -> Approx:
        """Return all parts as arrays of `shape`."""
        contracted = None if self.contracted is None else self.contracted.spread(shape)
        parts: list[Any] = [
            np.array(np.broadcast_to(part, shape)) for part in self._parts
        ]
        return replace(Approx(*parts), contracted=contracted)


def exact(value: Array, dtype: DType) -> Approx:
    """Return the set of `value` of `dtype` alone."""
    wide = value.astype(WIDE) if dtype.is_float else value
    magnitude = np.abs(wide) if dtype.is_float else WIDE(0)
    return Approx(wide, WIDE(0), np.False_, magnitude, keeps_sign=np.True_)


def zeros(shape: tuple[int, ...], dtype: DType) -> Approx:
    """Return exact zeros of `dtype`, in arrays of their own."""
    return exact(np.zeros(shape, to_numpy(dtype)), dtype).spread(shape)


def unknown(value: Array, where: Any, dtype: DType) -> Approx:
    """Return `value`, with any other as legal at `where`."""
    return lost(exact(value, dtype), where)


def lost(result: Approx, where: Any) -> Approx:
    """Return `result`, with any value legal at `where`."""
    return replace(
        result,
        error=np.where(where, WIDE(np.inf), result.error),
        doubtful=result.doubtful | where,
        keeps_sign=result.keeps_sign & ~where,
        contracted=None
        if result.contracted is None
        else lost(result.contracted, where),
    )


def unknown_truth(truth: Any, undecided: Any) -> Approx:
    """Return a bool that may be either at `undecided`."""
    error = np.where(undecided, WIDE(np.inf), WIDE(0))
    return Approx(truth, error, undecided, WIDE(0))


def ends(a: Approx) -> tuple[Any, Any]:
    """Return the least and the greatest finite value, and a little to spare."""
    reach = a.error * WIDE(1 + 2.0**-40)
    low, high = np.asarray(a.value - reach), np.asarray(a.value + reach)
    one_sided = a.keeps_sign & (reach > np.abs(a.value)) & np.isfinite(reach)
    if not np.any(one_sided):
        return low, high
    is_negative = np.signbit(a.value)
    low = np.where(one_sided & ~is_negative, WIDE(0), low)
    return low, np.where(one_sided & is_negative, WIDE(-0.0), high)


def code_of(value: Any) -> Any:
    """Return the bit of each value that is not finite; 0 of the others."""
    infinite = np.where(np.signbit(value), MINUS_INF, PLUS_INF)
    return np.where(
        np.isnan(value), NAN, np.where(np.isinf(value), infinite, NO_OTHERS)
    )


def over_cases(rule: Callable[..., Approx], *operands: Approx) -> Approx:
    """Return the union of `rule` over all that the operands may be, each an interval or one of
    their `others`."""
    plain = [replace(a, others=NO_OTHERS) if np.any(a.others) else a for a in operands]
    result = rule(*plain)
    for choice in itertools.product(*map(_present, operands)):
        if not any(choice):
            continue
        pairs = list(zip(operands, plain, choice, strict=True))
        where = np.logical_and.reduce(
            np.broadcast_arrays(
                *[(a.others & bit) != 0 for a, _, bit in pairs if bit], np.True_
            )
        )
        if np.any(where):
            chosen = [_case(bit) if bit else interval for _, interval, bit in pairs]
            result = join(result, rule(*chosen), where)
    return result


def _present(a: Approx) -> list[np.uint8]:
    present = np.bitwise_or.reduce(np.ravel(a.others), initial=0)
    return [NO_OTHERS, *(bit for bit in _VALUES if present & bit)]


def _case(bit: np.uint8) -> Approx:
    value = WIDE(_VALUES[bit])
    return Approx(value, WIDE(0), np.False_, np.abs(value), keeps_sign=np.True_)


def pick(condition: Any, yes: Approx, no: Approx) -> Approx:
    """Return the elements of `yes` where `condition` holds, and those of `no` elsewhere."""
    pairs = zip(yes._parts, no._parts, strict=True)
    picked = Approx(*(np.where(condition, one, other) for one, other in pairs))
    if yes.contracted is None and no.contracted is None:
        return picked
    return replace(picked, contracted=pick(condition, yes.unrounded, no.unrounded))


def join(a: Approx, b: Approx, where: Any) -> Approx:
    """Return the union of `a` and `b` at `where`, and `a` elsewhere. Its reference is that of `a`,
    or that of `b` where only that one is finite."""
    if np.asarray(a.value).dtype != WIDE:
        return lost(a, where & ((a.value != b.value) | (a.error > 0) | (b.error > 0)))
    joined = _union(a, b, where)
    if a.contracted is None and b.contracted is None:
        return joined
    return replace(joined, contracted=_union(a.unrounded, b.unrounded, where))


def _union(a: Approx, b: Approx, where: Any) -> Approx:
    """Return what `join` does, of rounded or of unrounded elements."""
    finite = np.isfinite(a.value)
    both, swapped = (
        finite & np.isfinite(b.value),
        where & ~finite & np.isfinite(b.value),
    )
    hull = np.where(both, np.abs(a.value - b.value) + b.error, b.error)
    grown = where & (hull > a.error) & (both | np.isinf(hull))
    error = np.where(swapped, b.error, np.where(grown, hull, a.error))
    error = np.where(swapped & np.isinf(a.error), a.error, error)
    signs_differ = np.signbit(a.value) != np.signbit(b.value)
    more = b.others | code_of(b.value) | np.where(swapped, code_of(a.value), NO_OTHERS)
    zero = np.where(np.signbit(b.value), MINUS_ZERO, PLUS_ZERO)
    more = more | np.where(
        (a.value == 0) & (b.value == 0) & signs_differ, zero, NO_OTHERS
    )
    return Approx(
        np.where(swapped, b.value, a.value),
        error,
        a.doubtful | (where & b.doubtful) | (grown & ~swapped),
        np.where(swapped, b.magnitude, a.magnitude),
        np.where(where, a.others | more, a.others),
        np.where(
            swapped,
            b.keeps_sign,
            a.keeps_sign & (~where | (b.keeps_sign & ~signs_differ)),
        ),
    )
