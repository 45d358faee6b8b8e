"""Sums and products of many terms with error bounds, in any order or in the given one.

Terms come one step at a time, each an Approx for some or all of the elements of a result: see
Note [Sums in any order] and Note [Sums in order] of `refcomp.oracle.floats.error_bounds`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.oracle.floats.legal_values import (
    MINUS_INF,
    MINUS_ZERO,
    NAN,
    NO_OTHERS,
    PLUS_INF,
    PLUS_ZERO,
    Approx,
    code_of,
)
from refcomp.oracle.floats.rounding import (
    REFERENCE_UNIT,
    WIDE,
    half_ulp,
    nearest,
    overflow_limit,
    two_sum,
)
from refcomp.oracle.interpreter.scalars import FORMATS

_INFINITE = PLUS_INF | MINUS_INF


class Sums:
    """The sums of the terms added so far, one for each element of `shape`."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        any_order: bool,
        accumulate: DType | None,
    ) -> None:
        self._dtype, self._any_order, self._accumulate = dtype, any_order, accumulate
        self._types = [dtype] if accumulate is None else [dtype, accumulate]
        self._value = np.zeros(shape, WIDE)
        self._carried = np.zeros(shape, WIDE)  # the errors of the terms
        self._rounding = np.zeros(shape, WIDE)  # of the additions in order
        self._ends = (
            _Ends(shape, dtype) if not any_order and accumulate is None else None
        )
        self._positive, self._negative = np.zeros(shape, WIDE), np.zeros(shape, WIDE)
        self._count = np.zeros(shape, np.int64)  # of the terms that are not 0
        self._positives, self._negatives = (
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
        )
        self._doubtful = np.zeros(shape, np.bool_)
        self._magnitude = np.zeros(shape, WIDE)
        self._grain = np.full(
            shape, WIDE(np.inf)
        )  # a power of two that divides all terms
        # What terms may be beside finite numbers; MINUS_ZERO alone: all of them are -0.0.
        self._others = np.zeros(shape, np.uint8)

    def add(self, term: Approx, part: Any) -> None:
        """Add `term` to the elements at `part`; a product may be contracted into the sum."""
        self._others[part] |= _others_of(term)
        term = term if term.contracted is None else term.contracted
        value, error = term.value, term.error
        self._value[part] += value
        self._carried[part] += error
        self._positive[part] += np.maximum(value, 0) + error
        self._negative[part] += np.maximum(-value, 0) + error
        self._positives[part] += value > -error
        self._negatives[part] += value < error
        counts = (value != 0) | (error != 0)
        self._count[part] += counts
        self._doubtful[part] |= term.doubtful
        self._magnitude[part] += term.magnitude
        self._grain[part] = np.minimum(self._grain[part], _grain(value))
        if not self._any_order:
            size = (
                np.abs(self._value[part]) + self._carried[part] + self._rounding[part]
            )
            rounds = counts & (self._count[part] > 1)
            self._rounding[part] += np.where(
                rounds, half_ulp(size, self._dtype), WIDE(0)
            )
        if self._ends is not None:
            self._ends.add(term, part)

    def result(self) -> Approx:
        """Return the sums; 0 of no terms."""
        total = self._positive + self._negative
        error = self._in_any_order(self._dtype) if self._any_order else self._rounding
        if self._accumulate is not None:
            error = np.maximum(error, self._in_another(self._accumulate))
        reference = self._count * REFERENCE_UNIT * total
        fits = self._fits(total)
        error = np.where(fits, WIDE(0), error + reference) + self._carried
        if self._ends is not None:
            error = np.fmin(error, self._ends.reach(self._value) + reference)
        return self._with_overflow(np.where(np.isnan(error), WIDE(np.inf), error), fits)

    def _fits(self, total: Any) -> Any:
        """Return where all terms are exact, and so few digits apart that all additions are."""
        digits = min(FORMATS[dtype.kind, dtype.bits][0] for dtype in self._types)
        least = max(
            2 * half_ulp(WIDE(0), dtype) for dtype in self._types
        )  # smallest subnormal
        whole = (self._carried == 0) & (self._grain >= least)
        return whole & (total <= self._grain * WIDE(2.0**digits))

    def _in_any_order(self, dtype: DType) -> Any:
        digits, _, _ = FORMATS[dtype.kind, dtype.bits]
        additions = np.maximum(self._count - 1, 0)
        most = additions * WIDE(2.0**-digits) * (self._positive + self._negative)
        local = half_ulp(np.maximum(self._positive, self._negative) + most, dtype)
        return np.minimum(additions * local, most)

    def _in_another(self, dtype: DType) -> Any:
        """Terms and sums rounded to another type, and the result to the own one."""
        digits, _, _ = FORMATS[dtype.kind, dtype.bits]
        total = self._positive + self._negative
        terms = WIDE(2.0**-digits) * total + self._count * half_ulp(WIDE(0), dtype)
        within = terms + self._in_any_order(dtype) * WIDE(1 + 2.0**-digits)
        return within + half_ulp(
            np.abs(self._value) + self._carried + within, self._dtype
        )

    def _with_overflow(self, error: Any, fits: Any) -> Approx:
        """Note [Sums that may overflow] of `refcomp.oracle.floats.error_bounds`."""
        value, known = self._value, np.isfinite(self._carried)
        finite = np.isfinite(value) & np.isfinite(error)
        if self._ends is not None:
            others, gone = self._ends.others, self._ends.gone
        else:
            limits = [overflow_limit(dtype) for dtype in self._types]
            most = self._greatest_part(self._positive, self._positives, fits)
            least = self._greatest_part(self._negative, self._negatives, fits)
            others = np.where(most >= min(limits), PLUS_INF, NO_OTHERS)
            others |= np.where(least >= min(limits), MINUS_INF, NO_OTHERS)
            gone = finite & (np.abs(value) - error >= max(limits))
            value = np.where(gone, np.copysign(WIDE(np.inf), value), value)
        if self._ends is not None:
            value = np.where(finite & gone, self._ends.infinity, value)
        others = others | (self._others & (_INFINITE | NAN))
        others |= np.where((others & _INFINITE) == _INFINITE, NAN, NO_OTHERS)
        others = np.where(
            finite, others, others & NAN
        )  # an infinite term stays, or meets another
        is_minus_zero = (self._others & (PLUS_ZERO | MINUS_ZERO)) == MINUS_ZERO
        others |= np.where(is_minus_zero & self._any_order, MINUS_ZERO, NO_OTHERS)
        error = np.where(known & ~np.isfinite(value), WIDE(0), error)
        signs = (np.minimum(self._positive, self._negative) == 0) & (
            error <= np.abs(value)
        )
        return Approx(
            value,
            error,
            self._doubtful,
            self._magnitude,
            others & ~code_of(value),
            signs,
        )

    def _greatest_part(self, part: Any, count: Any, fits: Any) -> Any:
        """Return the greatest that a partial sum may be, of `count` terms that add up to `part`."""
        unit = WIDE(
            2.0 ** -min(FORMATS[dtype.kind, dtype.bits][0] for dtype in self._types)
        )
        roundings = count if self._accumulate is not None else np.maximum(count - 1, 0)
        grown = part * (
            1 + roundings * unit * (1 + unit) + (count + 1) * REFERENCE_UNIT
        )
        return np.where(fits, part, grown)


