"""Floating-point operations that numpy does not have, rounded once: fused multiply-add, scaling.

f32 and f16 are computed in f64. The f64 is rounded to odd where a second rounding could go wrong.
f64 is computed by error-free transformations, or by exact fractions where those would overflow or
underflow. Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
using rounding to odd", IEEE Transactions on Computers 57(4), 2008.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array, Mask

_SPLITTER = float(2**27 + 1)
# The bits of an f64 that its f32 lacks, and their value halfway between two f32.
_LOST = np.uint64((1 << 29) - 1)
_TIE = np.uint64(1 << 28)
_TINY_F32 = 2 << 24  # the bits of 2**-125, shifted left by one, without the sign
# Bytes of a type -> the exponent of a quotient below which it is 0.
_UNDERFLOW = {2: -26, 4: -150, 8: -1075}


def add_to_odd(a: Array, b: Array) -> Array:
    """Return a + b in f64, rounded to odd.

    An inexact sum then ends in a 1, so that it may be rounded again.
    """
    total = np.asarray(a + b)
    # Knuth's two-sum: `error` is what rounding cut off, exactly.
    part = total - a
    rest = a - (total - part)
    error = rest + (b - part)
    bits = total.view(np.uint64)
    is_even = bits & np.uint64(1) == 0
    is_inexact = np.isfinite(total) & (error != 0)
    # Away from zero if the sum was rounded towards zero, else towards zero.
    is_short = (error > 0) == (total > 0)
    step = np.where(is_short, 1, -1).astype(np.uint64)
    odd = np.where(is_inexact & is_even, bits + step, bits)
    return odd.view(np.float64)


def quiet(value: Array) -> Array:
    """Return the value with its signalling NaNs made quiet.

    A product with 1 changes nothing else: denormals and the sign of a zero stay, payloads too.
    """
    value = np.asarray(value)
    product: Array = np.multiply(value, value.dtype.type(1))
    return product


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded once.

    Rounding to f64 and then to f32 is wrong in two cases only: the f64 lies halfway between two
    f32, or the f32 is near 0 and has fewer bits. Both are rare; only those elements are computed
    again.
    """
    product = np.asarray(np.multiply(a, b, dtype=np.float64))  # exact
    fits = product.shape == np.shape(c)
    total = np.add(product, c, out=product) if fits else np.asarray(product + c)
    result: Array = total.astype(np.float32)
    doubtful = (total.view(np.uint64) & _LOST) == _TIE
    # The exponent's bits come first when the sign is shifted out.
    near_zero = result.view(np.uint32) << np.uint32(1)
    if near_zero.size and int(near_zero.min()) < _TINY_F32:
        doubtful |= (near_zero < _TINY_F32) & (total != 0)
    if doubtful.any():
        x = np.broadcast_to(a, total.shape)[doubtful]
        y = np.broadcast_to(b, total.shape)[doubtful]
        z = np.broadcast_to(c, total.shape)[doubtful]
        result[doubtful] = _sum_to_odd(x, y, z).astype(np.float32)
    return result


