"""Floating-point operations that numpy does not have, rounded once: fused multiply-add, scaling.

f32 and f16 are computed in f64, and rounded to odd there where a second rounding could go wrong.
f64 is computed by error-free transformations, or by exact fractions where those would overflow or
underflow.
Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding
to odd", IEEE Transactions on Computers 57(4), 2008.
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
    product: Array = np.multiply(value, value.dtype.type(1))
    return product


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded once.

    Rounded to f64 and then to f32, the result is wrong only if the f64 lies halfway between two
    f32, or if the f32 is near 0 and has fewer bits. Both are rare; only those elements are computed
    again.
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
    """Return a * b + c, rounded once."""
    product = np.multiply(a, b, dtype=np.float64)
    return add_to_odd(product, np.asarray(c, np.float64)).astype(np.float16)


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded once."""
    a, b, c = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (a, b, c)))
    high, low = _two_product(a, b)
    # An infinite or NaN operand, or a product of 0: then numpy's operators give the result.
    all_finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    simple = (~np.isfinite(high + c) & ~all_finite) | (a == 0) | (b == 0)
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
    return _DoubleDouble(total, (a - (total - part)) + (b - part))


def _two_product(a: Array, b: Array) -> _DoubleDouble:
    product = a * b
    ah, al = _halves(a)
    bh, bl = _halves(b)
    return _DoubleDouble(product, ((ah * bh - product) + ah * bl + al * bh) + al * bl)


def _halves(a: Array) -> _DoubleDouble:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return _DoubleDouble(high, a - high)


# The steps of a division.


def _exponent(value: Array) -> Array:
    """Return the bits of the exponent."""
    bits = np.finfo(value.dtype).nmant
    size = 8 * value.itemsize
    return (value.view(f"i{value.itemsize}") >> bits) & ((1 << (size - 1 - bits)) - 1)


def _is_subnormal(value: Array) -> Mask:
    found: Mask = (_exponent(value) == 0) & (value != 0)
    return found


def div_scale(s0: Array, s1: Array, s2: Array) -> tuple[Array, Mask]:
    """Return s0 scaled for a division, and whether the quotient must be scaled back.

    s0 is the denominator s1 or the numerator s2. Scaled, no step of the division overflows or
    underflows.
    """
    s0, s1, s2 = (np.array(x) for x in np.broadcast_arrays(s0, s1, s2))
    is_f32 = s0.dtype == np.float32
    far, scale, tiny = (96, 64, 23) if is_f32 else (768, 128, 53)
    one = s0.dtype.type(1)
    up = np.ldexp(s0, scale)
    down = np.ldexp(s0, -scale)
    inverse_is_small = _is_subnormal(one / s1)
    quotient_is_small = _is_subnormal(s2 / s1)
    both_are_small = inverse_is_small & quotient_is_small
    is_denominator = s0 == s1
    is_far = _exponent(s2) - _exponent(s1) >= far
    # The first condition that holds decides; the flag says whether to scale the quotient back.
    cases: list[tuple[Mask, Array, bool]] = [
        ((s1 == 0) | (s2 == 0), np.full_like(s0, np.nan), False),
        (is_far, np.where(is_denominator, up, s0), True),
        (_is_subnormal(s1), up, False),
        (both_are_small, np.where(is_denominator, down, s0), True),
        (inverse_is_small, down, False),
        (quotient_is_small, np.where(s0 == s2, up, s0), True),
        (_exponent(s2) <= tiny, up, False),
    ]
    conditions = [condition for condition, _, _ in cases]
    result = np.select(conditions, [value for _, value, _ in cases], s0)
    flags = [np.array(flag) for _, _, flag in cases]
    return result, np.select(conditions, flags, False)


def div_fmas_f32(a: Array, b: Array, c: Array, is_scaled: Mask) -> Array:
    """Return a * b + c, scaled back where `is_scaled`."""
    a, b, c, is_scaled = np.broadcast_arrays(a, b, c, is_scaled)
    if not is_scaled.any():
        return fma_f32(a, b, c)
    odd = add_to_odd(np.multiply(a, b, dtype=np.float64), np.asarray(c, np.float64))
    factor = np.where(_exponent(np.array(c)) > 127, 2.0**64, 2.0**-64)
    return np.where(is_scaled, (odd * factor).astype(np.float32), fma_f32(a, b, c))


def div_fmas_f64(a: Array, b: Array, c: Array, is_scaled: Mask) -> Array:
    """Return a * b + c, scaled back where `is_scaled`."""
    a, b, c, is_scaled = np.broadcast_arrays(a, b, c, is_scaled)
    result = fma_f64(a, b, c)
    exponents = np.where(_exponent(np.array(c)) > 1023, 128, -128)
    for place in map(tuple, np.argwhere(is_scaled)):
        x, y, z = (float(number[place]) for number in (a, b, c))
        result[place] = scaled_fma(x, y, z, int(exponents[place]))
    return result


def div_fixup(quotient: Array, s1: Array, s2: Array) -> Array:
    """Return the quotient s2 / s1 with the NaNs, infinities and zeros that an iteration misses."""
    quotient, s1, s2 = (np.array(x) for x in np.broadcast_arrays(quotient, s1, s2))
    kind = quotient.dtype.type
    sign = np.where(np.signbit(s1) ^ np.signbit(s2), kind(-1), kind(1))
    infinite1 = np.isinf(s1)
    infinite2 = np.isinf(s2)
    # 0/0 and inf/inf make the NaN whose sign is set, as the manual has it.
    invalid = np.copysign(kind(np.nan), kind(-1))
    conditions = [
        np.isnan(s2),
        np.isnan(s1),
        ((s1 == 0) & (s2 == 0)) | (infinite1 & infinite2),
        (s1 == 0) | infinite2,
        infinite1 | (s2 == 0),
        _exponent(s2) - _exponent(s1) < _UNDERFLOW[quotient.itemsize],
        np.isnan(quotient),  # an iteration that overflowed on the way
    ]
    zero = sign * kind(0)
    infinity = sign * kind(np.inf)
    choices = [s2 + kind(0), s1 + kind(0), invalid, infinity, zero, zero, infinity]
    return np.select(conditions, choices, np.copysign(quotient, sign))
