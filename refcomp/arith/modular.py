"""Congruences: the integers coefficient * k + base, for all integers k.

Arithmetic is over the unbounded integers. `wrapped` returns what survives wrapping modulo 2^bits.
"""

from __future__ import annotations

from math import gcd

from refcomp.foundation.records import record


@record
class Modular:
    """The integers congruent to `base` modulo `coefficient`; if that is 0, `base` alone.

    The coefficient is >= 0, and 0 <= base < coefficient unless it is 0. Modular(1, 0) holds every
    integer.
    """

    coefficient: int = 1
    base: int = 0

    def __post_init__(self) -> None:
        if self.coefficient:
            object.__setattr__(self, "base", self.base % self.coefficient)

    @staticmethod
    def point(value: int) -> Modular:
        """Return the class that holds `value` alone."""
        return Modular(0, value)

    def contains(self, value: int) -> bool:
        """Return True if `value` is one of these integers."""
        if self.coefficient == 0:
            return value == self.base
        return value % self.coefficient == self.base

    def __add__(self, other: Modular) -> Modular:
        coefficient = gcd(self.coefficient, other.coefficient)
        return Modular(coefficient, self.base + other.base)

    def shift(self, offset: int) -> Modular:
        """Return the class of x + `offset`."""
        return Modular(self.coefficient, self.base + offset)

    def scale(self, factor: int) -> Modular:
        """Return the class of x * `factor`."""
        return Modular(self.coefficient * abs(factor), self.base * factor)

    def __mul__(self, other: Modular) -> Modular:
        # (m k + a) (n l + b) = m n k l + m b k + n a l + a b
        products = (
            self.coefficient * other.coefficient,
            self.coefficient * other.base,
            self.base * other.coefficient,
        )
        return Modular(gcd(*products), self.base * other.base)

    def union(self, other: Modular) -> Modular:
        """Return the smallest class that holds both."""
        difference = self.base - other.base
        return Modular(gcd(self.coefficient, other.coefficient, difference), self.base)

    def floordiv(self, divisor: int) -> Modular:
        """Return the class of x // divisor."""
        if divisor == 0:
            return Modular(0, 0)
        if self.coefficient % divisor:
            return Modular()
        return Modular(self.coefficient // abs(divisor), self.base // divisor)

    def floormod(self, divisor: int) -> Modular:
        """Return the class of x mod divisor."""
        if divisor == 0:
            return Modular(0, 0)
        if self.coefficient % divisor == 0:
            return Modular(0, self.base % divisor)
        return Modular(gcd(self.coefficient, divisor), self.base)

    def wrapped(self, bits: int) -> Modular:
        """Return the class of x modulo 2^bits, signed or unsigned."""
        return Modular(gcd(self.coefficient, 1 << bits), self.base)
