"""Floating-point operations that numpy does not have, rounded once: fused multiply-add, scaling.

f32 and f16 go through f64, whose sum is rounded to odd wherever a second rounding could tip; f64 by
error-free transformations, and by exact fractions where those would overflow or underflow.
Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding
to odd", IEEE Transactions on Computers 57(4), 2008.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array

_SPLITTER = float(2**27 + 1)
_TIE, _LOST = np.uint64(1 << 28), np.uint64((1 << 29) - 1)  # of f64 when it becomes f32
_TINY_F32 = 2 << 24  # the bits of 2**-125, twice: without a sign
# A quotient whose exponent is less by so much is 0, by the size of the type.
_UNDERFLOW = {2: -26, 4: -150, 8: -1075}


def add_to_odd(a: Array, b: Array) -> Array:
    """a + b in f64, rounded to odd: an inexact sum ends in a 1, so that rounding again is safe."""
    total = np.asarray(a + b)
    part = total - a
    error = (a - (total - part)) + (b - part)
    bits = total.view(np.uint64)
    moved = np.isfinite(total) & (error != 0) & (bits & np.uint64(1) == 0)
    step = np.where((error > 0) == (total > 0), 1, -1).astype(np.uint64)
    return np.where(moved, bits + step, bits).view(np.float64)


def quiet(value: Array) -> Array:
    """Return the value with its signalling NaNs made quiet.

    A product with 1 changes nothing else: denormals and the sign of a zero stay, payloads too.
    """
    value = np.asarray(value)
    found: Array = np.multiply(value, value.dtype.type(1))
    return found


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once.

    Rounded to f64 and then to f32 it is wrong only where f64 ends in the middle between two f32, or
    where f32 has fewer bits near 0: both are rare, and then only those elements are done again.
    """
    product = np.asarray(np.multiply(a, b, dtype=np.float64))
    fits = product.shape == np.shape(c)
    total = np.add(product, c, out=product) if fits else np.asarray(product + c)
    result: Array = total.astype(np.float32)
    doubtful = (total.view(np.uint64) & _LOST) == _TIE
    # The exponent's bits come first when the sign is shifted out.
    near_zero = result.view(np.uint32) << np.uint32(1)
    if near_zero.size and int(near_zero.min()) < _TINY_F32:
        doubtful |= (near_zero < _TINY_F32) & (total != 0)
    if doubtful.any():
        x, y, z = (np.broadcast_to(given, total.shape)[doubtful] for given in (a, b, c))
        odd = add_to_odd(np.multiply(x, y, dtype=np.float64), np.asarray(z, np.float64))
        result[doubtful] = odd.astype(np.float32)
    return result


def fma_f16(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once."""
    product = np.multiply(a, b, dtype=np.float64)
    return add_to_odd(product, np.asarray(c, np.float64)).astype(np.float16)


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once."""
    a, b, c = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (a, b, c)))
    high, low = _two_product(a, b)
    simple = ~np.isfinite(high + c) & ~(
        np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    )
    simple |= (a == 0) | (b == 0)
    size = np.abs(high)
    safe = (size < 2.0**990) & (size > 2.0**-900) & (np.abs(c) < 2.0**1000)
    safe &= (np.abs(a) < 2.0**990) & (np.abs(b) < 2.0**990)
    first, rest = _two_sum(c, low)
    upper, lower = _two_sum(high, first)
    result = np.where(simple, a * b + c, upper + add_to_odd(rest, lower))
    # c alone is infinite or NaN: then so is the result, whatever a * b overflows to.
    result = np.where(
        np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), quiet(c), result
    )
    for place in map(tuple, np.argwhere(~safe & ~simple & np.isfinite(c))):
        result[place] = scaled_fma(float(a[place]), float(b[place]), float(c[place]), 0)
    return result


def scaled_fma(a: float, b: float, c: float, exponent: int) -> float:
    """(a * b + c) * 2**exponent of finite f64, rounded once, by exact arithmetic."""
    if not all(map(math.isfinite, (a, b, c))):
        return math.ldexp(1.0, exponent) * (a * b + c)
    exact = (Fraction(a) * Fraction(b) + Fraction(c)) * Fraction(2) ** exponent
    if exact == 0:
        return a * b + c  # the sign of a zero
    sign = 1.0 if exact > 0 else -1.0
    try:
        return float(exact) or math.copysign(0.0, sign)
    except OverflowError:
        return math.copysign(math.inf, sign)


class _DoubleDouble(NamedTuple):
    """A number as the exact sum of two f64."""

    # The nearest f64 to the sum, or its upper bits.
    high: Array
    # What is left.
    low: Array


def _two_sum(a: Array, b: Array) -> _DoubleDouble:
    total = a + b
    part = total - a
    return _DoubleDouble(total, (a - (total - part)) + (b - part))


