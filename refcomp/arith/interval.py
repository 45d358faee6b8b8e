"""Closed intervals of integers; `None` stands for a side without a bound.

Arithmetic is over the unbounded integers: nothing wraps. Each operation returns an interval that
holds all results. It is the smallest such interval if the operands are independent. Division
follows the nodes of `refcomp.ir.expr`: x // 0 and x mod 0 are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, sub

from refcomp.foundation.records import record

_INFINITY = float("inf")
_End = int | float  # an integer or an infinity, while results are computed
_Choice = Callable[[int, int], int]


@record
class Interval:
    """The integers from `low` to `high`. An interval is never empty."""

    low: int | None = None  # None: no bound
    high: int | None = None

    @staticmethod
    def point(value: int) -> Interval:
        """Return the interval that holds `value` alone."""
        return Interval(value, value)

    @property
    def is_point(self) -> bool:
        """Return True if the interval holds exactly one value."""
        return self.low is not None and self.low == self.high

    @property
    def is_finite(self) -> bool:
        """Return True if both sides are bounded."""
        return self.low is not None and self.high is not None

    def contains(self, value: int) -> bool:
        """Return True if `value` lies in the interval."""
        if self.low is not None and value < self.low:
            return False
        return self.high is None or value <= self.high

    def lies_in(self, other: Interval) -> bool:
        """Return True if `other` holds every value of this interval."""
        if other.low is not None and not self.is_at_least(other.low):
            return False
        return other.high is None or self.is_at_most(other.high)

    def lies_in_or_open(self, other: Interval) -> bool:
        """Return True if each bound that this interval has lies in `other`."""
        if self.low is not None and not other.contains(self.low):
            return False
        return self.high is None or other.contains(self.high)

    def is_at_least(self, value: int) -> bool:
        """Return True if all values are >= `value`."""
        return self.low is not None and self.low >= value

    def is_at_most(self, value: int) -> bool:
        """Return True if all values are <= `value`."""
        return self.high is not None and self.high <= value

    def union(self, other: Interval) -> Interval:
        """Return the smallest interval that holds both."""
        low = _if_bounded(min, self.low, other.low)
        high = _if_bounded(max, self.high, other.high)
        return Interval(low, high)

    def intersect(self, other: Interval) -> Interval:
        """Return the values that both hold, or this interval if there are none."""
        low = _tighter(max, self.low, other.low)
        high = _tighter(min, self.high, other.high)
        if low is not None and high is not None and low > high:
            # The facts contradict each other, so the code is unreachable and any answer is right.
            return self
        return Interval(low, high)

    def __add__(self, other: Interval) -> Interval:
        low = _if_bounded(add, self.low, other.low)
        high = _if_bounded(add, self.high, other.high)
        return Interval(low, high)

    def __sub__(self, other: Interval) -> Interval:
        low = _if_bounded(sub, self.low, other.high)
        high = _if_bounded(sub, self.high, other.low)
        return Interval(low, high)

    def shift(self, offset: int) -> Interval:
        """Return the interval of x + `offset`."""
        if offset == 0:
            return self
        low = None if self.low is None else self.low + offset
        high = None if self.high is None else self.high + offset
        return Interval(low, high)

    def scale(self, factor: int) -> Interval:
        """Return the interval of x * `factor`."""
        if factor == 0:
            return Interval(0, 0)
        low = None if self.low is None else self.low * factor
        high = None if self.high is None else self.high * factor
        return Interval(low, high) if factor > 0 else Interval(high, low)

    def __mul__(self, other: Interval) -> Interval:
        return _over_corners(_product, self, other)

    def minimum(self, other: Interval) -> Interval:
        """Return the interval of min(a, b)."""
        low = _if_bounded(min, self.low, other.low)
        high = _tighter(min, self.high, other.high)
        return Interval(low, high)

    def maximum(self, other: Interval) -> Interval:
        """Return the interval of max(a, b)."""
        low = _tighter(max, self.low, other.low)
        high = _if_bounded(max, self.high, other.high)
        return Interval(low, high)

    def floordiv(self, divisor: Interval) -> Interval:
        """Return the interval of a // b."""
        # The quotient is monotone in each operand only while the divisor keeps its sign. So
        # positive and negative divisors are handled apart, and 0 by definition.
        parts: list[Interval] = []
        if divisor.high is None or divisor.high > 0:
            positive = Interval(max(1, divisor.low or 1), divisor.high)
            parts.append(_over_corners(_quotient, self, positive))
        if divisor.low is None or divisor.low < 0:
            high = -1 if divisor.high is None else min(-1, divisor.high)
            parts.append(_over_corners(_quotient, self, Interval(divisor.low, high)))
        if divisor.contains(0):
            parts.append(Interval(0, 0))
        return reduce(Interval.union, parts)

    def floormod(self, divisor: Interval) -> Interval:
        """Return the interval of a mod b, the remainder of `floordiv`."""
        is_below = self.high is not None and divisor.is_at_least(self.high + 1)
        if is_below and self.is_at_least(0):
            return self
        # The remainder has the sign of the divisor and a smaller absolute value. It also has an
        # absolute value of at most |a| if `a` has that sign, too.
        low: int | None = 0
        high: int | None = 0
        if divisor.high is None or divisor.high > 0:
            high = None if divisor.high is None else divisor.high - 1
            if self.is_at_least(0):
                high = _tighter(min, high, self.high)
        if divisor.low is None or divisor.low < 0:
            low = None if divisor.low is None else divisor.low + 1
            if self.is_at_most(0):
                low = _tighter(max, low, self.low)
        return Interval(low, high)


def _tighter(choose: _Choice, a: int | None, b: int | None) -> int | None:
    """Return the bound that follows from both `a` and `b`, each of which may be missing."""
    if a is None or b is None:
        return b if a is None else a
    return choose(a, b)


def _if_bounded(combine: _Choice, a: int | None, b: int | None) -> int | None:
    """Return `combine(a, b)`, or None if either bound is missing."""
    return None if a is None or b is None else combine(a, b)


def _over_corners(
    operation: Callable[[_End, _End], _End], a: Interval, b: Interval
) -> Interval:
    """Return the interval of an operation that is monotone in each operand."""
    values = [operation(x, y) for x in _ends(a) for y in _ends(b)]
    low = min(values)
    high = max(values)
    return Interval(
        low=low if isinstance(low, int) else None,
        high=high if isinstance(high, int) else None,
    )


def _ends(interval: Interval) -> tuple[_End, _End]:
    low = -_INFINITY if interval.low is None else interval.low
    high = _INFINITY if interval.high is None else interval.high
    return low, high


def _product(a: _End, b: _End) -> _End:
    # A factor 0 gives 0 even at an infinite end: every value up to that end is finite.
    if a == 0 or b == 0:
        return 0
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return _INFINITY if (a > 0) == (b > 0) else -_INFINITY


def _quotient(a: _End, b: _End) -> _End:
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    # The limit of floor(a / b) for a finite `a` and an infinite divisor is 0, or -1 from below.
    if isinstance(a, int):
        return 0 if a == 0 or (a > 0) == (b > 0) else -1
    return _INFINITY if (a > 0) == (b > 0) else -_INFINITY