def _sum_to_odd(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c of f32 or f16 in f64, rounded to odd."""
    product = np.multiply(a, b, dtype=np.float64)
    return add_to_odd(product, np.asarray(c, np.float64))


def fma_f16(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded once."""
    return _sum_to_odd(a, b, c).astype(np.float16)


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded once."""
    numbers = [np.asarray(number, np.float64) for number in (a, b, c)]
    a, b, c = np.broadcast_arrays(*numbers)
    high, low = _two_product(a, b)
    factors_are_finite = np.isfinite(a) & np.isfinite(b)
    # An infinite or NaN operand, or a product of 0: then numpy's operators give the result.
    all_finite = factors_are_finite & np.isfinite(c)
    has_zero = (a == 0) | (b == 0)
    simple = (~np.isfinite(high + c) & ~all_finite) | has_zero
    # No step of the transformations below overflows or underflows.
    size = np.abs(high)
    safe = (size < 2.0**990) & (size > 2.0**-900)
    safe &= np.abs(a) < 2.0**990
    safe &= np.abs(b) < 2.0**990
    safe &= np.abs(c) < 2.0**1000
    first, rest = _two_sum(c, low)
    upper, lower = _two_sum(high, first)
    rounded = upper + add_to_odd(rest, lower)
    result = np.where(simple, a * b + c, rounded)
    # c alone is infinite or NaN: then so is the result, whatever a * b overflows to.
    result = np.where(factors_are_finite & ~np.isfinite(c), quiet(c), result)
    for place in map(tuple, np.argwhere(~safe & ~simple & np.isfinite(c))):
        result[place] = scaled_fma(float(a[place]), float(b[place]), float(c[place]), 0)
    return result


def scaled_fma(a: float, b: float, c: float, exponent: int) -> float:
    """Return (a * b + c) * 2**exponent of finite f64, rounded once, by exact arithmetic."""
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

    high: Array  # the nearest f64 to the sum, or its upper bits
    low: Array  # the rest


def _two_sum(a: Array, b: Array) -> _DoubleDouble:
    total = a + b
    part = total - a
    rest = a - (total - part)
    return _DoubleDouble(total, rest + (b - part))


def _two_product(a: Array, b: Array) -> _DoubleDouble:
    # Dekker's product: the halves have 26 bits, so that their products are exact.
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = a_high * b_high - product
    error = error + a_high * b_low
    error = error + a_low * b_high
    return _DoubleDouble(product, error + a_low * b_low)


def _halves(a: Array) -> _DoubleDouble:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return _DoubleDouble(high, a - high)


# The steps of a division.


def _exponent(value: Array) -> Array:
    """Return the bits of the exponent."""
    mantissa_bits = np.finfo(value.dtype).nmant
    exponent_bits = 8 * value.itemsize - 1 - mantissa_bits
    bits = value.view(f"i{value.itemsize}") >> mantissa_bits
    return bits & ((1 << exponent_bits) - 1)


def _is_subnormal(value: Array) -> Mask:
    found: Mask = (_exponent(value) == 0) & (value != 0)
    return found


class _DivisionLimits(NamedTuple):
    """The exponents of v_div_scale for a type, as the manual states them."""

    far: int  # by so much the exponents differ if the quotient may overflow
    scale: int  # exponent of the factor by which operands are scaled
    tiny: int  # exponent, with its bias, of a numerator that may lose bits


# By bytes of the type.
_DIVISION_LIMITS = {4: _DivisionLimits(96, 64, 23), 8: _DivisionLimits(768, 128, 53)}


def div_scale(s0: Array, s1: Array, s2: Array) -> tuple[Array, Mask]:
    """Return s0 scaled for a division, and whether the quotient must be scaled back.

    s0 is the denominator s1 or the numerator s2. Scaled, no step of the division overflows or
    underflows.
    """
    s0, s1, s2 = (np.array(x) for x in np.broadcast_arrays(s0, s1, s2))
    limits = _DIVISION_LIMITS[s0.itemsize]
    up = np.ldexp(s0, limits.scale)
    down = np.ldexp(s0, -limits.scale)
    inverse_is_small = _is_subnormal(s0.dtype.type(1) / s1)
    quotient_is_small = _is_subnormal(s2 / s1)
    is_denominator = s0 == s1
    # The first condition that holds decides.
    conditions = [
        (s1 == 0) | (s2 == 0),
        _exponent(s2) - _exponent(s1) >= limits.far,
        _is_subnormal(s1),
        inverse_is_small & quotient_is_small,
        inverse_is_small,
        quotient_is_small,
        _exponent(s2) <= limits.tiny,
    ]
    values = [
        np.full_like(s0, np.nan),
        np.where(is_denominator, up, s0),
        up,
        np.where(is_denominator, down, s0),
        down,
        np.where(s0 == s2, up, s0),
        up,
    ]
    # Under the same conditions: whether the quotient must be scaled back.
    flags = [np.array(flag) for flag in (False, True, False, True, False, True, False)]
    return np.select(conditions, values, s0), np.select(conditions, flags, False)


def div_fmas_f32(a: Array, b: Array, c: Array, is_scaled: Mask) -> Array:
    """Return a * b + c, scaled back where `is_scaled`."""
    a, b, c, is_scaled = np.broadcast_arrays(a, b, c, is_scaled)
    if not is_scaled.any():
        return fma_f32(a, b, c)
    # A power of two changes no bit of the mantissa, so the result is rounded once.
    factor = np.where(_exponent(np.array(c)) > 127, 2.0**64, 2.0**-64)
    scaled = (_sum_to_odd(a, b, c) * factor).astype(np.float32)
    return np.where(is_scaled, scaled, fma_f32(a, b, c))


def div_fmas_f64(a: Array, b: Array, c: Array, is_scaled: Mask) -> Array:
    """Return a * b + c, scaled back where `is_scaled`."""
    a, b, c, is_scaled = np.broadcast_arrays(a, b, c, is_scaled)
    result = fma_f64(a, b, c)
    exponents = np.where(_exponent(np.array(c)) > 1023, 128, -128)
    for place in map(tuple, np.argwhere(is_scaled)):
        exponent = int(exponents[place])
        x = float(a[place])
        y = float(b[place])
        z = float(c[place])
        result[place] = scaled_fma(x, y, z, exponent)
    return result


def div_fixup(quotient: Array, s1: Array, s2: Array) -> Array:
    """Return the quotient s2 / s1 with the NaNs, infinities and zeros that an iteration misses."""
    quotient, s1, s2 = (np.array(x) for x in np.broadcast_arrays(quotient, s1, s2))
    kind = quotient.dtype.type
    is_negative = np.signbit(s1) ^ np.signbit(s2)
    sign = np.where(is_negative, kind(-1), kind(1))
    infinite1 = np.isinf(s1)
    infinite2 = np.isinf(s2)
    both_zero = (s1 == 0) & (s2 == 0)
    distance = _exponent(s2) - _exponent(s1)
    # 0/0 and inf/inf make the NaN whose sign is set, as the manual has it.
    invalid = np.copysign(kind(np.nan), kind(-1))
    conditions = [
        np.isnan(s2),
        np.isnan(s1),
        both_zero | (infinite1 & infinite2),
        (s1 == 0) | infinite2,
        infinite1 | (s2 == 0),
        distance < _UNDERFLOW[quotient.itemsize],
        np.isnan(quotient),  # an iteration that overflowed on the way
    ]
    zero = sign * kind(0)
    infinity = sign * kind(np.inf)
    choices = [s2 + kind(0), s1 + kind(0), invalid, infinity, zero, zero, infinity]
    return np.select(conditions, choices, np.copysign(quotient, sign))