def _others_of(term: Approx) -> Any:
    """Return what `term` may be beside finite numbers; whether it is -0.0, or another number."""
    others = (term.others & (_INFINITE | NAN)) | code_of(term.value)
    is_negative = np.signbit(term.value) | ((term.others & MINUS_ZERO) != 0)
    is_minus_zero = (term.value == 0) & (term.error == 0) & is_negative
    return others | np.where(is_minus_zero, MINUS_ZERO, PLUS_ZERO)


class _Ends:
    """The least and the greatest that the sums in order can be: Note [Sums in order].

    Attributes:
        others: PLUS_INF and MINUS_INF, where a sum of some terms may be that.
        gone: bool; no sum is finite any more, and all were `infinity` when that happened.
        infinity: the first infinity that all sums were, if `gone`.
    """

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self._dtype = dtype
        self._low, self._high = np.zeros(shape, WIDE), np.zeros(shape, WIDE)
        self.others = np.zeros(shape, np.uint8)
        self.gone, self.infinity = np.zeros(shape, np.bool_), np.zeros(shape, WIDE)

    def add(self, term: Approx, part: Any) -> None:
        """Do one more addition of each of the elements at `part`."""
        error = np.asarray(term.error, WIDE)
        low = _least_sum(self._low[part], term.value, error, self._dtype)
        high = -_least_sum(-self._high[part], -term.value, error, self._dtype)
        self._low[part], self._high[part] = low, high
        if np.all(np.isfinite(low) & np.isfinite(high)):
            return
        self.others[part] |= np.where(high == np.inf, PLUS_INF, NO_OTHERS)
        self.others[part] |= np.where(low == -np.inf, MINUS_INF, NO_OTHERS)
        gone = (np.isinf(low) | np.isinf(high)) & (low == high)
        self.infinity[part] = np.where(
            gone & ~self.gone[part], low, self.infinity[part]
        )
        self.gone[part] |= gone

    def reach(self, value: Any) -> Any:
        """Return how far from `value` they reach; NaN where nothing is known."""
        return np.maximum(self._high - value, value - self._low)


