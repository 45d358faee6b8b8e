"""Error bounds of sums and products of many terms, in any order or in the given one.

Terms come one step at a time, each an Approx for some or all elements of a result. The notes at the
end say why the bounds hold.
"""

from __future__ import annotations

from functools import partial, reduce
from operator import and_
from types import EllipsisType

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.oracle.floats.legal_values import (
    MINUS_INF,
    MINUS_ZERO,
    NAN,
    PLUS_INF,
    PLUS_ZERO,
    Approx,
    code_of,
    where_bit,
)
from refcomp.oracle.floats.rounding import (
    INFINITY,
    REFERENCE_UNIT,
    WIDE,
    ZERO,
    half_ulp,
    nearest,
    overflow_limit,
    smallest_normal,
    two_sum,
    unit_roundoff,
)
from refcomp.oracle.tensors.arrays import Array

_INFINITE = PLUS_INF | MINUS_INF


class Sums:
    """The sums of the terms added so far, one for each element of `shape`.

    Args:
        shape: shape of the result.
        dtype: type of the terms and of the result.
        any_order: True if the terms may be added in any order.
        accumulate: another type in which the terms may be added up. The result is then rounded.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        any_order: bool,
        accumulate: DType | None,
    ) -> None:
        self._dtype = dtype
        self._any_order = any_order
        self._accumulate = accumulate
        self._types = [dtype] if accumulate is None else [dtype, accumulate]
        wide = partial(np.zeros, shape, WIDE)
        counts = partial(np.zeros, shape, np.int64)
        self._value = wide()
        self._propagated = wide()  # errors of the terms
        self._rounding = wide()  # local errors of the additions in order
        self._enclosure: _Enclosure | None = None
        if not any_order and accumulate is None:
            self._enclosure = _Enclosure(shape, dtype)
        self._positive = wide()  # P and N of Note [Sums in any order]
        self._negative = wide()
        self._positives = counts()  # terms that may be positive
        self._negatives = counts()
        self._count = counts()  # terms that are not 0
        self._doubtful = np.zeros(shape, np.bool_)
        self._magnitude = wide()
        self._grid = np.full(shape, INFINITY)  # a power of two that divides all terms
        # Infinities and NaN that terms may be; MINUS_ZERO alone: all terms are -0.0.
        self._others = np.zeros(shape, np.uint8)
        # Infinities and NaN that some term is in all legal evaluations.
        self._certain = np.zeros(shape, np.uint8)

    def add(self, term: Approx, part: Array | EllipsisType) -> None:
        """Add `term` to the elements at `part`; a product may be contracted into the sum."""
        self._others[part] |= _others_of(term)
        self._certain[part] |= np.where(term.others == 0, code_of(term.value), 0)
        term = term.unrounded
        value = term.value
        error = term.error
        is_counted = (value != 0) | (error != 0)
        self._value[part] += value
        self._propagated[part] += error
        self._positive[part] += np.maximum(value, 0) + error
        self._negative[part] += np.maximum(-value, 0) + error
        self._positives[part] += value > -error
        self._negatives[part] += value < error
        self._count[part] += is_counted
        self._doubtful[part] |= term.doubtful
        self._magnitude[part] += term.magnitude
        self._grid[part] = np.minimum(self._grid[part], _power_of_two_in(value))
        if not self._any_order:
            size = np.abs(self._value[part]) + self._propagated[part]
            local = half_ulp(size + self._rounding[part], self._dtype)
            rounds = is_counted & (self._count[part] > 1)
            self._rounding[part] += np.where(rounds, local, ZERO)
        if self._enclosure is not None:
            self._enclosure.add(term, part)

    def result(self) -> Approx:
        """Return the sums; 0 of no terms."""
        is_exact = self._is_exact()
        total = self._positive + self._negative
        reference = self._count * REFERENCE_UNIT * total
        error = self._in_any_order(self._dtype) if self._any_order else self._rounding
        if self._accumulate is not None:
            error = np.maximum(error, self._accumulated(self._accumulate))
        error = np.where(is_exact, ZERO, error + reference) + self._propagated
        if self._enclosure is not None:
            enclosed = self._enclosure.distance(self._value) + reference
            error = np.fmin(error, enclosed)
        error = np.where(np.isnan(error), INFINITY, error)
        return self._with_overflow(error, is_exact)

    def _is_exact(self) -> Array:
        """Return where the terms are exact, and so few digits apart that their sums are, too."""
        unit = max(map(unit_roundoff, self._types))
        subnormal = max(2 * half_ulp(ZERO, dtype) for dtype in self._types)
        on_grid = (self._propagated == 0) & (self._grid >= subnormal)
        is_short = self._positive + self._negative <= self._grid / unit
        return reduce(and_, [on_grid, is_short])

    def _in_any_order(self, dtype: DType) -> Array:
        additions = np.maximum(self._count - 1, 0)
        total = self._positive + self._negative
        error: Array = additions * (total * unit_roundoff(dtype))
        largest = np.maximum(self._positive, self._negative) + error
        by_ulps: Array = additions * half_ulp(largest, dtype)
        return np.minimum(by_ulps, error)

    def _accumulated(self, dtype: DType) -> Array:
        """Bound the error if terms and sums are rounded to `dtype`, and the result to its own."""
        unit = unit_roundoff(dtype)
        total = self._positive + self._negative
        error = unit * total + self._count * half_ulp(ZERO, dtype)
        error = error + self._in_any_order(dtype) * (1 + unit)
        size = np.abs(self._value) + self._propagated + error
        return error + half_ulp(size, self._dtype)

    def _with_overflow(self, error: Array, is_exact: Array) -> Approx:
        """Return the result, with infinities by Note [Sums that may overflow]."""
        value = self._value
        is_finite = np.isfinite(value) & np.isfinite(error)
        if self._enclosure is not None:
            others = self._enclosure.others
            overflows = self._enclosure.overflowed
            infinity = self._enclosure.infinity
        else:
            limits = [overflow_limit(dtype) for dtype in self._types]
            high = self._grown(self._positive, self._positives)
            low = self._grown(self._negative, self._negatives)
            high = np.where(is_exact, self._positive, high)
            low = np.where(is_exact, self._negative, low)
            others = where_bit(high >= min(limits), PLUS_INF)
            others |= where_bit(low >= min(limits), MINUS_INF)
            overflows = np.abs(value) - error >= max(limits)
            infinity = np.copysign(INFINITY, value)
        value = np.where(is_finite & overflows, infinity, value)
        others = others | (self._others & (_INFINITE | NAN))
        others |= where_bit((others & _INFINITE) == _INFINITE, NAN)
        others = np.where(is_finite, others, others & ~self._excluded())
        is_minus_zero = (self._others & (PLUS_ZERO | MINUS_ZERO)) == MINUS_ZERO
        others |= where_bit(is_minus_zero & self._any_order, MINUS_ZERO)
        is_known = np.isfinite(self._propagated)
        error = np.where(is_known & ~np.isfinite(value), ZERO, error)
        one_sign = np.minimum(self._positive, self._negative) == 0
        return Approx(
            value=value,
            error=error,
            doubtful=self._doubtful,
            magnitude=self._magnitude,
            others=others & ~code_of(value),
            keeps_sign=one_sign & (error <= np.abs(value)),
        )

    def _excluded(self) -> Array:
        """Return the infinities that no sum is: an infinite term stays, or meets the other one."""
        certain = self._certain
        is_nan = (certain & NAN) != 0
        excluded = where_bit(is_nan | ((certain & PLUS_INF) != 0), MINUS_INF)
        return excluded | where_bit(is_nan | ((certain & MINUS_INF) != 0), PLUS_INF)

    def _grown(self, total: Array, count: Array) -> Array:
        """Return the largest computed sum of `count` terms of one sign that add up to `total`."""
        unit = max(map(unit_roundoff, self._types))
        roundings = count
        if self._accumulate is None:
            roundings = np.maximum(count - 1, 0)
        growth = 1 + roundings * unit * (1 + unit) + (count + 1) * REFERENCE_UNIT
        return total * growth


def _others_of(term: Approx) -> Array:
    """Return the infinities and NaN of `term`, and MINUS_ZERO for -0.0, else PLUS_ZERO."""
    others = (term.others & (_INFINITE | NAN)) | code_of(term.value)
    is_negative = term.is_negative | ((term.others & MINUS_ZERO) != 0)
    is_minus_zero = (term.value == 0) & term.is_exact & is_negative
    return others | np.where(is_minus_zero, MINUS_ZERO, PLUS_ZERO)


class _Enclosure:
    """Intervals that enclose the sums in the given order: Note [Sums in order]."""

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self._dtype = dtype
        self._low = np.zeros(shape, WIDE)
        self._high = np.zeros(shape, WIDE)
        self.others = np.zeros(shape, np.uint8)  # infinities that a partial sum may be
        self.overflowed = np.zeros(shape, np.bool_)  # no legal sum is finite any more
        # Where `overflowed`: the infinity that all legal sums were then.
        self.infinity = np.zeros(shape, WIDE)

    def add(self, term: Approx, part: Array | EllipsisType) -> None:
        """Add `term` to the elements at `part`."""
        error = np.asarray(term.error, WIDE)
        low = _lower_sum(self._low[part], term.value, error, self._dtype)
        high = -_lower_sum(-self._high[part], -term.value, error, self._dtype)
        self._low[part] = low
        self._high[part] = high
        if np.all(np.isfinite(low) & np.isfinite(high)):
            return
        self.others[part] |= where_bit(high == np.inf, PLUS_INF)
        self.others[part] |= where_bit(low == -np.inf, MINUS_INF)
        overflowed = np.isinf(low) & (low == high)
        is_first = overflowed & ~self.overflowed[part]
        self.infinity[part] = np.where(is_first, low, self.infinity[part])
        self.overflowed[part] |= overflowed

    def distance(self, value: Array) -> Array:
        """Return the greatest distance of a sum from `value`; NaN where nothing is known."""
        return np.maximum(self._high - value, value - self._low)


def _lower_sum(total: Array, term: Array, error: Array, dtype: DType) -> Array:
    """Return total + term - error rounded to `dtype`, or a little less.

    WIDE may round first, and does so downwards. So the result is not above the exact value.
    """
    low = _rounded_down(*two_sum(term, -error))
    return nearest(_rounded_down(*two_sum(total, low)), dtype)


def _rounded_down(total: Array, rest: Array) -> Array:
    """Return a value of at most total + rest; exactly `total` if `rest` is 0."""
    return np.where(rest < 0, np.nextafter(total, -INFINITY), total)


def _power_of_two_in(value: Array) -> Array:
    """Return the greatest power of two that divides `value`; inf for 0, 0 if not finite."""
    fraction, exponent = np.frexp(value)
    digits = np.ldexp(np.abs(fraction), 62)
    whole = np.where(np.isfinite(digits), digits, 0).astype(np.int64)
    lowest_bit = (whole & -whole).astype(WIDE)
    power = np.ldexp(lowest_bit, exponent - 62)
    power = np.where(whole == digits, power, ZERO)
    return np.where(value == 0, INFINITY, power)


class Products:
    """The products of the terms multiplied so far, in any order."""

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self._dtype = dtype
        ones = partial(np.ones, shape, WIDE)
        self._value = ones()
        self._largest = ones()  # greatest absolute value that errors of terms allow
        self._above = ones()  # of Note [Products in any order]: sizes above 1
        self._below = ones()  # and sizes below 1
        self._count = np.zeros(shape, np.int64)  # terms that are not 1
        self._doubtful = np.zeros(shape, np.bool_)
        self._unknown = np.zeros(shape, np.bool_)
        self._may_be_zero = np.zeros(shape, np.bool_)
        self._keeps_sign = np.ones(shape, np.bool_)
        self._others = np.zeros(shape, np.uint8)  # infinities and NaN that terms may be

    def add(self, term: Approx, part: Array | EllipsisType) -> None:
        """Multiply the elements at `part` by `term`."""
        size = term.absolute
        most = size + term.error
        least = np.fmax(size - term.error, 0)
        self._value[part] *= term.value
        self._largest[part] *= most
        self._above[part] *= np.maximum(most, 1)
        self._below[part] *= np.minimum(least, 1)
        self._count[part] += (term.value != 1) | (term.error != 0)
        self._doubtful[part] |= term.doubtful
        self._unknown[part] |= term.is_unbounded
        self._may_be_zero[part] |= least == 0
        self._keeps_sign[part] &= term.keeps_sign
        self._others[part] |= term.others | code_of(term.value)

    def result(self) -> Approx:
        """Return the products by Note [Products in any order]; 1 of no terms."""
        roundings = np.maximum(self._count - 1, 0)
        growth = np.expm1(roundings * np.log1p(unit_roundoff(self._dtype)))
        error = self._largest * (1 + growth) - np.abs(self._value)
        error = error + self._count * REFERENCE_UNIT * self._largest
        smallest = self._below * (1 - growth)
        subnormal = (roundings > 0) & (smallest < smallest_normal(self._dtype))
        above = self._above * (1 + growth)
        half_eta = half_ulp(ZERO, self._dtype)
        underflow = roundings * half_eta * (1 + growth) * self._above
        error = np.where(subnormal, error + underflow, error)
        error = np.where(self._count == 0, ZERO, error)
        return self._with_overflow(error, subnormal, above)

    def _with_overflow(self, error: Array, subnormal: Array, above: Array) -> Approx:
        value = self._value
        limit = overflow_limit(self._dtype)
        is_finite = np.isfinite(value)
        may_overflow = (above >= limit) & (self._count > 0)
        overflows = is_finite & may_overflow & (np.abs(value) - error >= limit)
        was_infinite = (self._others & _INFINITE) != 0
        others = where_bit(may_overflow | was_infinite, _INFINITE)
        own_sign = np.where(np.signbit(value), MINUS_INF, PLUS_INF)
        sign_is_known = self._keeps_sign & ~was_infinite
        others = np.where(sign_is_known, others & own_sign, others)
        zero_times_infinity = (others != 0) & (self._may_be_zero | subnormal)
        others = others | np.where(zero_times_infinity, NAN, self._others & NAN)
        value = np.where(overflows, np.copysign(INFINITY, value), value)
        is_unknown = self._unknown | (np.isnan(error) & is_finite)
        error = np.where(np.isfinite(value), error, ZERO)
        error = np.where(is_unknown & ~np.isnan(self._value), INFINITY, error)
        return Approx(
            value=value,
            error=error,
            doubtful=self._doubtful | is_unknown,
            magnitude=np.abs(value),
            others=others & ~code_of(value),
            keeps_sign=self._keeps_sign & ~is_unknown,
        )


# Note [Sums in any order]
# ~~~~~~~~~~~~~~~~~~~~~~~~
# The error of a sum is the sum of the local errors of its additions, in any order (Higham, section
# 4.2). Adding 0 makes no error. Let P be the sum of the positive terms, N that of the absolute
# values of the negative terms, A = P + N, and n the number of terms that are not 0.
#
# 1. The exact sum of any part of the terms lies in [-N, P].
# 2. The computed sum of any part is off by at most (n - 1) u A, in any order and for any n (S. M.
#    Rump, Error estimation of floating-point summation and dot product, BIT 52, 2012). Higham's
#    gamma_(n-1) A of section 4.2 is a little more.
# 3. So each of the n - 1 additions rounds by at most half an ulp of max(P, N) + (n - 1) u A. All of
#    them together round by at most (n - 1) u A, by point 2. The lesser bound is taken.
# 4. Whole multiples of one power of two, whose A has few enough digits, are added exactly.
# 5. Errors of terms are added to the bound, and counted in P and N.
#
# Underflow adds nothing: sums of subnormals are exact (Higham, section 2.1). A contracted product
# has its own half of the smallest subnormal among the errors of the terms.


# Note [Sums that may overflow]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# Rounding and adding are monotone. So a partial sum is at most that of its p positive terms alone,
# added in the same order, which is at most (1 + (p - 1) u) P after rounding.
#
# - Where this reaches the limit of overflow, some order may give inf. Where the same of N does,
#   some order may give -inf. Where both do, some order may give NaN. All other orders stay finite,
#   and within the error.
# - No order is finite where the sum of all terms is beyond the limit by more than its error.
# - In the order of the axes the ends of each partial sum are known. Once both are infinite, no sum
#   is finite any more.
# - A product that overflows may be contracted into the sum. It then counts with its value, which
#   makes P or N reach the limit, so that its infinity is legal, too.
# - With another dtype for the sums, the lesser limit decides what may overflow, and the greater one
#   what must overflow.


# Note [Sums in order]
# ~~~~~~~~~~~~~~~~~~~~
# Rounding to nearest is monotone, and so is addition. Let all legal values of a partial sum lie in
# [l, h], and those of the next term, rounded or contracted, in [t - e, t + e]. Then those of the
# next partial sum lie between l + (t - e) and h + (t + e), both rounded.
#
# So the ends are computed as the program computes the sum, with the same roundings. Only what is
# free, a contraction, drives them apart. This bounds the error that was made; half an ulp for each
# addition bounds what could have been made at worst (running error analysis, Higham, section 3.3).
# For n terms the second is about sqrt(n) times as much. Both hold, and the lesser is taken.


# Note [Products in any order]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# A partial product lies between the product of the sizes below 1 (`below`) and that of the sizes
# above 1 (`above`). One rounding is off by u times its result, or by eta / 2 where the result is
# below the normal numbers, eta being the smallest subnormal. The further factors multiply such an
# error by `above` at most.
#
# So n - 1 roundings add (1 + u)^(n - 1) - 1 times the product (Higham, section 3.1). Where a
# partial product may be subnormal, they add (n - 1) (1 + u)^(n - 1) above eta / 2, too. A partial
# product that overflows stays infinite to the end, or becomes NaN where it meets a factor, or
# another partial product, of 0.
