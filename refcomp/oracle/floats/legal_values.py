"""Sets of legal values: an interval about a reference, and values that lie outside of it.

Infinities, NaN and a zero of the other sign do not fit into an interval, and one such result must
not make all other values legal. So an Approx has a bit for each of them. `over_cases` applies a
rule for intervals to each combination of cases; `join` is the union of two sets.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

import numpy as np

from refcomp.foundation.dtype import F64, DType, to_numpy
from refcomp.foundation.records import record
from refcomp.oracle.floats.rounding import FALSE, INFINITY, TRUE, WIDE, ZERO
from refcomp.oracle.tensors.arrays import Array

# Bits of `Approx.others`.
PLUS_INF = np.uint8(1)
MINUS_INF = np.uint8(2)
NAN = np.uint8(4)
PLUS_ZERO = np.uint8(8)
MINUS_ZERO = np.uint8(16)
NO_OTHERS: Array = np.broadcast_to(np.uint8(0), ())
_VALUES = {
    PLUS_INF: np.array(np.inf),
    MINUS_INF: np.array(-np.inf),
    NAN: np.array(np.nan),
    PLUS_ZERO: np.array(0.0),
    MINUS_ZERO: np.array(-0.0),
}
# Covers the roundings of WIDE where intervals are compared.
MARGIN = WIDE(1 + 2.0**-40)

_Place = Any  # an index of numpy, such as a mask


@record(eq=False)
class Approx:
    """Legal values of the elements of arrays that broadcast together."""

    value: Array  # the reference; floats in WIDE, possibly not finite
    # The greatest distance of a legal finite value from the reference, in WIDE; inf: any is legal.
    error: Array
    doubtful: Array  # bool; the error holds because rounding decides a branch
    # The sum of the absolute values that `value` was added up from. Its ratio to |value| is the
    # condition number (Higham, section 4.2).
    magnitude: Array
    # Bits PLUS_INF, ... of legal values outside of the interval.
    others: Array = field(default_factory=lambda: NO_OTHERS)
    # bool; each legal finite value has the sign of the reference, or is 0.
    keeps_sign: Array = field(default_factory=lambda: FALSE)
    # The same elements as a contracted sum takes them: a product that may overflow is not rounded,
    # and stays finite in the range of WIDE. Contains all finite legal values. None if no element is
    # such a product.
    contracted: Approx | None = None

    @property
    def absolute(self) -> Array:
        """Return the absolute value of the reference."""
        return np.abs(self.value)

    @property
    def is_negative(self) -> Array:
        """Return where the reference has a minus sign."""
        return np.signbit(self.value)

    @property
    def is_nan(self) -> Array:
        """Return where the reference is NaN."""
        return np.isnan(self.value)

    @property
    def is_exact(self) -> Array:
        """Return where the interval holds the reference alone."""
        return np.equal(self.error, 0)

    @property
    def is_given(self) -> bool:
        """Return True if all elements are exact because of how they were made, as by `exact`.

        This looks at no element. So it is False of some sets whose elements are all exact.
        """
        return self.error is ZERO and self.others is NO_OTHERS

    @property
    def is_unbounded(self) -> Array:
        """Return where any value is legal."""
        return np.isinf(self.error)

    @property
    def unrounded(self) -> Approx:
        """Return what a contracted sum takes."""
        return self if self.contracted is None else self.contracted

    @property
    def _parts(self) -> tuple[Array, ...]:
        parts = (self.value, self.error, self.doubtful, self.magnitude)
        return (*parts, self.others, self.keeps_sign)

    def _map(self, function: Callable[[Array], Array]) -> Approx:
        contracted = None if self.contracted is None else self.contracted._map(function)
        return self._of(*map(function, self._parts), contracted=contracted)

    @staticmethod
    def _of(*parts: Array, contracted: Approx | None = None) -> Approx:
        """Return the set with these `_parts`."""
        value, error, doubtful, magnitude, others, keeps_sign = parts
        return Approx(value, error, doubtful, magnitude, others, keeps_sign, contracted)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, place: _Place) -> Approx:
        """Return the elements at `place`; all parts have one shape."""
        return self._map(lambda part: part[place])

    def at(self, place: _Place, shape: tuple[int, ...]) -> Approx:
        """Return the elements at `place` of arrays that broadcast to `shape`.

        A part that is one number for all elements stays that number.
        """

        def part_at(part: Array) -> Array:
            if part.ndim == 0:
                return part
            return (part if part.shape == shape else np.broadcast_to(part, shape))[
                place
            ]

        return self._map(part_at)

    def __setitem__(self, place: _Place, elements: Approx) -> None:
        """Store `elements` at `place`, products rounded; all parts have one shape."""
        for part, values in zip(self._parts, elements._parts, strict=True):
            part[place] = values

    def spread(self, shape: tuple[int, ...]) -> Approx:
        """Return all parts as fresh arrays of `shape`."""
        return self._map(lambda part: np.array(np.broadcast_to(part, shape)))


def exact(value: Array, dtype: DType) -> Approx:
    """Return the set of `value` of `dtype` alone."""
    magnitude = ZERO
    if dtype.is_float:
        value = value.astype(WIDE)
        magnitude = np.abs(value)
    return Approx(
        value=value,
        error=ZERO,
        doubtful=FALSE,
        magnitude=magnitude,
        keeps_sign=TRUE,
    )


def zeros(shape: tuple[int, ...], dtype: DType) -> Approx:
    """Return exact zeros of `dtype`, in fresh arrays."""
    value = np.zeros(shape, to_numpy(dtype))
    return exact(value, dtype).spread(shape)


def unknown(value: Array, where: Array, dtype: DType) -> Approx:
    """Return exact values of `dtype`, but any value at `where`."""
    return unbounded(exact(value, dtype), where)


def unbounded(result: Approx, where: Array) -> Approx:
    """Return `result`, but any value at `where`."""
    contracted = result.contracted
    return replace(
        result,
        error=np.where(where, INFINITY, result.error),
        doubtful=result.doubtful | where,
        keeps_sign=result.keeps_sign & ~where,
        contracted=None if contracted is None else unbounded(contracted, where),
    )


def unknown_truth(truth: Array, undecided: Array) -> Approx:
    """Return exact bools, but either value at `undecided`."""
    error = np.where(undecided, INFINITY, ZERO)
    return Approx(truth, error, undecided, ZERO)


def ends(a: Approx) -> tuple[Array, Array]:
    """Return a lower and an upper bound of the finite values."""
    reach = a.error * MARGIN
    low = np.asarray(a.value - reach)
    high = np.asarray(a.value + reach)
    one_sided = a.keeps_sign & (reach > a.absolute) & np.isfinite(reach)
    if not np.any(one_sided):
        return low, high
    is_negative = a.is_negative
    low = np.where(one_sided & ~is_negative, ZERO, low)
    return low, np.where(one_sided & is_negative, WIDE(-0.0), high)


def where_bit(mask: Array, bit: np.uint8) -> Array:
    """Return `bit` where `mask` holds, else no bit."""
    return np.where(mask, bit, NO_OTHERS)


def code_of(value: Array) -> Array:
    """Return the bit of each infinity and NaN, and no bit of finite values."""
    infinite = np.where(np.signbit(value), MINUS_INF, PLUS_INF)
    code = np.where(np.isinf(value), infinite, NO_OTHERS)
    return np.where(np.isnan(value), NAN, code)


def over_cases(rule: Callable[..., Approx], *operands: Approx) -> Approx:
    """Return the union of `rule` over all combinations of cases.

    The cases of an operand are its interval and each of its `others`.
    """
    if all(operand.others is NO_OTHERS for operand in operands):
        return rule(*operands)
    intervals = [replace(operand, others=NO_OTHERS) for operand in operands]
    result = rule(*intervals)
    for bits in itertools.product(*map(_cases, operands)):
        where = TRUE
        chosen = list(intervals)
        for k, bit in enumerate(bits):
            if bit is not None:
                where = where & ((operands[k].others & bit) != 0)
                chosen[k] = exact(_VALUES[bit], F64)
        if any(bits) and np.any(where):
            result = join(result, rule(*chosen), where)
    return result


def _cases(a: Approx) -> list[np.uint8 | None]:
    """Return None for the interval, and the bits of all elements."""
    present = np.bitwise_or.reduce(np.ravel(a.others), initial=0)
    return [None, *(bit for bit in _VALUES if present & bit)]


def pick(condition: Array, yes: Approx, no: Approx) -> Approx:
    """Return the elements of `yes` where `condition` holds, and those of `no` elsewhere."""
    pairs = zip(yes._parts, no._parts, strict=True)
    picked = Approx._of(*[np.where(condition, a, b) for a, b in pairs])
    if yes.contracted is None and no.contracted is None:
        return picked
    contracted = pick(condition, yes.unrounded, no.unrounded)
    return replace(picked, contracted=contracted)


def join(a: Approx, b: Approx, where: Array) -> Approx:
    """Return the union of `a` and `b` at `where`, and `a` elsewhere.

    The reference is that of `a`; where only that of `b` is finite, that of `b`.
    """
    if np.asarray(a.value).dtype != WIDE:
        same = (a.value == b.value) & a.is_exact & b.is_exact
        return unbounded(a, where & ~same)
    joined = _union(a, b, where)
    if a.contracted is None and b.contracted is None:
        return joined
    contracted = _union(a.unrounded, b.unrounded, where)
    return replace(joined, contracted=contracted)


def _union(a: Approx, b: Approx, where: Array) -> Approx:
    """Return what `join` does, of rounded or of unrounded elements."""
    is_finite = np.isfinite(a.value)
    both_finite = is_finite & np.isfinite(b.value)
    swapped = where & ~is_finite & np.isfinite(b.value)
    apart = np.abs(a.value - b.value)
    distance = np.where(both_finite, apart, ZERO) + b.error
    grown = where & (distance > a.error) & (both_finite | np.isinf(distance))
    error = np.where(grown, distance, a.error)
    error = np.where(swapped & ~a.is_unbounded, b.error, error)
    signs_differ = a.is_negative != b.is_negative
    zeros_differ = (a.value == 0) & (b.value == 0) & signs_differ
    zero = np.where(b.is_negative, MINUS_ZERO, PLUS_ZERO)
    # Not `|=`: the operands' shapes broadcast, and `where` may have more elements than they.
    others = a.others | b.others | code_of(b.value)
    others = others | np.where(swapped, code_of(a.value), NO_OTHERS)
    others = others | np.where(zeros_differ, zero, NO_OTHERS)
    keeps_sign = a.keeps_sign & (~where | (b.keeps_sign & ~signs_differ))
    return Approx(
        value=np.where(swapped, b.value, a.value),
        error=error,
        doubtful=a.doubtful | (where & b.doubtful) | (grown & ~swapped),
        magnitude=np.where(swapped, b.magnitude, a.magnitude),
        others=np.where(where, others, a.others),
        keeps_sign=np.where(swapped, b.keeps_sign, keeps_sign),
    )
