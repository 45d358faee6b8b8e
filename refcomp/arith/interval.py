"""Intervals of integers, closed, with `None` for a side that has no bound.

Arithmetic here is that of the integers: nothing wraps. Every operation returns an interval that
holds all results, and the least one where the operands are independent. Division follows the
nodes of `refcomp.ir.expr`: x // 0 and x mod 0 are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

_INFINITY = float("inf")
_End = int | float  # an integer or an infinity, while products are formed


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `low` to `high`; None: no bound on that side. Never empty by itself."""

    low: int | None = None
    high: int | None = None

    @staticmethod
    def point(value: int) -> Interval:
        """The interval that holds `value` alone."""
        return Interval(value, value)

    @property
    def is_point(self) -> bool:
        """Whether it holds one value."""
        return self.low is not None and self.low == self.high

    @property
    def is_finite(self) -> bool:
        """Whether both sides are bounded."""
        return self.low is not None and self.high is not None

    def contains(self, value: int) -> bool:
        """Whether `value` lies in it."""
        above = self.low is None or self.low <= value
        return above and (self.high is None or value <= self.high)

    def lies_in(self, other: Interval) -> bool:
        """Whether every value of this interval is one of `other`."""
        low = other.low is None or (self.low is not None and self.low >= other.low)
        return low and (
            other.high is None or (self.high is not None and self.high <= other.high)
        )

    def lies_in_or_open(self, other: Interval) -> bool:
        """Whether every bound it has lies in `other`; a missing one counts as lying in it."""
        low = self.low is None or other.contains(self.low)
        return low and (self.high is None or other.contains(self.high))

    def is_at_least(self, value: int) -> bool:
        """Whether all values are >= `value`."""
        return self.low is not None and self.low >= value

    def is_at_most(self, value: int) -> bool:
        """Whether all values are <= `value`."""
        return self.high is not None and self.high <= value

    def union(self, other: Interval) -> Interval:
        """The least interval that holds both."""
        return _from_ends((*_ends(self), *_ends(other)))

    def intersect(self, other: Interval) -> Interval:
        """What both hold; this interval when they have nothing in common."""
        low = _inner(self.low, other.low, max)
        high = _inner(self.high, other.high, min)
        if low is not None and high is not None and low > high:
            return self  # contradictory facts: the code is unreachable, so any answer will do
        return Interval(low, high)

    def __add__(self, other: Interval) -> Interval:
        low = None if self.low is None or other.low is None else self.low + other.low
        high = (
            None if self.high is None or other.high is None else self.high + other.high
        )
        return Interval(low, high)

    def shift(self, offset: int) -> Interval:
        """Every value plus `offset`."""
        if offset == 0:
            return self
        low = None if self.low is None else self.low + offset
        return Interval(low, None if self.high is None else self.high + offset)

    def scale(self, factor: int) -> Interval:
        """Every value times `factor`."""
        if factor == 0:
            return Interval(0, 0)
        low = None if self.low is None else self.low * factor
        high = None if self.high is None else self.high * factor
        return Interval(low, high) if factor > 0 else Interval(high, low)

    def __mul__(self, other: Interval) -> Interval:
        return _from_ends(_product(a, b) for a in _ends(self) for b in _ends(other))

    def minimum(self, other: Interval) -> Interval:
        """The values of min(a, b)."""
        low = (
            None if self.low is None or other.low is None else min(self.low, other.low)
        )
        return Interval(low, _inner(self.high, other.high, min))

    def maximum(self, other: Interval) -> Interval:
        """The values of max(a, b)."""
        high = (
            None
            if self.high is None or other.high is None
            else max(self.high, other.high)
        )
        return Interval(_inner(self.low, other.low, max), high)

    def floordiv(self, divisor: Interval) -> Interval:
        """The values of a // b."""
        parts = [_quotients(self, part) for part in _signed_parts(divisor)]
        if divisor.contains(0):
            parts.append(Interval(0, 0))
        return _union_of(parts)

    def floormod(self, divisor: Interval) -> Interval:
        """The values of a mod b, the remainder of floordiv."""
        if (
            self.is_at_least(0)
            and self.high is not None
            and divisor.is_at_least(self.high + 1)
        ):
            return self
        low: int | None = 0
        high: int | None = 0
        if divisor.high is None or divisor.high > 0:
            high = None if divisor.high is None else divisor.high - 1
            if self.is_at_least(0):
                high = _inner(high, self.high, min)
        if divisor.low is None or divisor.low < 0:
            low = None if divisor.low is None else divisor.low + 1
            if self.is_at_most(0):
                low = _inner(low, self.low, max)
        return Interval(low, high)


def _inner(
    a: int | None, b: int | None, choose: Callable[[int, int], int]
) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return choose(a, b)


def _ends(interval: Interval) -> tuple[_End, _End]:
    low = -_INFINITY if interval.low is None else interval.low
    return low, _INFINITY if interval.high is None else interval.high


def _product(a: _End, b: _End) -> _End:
    if a == 0 or b == 0:
        return 0
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return _INFINITY if (a > 0) == (b > 0) else -_INFINITY


def _quotient(a: _End, b: _End) -> _End:
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    # A finite value over an endless divisor: just below or at zero.
    if isinstance(a, int):
        return 0 if a == 0 or (a > 0) == (b > 0) else -1
    return _INFINITY if (a > 0) == (b > 0) else -_INFINITY


def _from_ends(ends: Iterable[_End]) -> Interval:
    values = tuple(ends)
    low = min(values)
    high = max(values)
    return Interval(
        low if isinstance(low, int) else None, high if isinstance(high, int) else None
    )


def _signed_parts(divisor: Interval) -> list[Interval]:
    """The positive and the negative divisors."""
    parts = []
    if divisor.high is None or divisor.high > 0:
        parts.append(Interval(max(1, divisor.low or 1), divisor.high))
    if divisor.low is None or divisor.low < 0:
        high = -1 if divisor.high is None else min(-1, divisor.high)
        parts.append(Interval(divisor.low, high))
    return parts


def _quotients(a: Interval, b: Interval) -> Interval:
    return _from_ends(_quotient(x, y) for x in _ends(a) for y in _ends(b))


def _union_of(parts: list[Interval]) -> Interval:
    result = parts[0]
    for part in parts[1:]:
        result = result.union(part)
    return result