def _least_sum(total: Any, term: Any, error: Any, dtype: DType) -> Any:
    """Return total + term - error, rounded once to `dtype`.

    WIDE rounds it down first, if at all, so the result is not greater than the exact value.
    """
    low = _at_most(*two_sum(total, _at_most(*two_sum(term, -error))))
    return nearest(low, dtype)


def _at_most(total: Any, rest: Any) -> Any:
    """Return a value of at most total + rest; exactly `total` if `rest` is 0."""
    return np.where(rest < 0, np.nextafter(total, WIDE(-np.inf)), total)


def _grain(value: Any) -> Any:
    """Return the greatest power of two that `value` is a whole multiple of; inf for 0."""
    fraction, exponent = np.frexp(value)
    digits = np.ldexp(np.abs(fraction), 62)
    whole = np.where(np.isfinite(digits), digits, 0).astype(np.int64)
    lowest = np.ldexp((whole & -whole).astype(WIDE), exponent - 62)
    return np.where(
        value == 0, WIDE(np.inf), np.where(whole == digits, lowest, WIDE(0))
    )


class Products:
    """The products of the terms multiplied so far, in any order."""

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self._dtype = dtype
        self._value, self._greatest = np.ones(shape, WIDE), np.ones(shape, WIDE)
        self._above, self._below = np.ones(shape, WIDE), np.ones(shape, WIDE)
        self._count = np.zeros(shape, np.int64)
        self._doubtful, self._lost = (
            np.zeros(shape, np.bool_),
            np.zeros(shape, np.bool_),
        )
        self._may_be_zero, self._keeps_sign = (
            np.zeros(shape, np.bool_),
            np.ones(shape, np.bool_),
        )
        self._others = np.zeros(shape, np.uint8)

    def add(self, term: Approx, part: Any) -> None:
        """Multiply the elements at `part` by `term`."""
        size = np.abs(term.value) + term.error
        least = np.fmax(np.abs(term.value) - term.error, 0)
        self._value[part] *= term.value
        self._greatest[part] *= size
        self._above[part] *= np.maximum(size, 1)
        self._below[part] *= np.minimum(least, 1)
        self._count[part] += (term.value != 1) | (term.error != 0)
        self._doubtful[part] |= term.doubtful
        self._lost[part] |= np.isinf(term.error)
        self._may_be_zero[part] |= least == 0
        self._keeps_sign[part] &= term.keeps_sign
        self._others[part] |= term.others | code_of(term.value)

    def result(self) -> Approx:
        """Return the products; 1 of no terms. Note [Products in any order] of
        `refcomp.oracle.floats.error_bounds`."""
        digits, _, _ = FORMATS[self._dtype.kind, self._dtype.bits]
        roundings = np.maximum(self._count - 1, 0)
        growth = np.expm1(roundings * np.log1p(WIDE(2.0**-digits)))
        error = self._greatest * (1 + growth) - np.abs(self._value)
        error = error + self._count * REFERENCE_UNIT * self._greatest
        lowest = self._below * (1 - growth)
        subnormal = roundings > 0
        subnormal &= lowest < np.ldexp(
            WIDE(1), FORMATS[self._dtype.kind, self._dtype.bits][1]
        )
        least_error = (
            roundings * half_ulp(WIDE(0), self._dtype) * (1 + growth) * self._above
        )
        error = np.where(subnormal, error + least_error, error)
        error = np.where(self._count == 0, WIDE(0), error)
        return self._with_overflow(error, subnormal, self._above * (1 + growth))

    def _with_overflow(self, error: Any, subnormal: Any, above: Any) -> Approx:
        value, limit = self._value, overflow_limit(self._dtype)
        finite = np.isfinite(value)
        high = (above >= limit) & (self._count > 0)
        beyond = finite & high & (np.abs(value) - error >= limit)
        others = np.where(
            high | ((self._others & _INFINITE) != 0), _INFINITE, NO_OTHERS
        )
        sign = np.where(np.signbit(value), MINUS_INF, PLUS_INF)
        others = np.where(
            self._keeps_sign & (self._others & _INFINITE == 0), others & sign, others
        )
        zero_times_infinity = (others != 0) & (self._may_be_zero | subnormal)
        others = others | np.where(zero_times_infinity, NAN, self._others & NAN)
        value = np.where(beyond, np.copysign(WIDE(np.inf), value), value)
        lost = self._lost | np.isnan(error) & finite
        error = np.where(np.isfinite(value), error, WIDE(0))
        error = np.where(lost & ~np.isnan(self._value), WIDE(np.inf), error)
        others = others & ~code_of(value)
        keeps_sign = self._keeps_sign & ~lost
        return Approx(
            value, error, self._doubtful | lost, np.abs(value), others, keeps_sign
        )
