"""Sums and products of many terms, in any order or in that in which they come, with their errors.

Terms come one step at a time, each an Approx for some or all of the elements of a result: see
Note [Sums in any order] and Note [Sums in order] of `refcomp.oracle.error_bounds`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refcomp.dtype import DType
from refcomp.oracle.approximate import WIDE, Approx, half_ulp, overflow_limit, to_dtype
from refcomp.oracle.scalars import FORMATS

_UNIT = float(np.finfo(WIDE).eps)


class Sums:
    """The sums of the terms added so far, one for each element of `shape`."""

    def __init__(
        self, shape: tuple[int, ...], dtype: DType, any_order: bool, accumulate: DType | None
    ) -> None:
        self._dtype, self._any_order, self._accumulate = dtype, any_order, accumulate
        self._value = np.zeros(shape, WIDE)
        self._carried = np.zeros(shape)  # the errors of the terms
        self._rounding = np.zeros(shape)  # of the additions in order
        self._ends = _Ends(shape, dtype) if not any_order and accumulate is None else None
        self._positive, self._negative = np.zeros(shape, WIDE), np.zeros(shape, WIDE)
        self._count = np.zeros(shape, np.int64)
        self._doubtful = np.zeros(shape, np.bool_)
        self._magnitude = np.zeros(shape, WIDE)
        self._grain = np.full(shape, np.inf)  # a power of two that all terms are multiples of

    def add(self, term: Approx, part: Any) -> None:
        """Adds `term` to the elements at `part`."""
        value, error = term.value, term.error
        self._value[part] += value
        self._carried[part] += error
        self._positive[part] += np.maximum(value, 0) + error
        self._negative[part] += np.maximum(-value, 0) + error
        counts = (value != 0) | (error != 0)
        self._count[part] += counts
        self._doubtful[part] |= term.doubtful
        self._magnitude[part] += term.magnitude
        self._grain[part] = np.minimum(self._grain[part], _grain(value))
        if not self._any_order:
            size = np.abs(self._value[part]) + self._carried[part] + self._rounding[part]
            rounds = counts & (self._count[part] > 1)
            self._rounding[part] += np.where(rounds, half_ulp(size, self._dtype), 0.0)
        if self._ends is not None:
            self._ends.add(term, part)

    def result(self) -> Approx:
        """The sums; 0 of no terms."""
        dtype, total = self._dtype, self._positive + self._negative
        error = self._in_any_order(dtype) if self._any_order else self._rounding
        if self._accumulate is not None:
            error = np.maximum(error, self._in_another(self._accumulate))
        digits, _, _ = FORMATS[dtype.kind, dtype.bits]
        fits = (self._carried == 0) & (total <= self._grain * 2.0**digits)
        reference = self._count * _UNIT * total
        error = np.where(fits, 0.0, error + reference) + self._carried
        if self._ends is not None:
            error = np.fmin(error, self._ends.reach(self._value) + reference)
        return self._with_overflow(np.where(np.isnan(error), np.inf, error), total)

    def _in_any_order(self, dtype: DType) -> Any:
        digits, _, _ = FORMATS[dtype.kind, dtype.bits]
        additions = np.maximum(self._count - 1, 0)
        most = additions * 2.0**-digits * (self._positive + self._negative)
        local = half_ulp(np.maximum(self._positive, self._negative) + most, dtype)
        return np.minimum(additions * local, most).astype(np.float64)

    def _in_another(self, dtype: DType) -> Any:
        """Terms and sums rounded to another type, and the result to the own one."""
        digits, _, _ = FORMATS[dtype.kind, dtype.bits]
        total = self._positive + self._negative
        terms = 2.0**-digits * total + self._count * half_ulp(np.float64(0), dtype)
        within = terms + self._in_any_order(dtype) * (1 + 2.0**-digits)
        return within + half_ulp(np.abs(self._value) + self._carried + within, self._dtype)

    def _with_overflow(self, error: Any, total: Any) -> Approx:
        """Not finite terms give the same in every order. A sum of terms of one sign overflows, or
        not, in every order; of both signs, perhaps on the way only."""
        value, known = self._value, np.isfinite(self._carried)
        error = np.where(known & ~np.isfinite(value), 0.0, error)
        limit = overflow_limit(self._dtype)
        apart = (np.abs(value) - error >= limit) & (np.minimum(self._positive, self._negative) <= 0)
        perhaps = np.isfinite(value) & (total * (1 + 2.0**-9) + error >= limit) & ~apart
        beyond = apart & np.isfinite(value)
        value = np.where(beyond, np.copysign(WIDE(np.inf), value), value)
        error = np.where(beyond, 0.0, np.where(perhaps, np.inf, error))
        return Approx(value, error, self._doubtful | perhaps, self._magnitude)


class _Ends:
    """The least and the greatest that the sums in order can be: Note [Sums in order]."""

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self._dtype = dtype
        self._low, self._high = np.zeros(shape, WIDE), np.zeros(shape, WIDE)

    def add(self, term: Approx, part: Any) -> None:
        """One more addition of each of the elements at `part`."""
        error = np.asarray(term.error, WIDE)
        if self._dtype.bits == 64:  # whose products may have more digits than the reference
            error = error + np.abs(term.value) * _UNIT
        self._low[part] = _least_sum(self._low[part], term.value, error, self._dtype)
        self._high[part] = -_least_sum(-self._high[part], -term.value, error, self._dtype)

    def reach(self, value: Any) -> Any:
        """How far from `value` they reach; NaN where nothing is known."""
        return np.maximum(self._high - value, value - self._low)


def _least_sum(total: Any, term: Any, error: Any, dtype: DType) -> Any:
    """total + term - error, rounded to `dtype`; ways that would round twice round down first, and
    so the result is no greater than that of rounding once."""
    low = _at_most(*_two_sum(total, _at_most(*_two_sum(term, -error))))
    if dtype.bits < 32:  # numpy's ways to these lead through f64, or f32
        low = _as_f32_at_most(low)
    return to_dtype(low, dtype).astype(WIDE)


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The sum rounded, and what that left out (Knuth's; Higham, section 4.3)."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def _at_most(total: Any, rest: Any) -> Any:
    """No more than total + rest, and as much where there is no rest."""
    return np.where(rest < 0, np.nextafter(total, WIDE(-np.inf)), total)


def _as_f32_at_most(value: Any) -> Any:
    """`value` rounded down."""
    near = value.astype(np.float32)
    return np.where(near > value, np.nextafter(near, np.float32(-np.inf)), near)


def _grain(value: Any) -> Any:
    """The greatest power of two that `value` is a whole multiple of; inf for 0."""
    fraction, exponent = np.frexp(value)
    digits = np.ldexp(np.abs(fraction), 62)
    whole = np.where(np.isfinite(digits), digits, 0).astype(np.int64)
    lowest = np.ldexp((whole & -whole).astype(np.float64), exponent - 62)
    return np.where(value == 0, np.inf, np.where(whole == digits, lowest, 0.0))


class Products:
    """The products of the terms multiplied so far, in any order."""

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self._dtype = dtype
        self._value, self._greatest = np.ones(shape, WIDE), np.ones(shape, WIDE)
        self._above, self._below = np.ones(shape, WIDE), np.ones(shape, WIDE)
        self._count = np.zeros(shape, np.int64)
        self._doubtful, self._lost = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)

    def add(self, term: Approx, part: Any) -> None:
        """Multiplies the elements at `part` by `term`."""
        size = np.abs(term.value) + term.error
        self._value[part] *= term.value
        self._greatest[part] *= size
        self._above[part] *= np.maximum(size, 1)
        self._below[part] *= np.minimum(np.where(size == 0, 1, np.abs(term.value) - term.error), 1)
        self._count[part] += (term.value != 1) | (term.error != 0)
        self._doubtful[part] |= term.doubtful
        self._lost[part] |= np.isinf(term.error)

    def result(self) -> Approx:
        """The products; 1 of no terms. Nothing is known where some order may leave the range."""
        digits, least, _ = FORMATS[self._dtype.kind, self._dtype.bits]
        roundings = np.maximum(self._count - 1, 0)
        growth = np.expm1(roundings * np.log1p(2.0**-digits))
        error = self._greatest * (1 + growth) - np.abs(self._value)
        error = np.where(self._count == 0, 0.0, error + self._count * _UNIT * self._greatest)
        high = self._above * (1 + growth) >= overflow_limit(self._dtype)
        low = self._below * (1 - growth) < np.ldexp(WIDE(1), least)
        lost = self._lost | ((high | low) & (self._count > 1))
        error = np.where(np.isfinite(self._value), error, 0.0)
        error = np.where(lost | np.isnan(error), np.inf, error).astype(np.float64)
        return Approx(self._value, error, self._doubtful | lost, np.abs(self._value))