def _two_product(a: Array, b: Array) -> _DoubleDouble:
    product = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return _DoubleDouble(product, ((ah * bh - product) + ah * bl + al * bh) + al * bl)


def _halves(a: Array) -> _DoubleDouble:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return _DoubleDouble(high, a - high)


# The steps of a division.


def _exponent(value: Array) -> Array:
    """The exponent's bits."""
    bits = np.finfo(value.dtype).nmant
    size = 8 * value.itemsize
    return (value.view(f"i{value.itemsize}") >> bits) & ((1 << (size - 1 - bits)) - 1)


def _is_subnormal(value: Array) -> Array:
    return (_exponent(value) == 0) & (value != 0)


def div_scale(s0: Array, s1: Array, s2: Array) -> tuple[Array, Array]:
    """s0, which is the denominator s1 or the numerator s2, scaled so that no step of a division
    overflows or underflows; and whether the quotient must be scaled back."""
    s0, s1, s2 = (np.array(x) for x in np.broadcast_arrays(s0, s1, s2))
    is_f32 = s0.dtype == np.float32
    far, scale, tiny = (96, 64, 23) if is_f32 else (768, 128, 53)
    one = s0.dtype.type(1)
    up, down = np.ldexp(s0, scale), np.ldexp(s0, -scale)
    inverse_is_small, quotient_is_small = (
        _is_subnormal(one / s1),
        _is_subnormal(s2 / s1),
    )
    is_denominator, is_numerator = s0 == s1, s0 == s2
    cases = [
        ((s1 == 0) | (s2 == 0), np.full_like(s0, np.nan), False),
        (_exponent(s2) - _exponent(s1) >= far, np.where(is_denominator, up, s0), True),
        (_is_subnormal(s1), up, False),
        (
            inverse_is_small & quotient_is_small,
            np.where(is_denominator, down, s0),
            True,
        ),
        (inverse_is_small, down, False),
        (quotient_is_small, np.where(is_numerator, up, s0), True),
        (_exponent(s2) <= tiny, up, False),
    ]
    conditions = [condition for condition, _, _ in cases]
    result = np.select(conditions, [value for _, value, _ in cases], s0)
    return result, np.select(
        conditions, [np.array(flag) for _, _, flag in cases], False
    )


def div_fmas_f32(a: Array, b: Array, c: Array, is_scaled: Array) -> Array:
    """a * b + c, scaled back where `is_scaled`."""
    a, b, c, is_scaled = np.broadcast_arrays(a, b, c, is_scaled)
    if not is_scaled.any():
        return fma_f32(a, b, c)
    odd = add_to_odd(np.multiply(a, b, dtype=np.float64), np.asarray(c, np.float64))
    factor = np.where(_exponent(np.array(c)) > 127, 2.0**64, 2.0**-64)
    return np.where(is_scaled, (odd * factor).astype(np.float32), fma_f32(a, b, c))


def div_fmas_f64(a: Array, b: Array, c: Array, is_scaled: Array) -> Array:
    """a * b + c, scaled back where `is_scaled`."""
    a, b, c, is_scaled = np.broadcast_arrays(a, b, c, is_scaled)
    result = fma_f64(a, b, c)
    exponents = np.where(_exponent(np.array(c)) > 1023, 128, -128)
    for place in map(tuple, np.argwhere(is_scaled)):
        x, y, z = (float(number[place]) for number in (a, b, c))
        result[place] = scaled_fma(x, y, z, int(exponents[place]))
    return result


def div_fixup(quotient: Array, s1: Array, s2: Array) -> Array:
    """The quotient of s2 by s1 with what an iteration cannot give: NaN, infinities, zeros."""
    quotient, s1, s2 = (np.array(x) for x in np.broadcast_arrays(quotient, s1, s2))
    kind = quotient.dtype.type
    sign = np.where(np.signbit(s1) ^ np.signbit(s2), kind(-1), kind(1))
    infinite = np.isinf(s1), np.isinf(s2)
    # 0/0 and inf/inf make the NaN whose sign is set, as the manual has it.
    invalid = np.copysign(kind(np.nan), kind(-1))
    conditions = [
        np.isnan(s2),
        np.isnan(s1),
        ((s1 == 0) & (s2 == 0)) | (infinite[0] & infinite[1]),
        (s1 == 0) | infinite[1],
        infinite[0] | (s2 == 0),
        _exponent(s2) - _exponent(s1) < _UNDERFLOW[quotient.itemsize],
        np.isnan(quotient),  # an iteration that overflowed on the way
    ]
    choices = [s2 + kind(0), s1 + kind(0), invalid, sign * kind(np.inf), sign * kind(0)]
    choices += [sign * kind(0), sign * kind(np.inf)]
    return np.select(conditions, choices, np.copysign(quotient, sign))
