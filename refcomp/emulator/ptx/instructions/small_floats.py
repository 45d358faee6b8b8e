"""Floats that numpy does not have: bf16, tf32, and those of 8 bits.

- e4m3 has no infinities. Its NaN is 0x7f, its greatest number 448.
- e5m2 is the upper half of f16.
- ue8m0 is a power of two: the exponent of f32, without a sign.

A number becomes bf16 by way of an f32 that is rounded to odd (see `rounding.py`). So the result is
as if the number was rounded once.

Source: NVIDIA, "Parallel Thread Execution ISA", section "Alternate Floating-Point Data Formats".
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.rounding import Rounded, narrowed, to_odd

_F32_NAN = np.float32(np.nan)
_NAN_BITS = np.uint32(0x7FFFFFFF)  # of the NaN that PTX returns, an f32
_SMALL_NAN = 0x7F  # of e4m3 and e5m2


class _SmallFormat(NamedTuple):
    limit: float  # the greatest number
    mantissa_bits: int
    bias: int  # of the exponent


_FORMATS = {
    "e4m3": _SmallFormat(limit=448, mantissa_bits=3, bias=7),
    "e5m2": _SmallFormat(limit=57344, mantissa_bits=2, bias=15),
}


def f32_of_bf16(value: Array) -> Array:
    """Return bf16, as unsigned integers, as f32."""
    bits = np.asarray(value).astype(np.uint32) << 16
    return np.asarray(bits).view(np.float32)


def odd_f32(rounded: Rounded) -> Array:
    """Return a number as f32, rounded to odd."""
    value = to_odd(rounded)
    towards_zero = narrowed(rounded, np.dtype(np.float32), "rz")
    is_rounded = towards_zero.astype(np.float64) != value
    is_inexact = is_rounded & np.isfinite(value)
    bits = towards_zero.view(np.uint32)
    odd = np.asarray(bits | is_inexact)
    return odd.view(np.float32)


def without_bits(value: Array, count: int, mode: str) -> Array:
    """Round f32 to fewer mantissa bits, and cut off the others.

    Args:
        value: f32.
        count: how many of the lowest bits are cut off.
        mode: "rn", "rz", "rm" or "rp"; or "rna": to nearest, ties away from zero.

    Returns:
        The bits that are left, as u32, moved down to bit 0.
    """
    bits = np.asarray(value).view(np.uint32)
    added = _added_to_round(bits, count, mode)
    # A carry out of the mantissa is the next exponent, and at last infinity.
    rounded = (bits + added) >> count
    not_finite = np.where(np.isnan(value), _NAN_BITS, bits)
    return np.where(np.isfinite(value), rounded, not_finite >> count)


def _added_to_round(bits: Array, count: int, mode: str) -> Array:
    """Return the number to add to the bits of an f32, so that truncation then rounds it."""
    half = 1 << (count - 1)
    almost_one = (1 << count) - 1
    zero = np.zeros((), np.uint32)
    if mode == "rn":
        # A half is added, less one where the last bit that is kept is even.
        last_bit = bits >> count & 1
        return np.asarray(last_bit + (half - 1))
    if mode == "rna":
        return np.array(half, np.uint32)
    if mode == "rz":
        return zero
    is_negative = bits >> 31 == 1
    grows = is_negative if mode == "rm" else ~is_negative
    return np.where(grows, np.uint32(almost_one), zero)


def bf16_of(rounded: Rounded, mode: str = "rn") -> Array:
    """Return a number as bf16, in unsigned integers. A NaN is 0x7fff."""
    wide = odd_f32(rounded)
    bits = without_bits(wide, 16, mode)
    return bits.astype(np.uint16)


def tf32_of(value: Array, mode: str) -> Array:
    """Return f32 as tf32: the bits of an f32 whose 13 lowest bits are 0."""
    value = np.asarray(value)
    bits = without_bits(value, 13, mode) << 13
    return np.where(np.isnan(value), _NAN_BITS, bits)


@cache
def _values_of_e4m3() -> Array:
    """Return the f32 values of all 256 bit patterns of e4m3."""
    octet = np.arange(256)
    exponent = octet >> 3 & 15
    mantissa = octet & 7
    # Numbers of exponent 0 are denormals: no hidden bit, and the scale of exponent 1.
    units = np.where(exponent == 0, mantissa, mantissa | 8)
    scale = np.maximum(exponent, 1) - 10
    size = np.ldexp(units.astype(np.float32), scale)
    is_negative = octet & 0x80 != 0
    value = np.where(is_negative, -size, size)
    is_nan = octet & 0x7F == _SMALL_NAN
    return np.where(is_nan, _F32_NAN, value)


def f32_of_small(octets: Array, kind: str) -> Array:
    """Return e4m3, e5m2 or ue8m0, as unsigned integers of 8 bits, as f32."""
    octets = np.asarray(octets)
    if kind == "e4m3":
        values = _values_of_e4m3()
        return np.asarray(values[octets])
    if kind == "e5m2":
        bits = np.asarray(octets.astype(np.uint16) << 8)
        halves = bits.view(np.float16)
        return halves.astype(np.float32)
    power = octets.astype(np.int32) - 127
    one = np.ones((), np.float32)
    value = np.ldexp(one, power)
    return np.where(octets == 0xFF, _F32_NAN, value)


def small_of(value: Array, kind: str) -> Array:
    """Return f32 as e4m3 or e5m2, to nearest even.

    A number beyond the greatest one becomes the greatest one of its sign.
    """
    kind_format = _FORMATS[kind]
    size = np.abs(value).astype(np.float64)
    size = np.minimum(size, kind_format.limit)
    code = _nearest_code(size, kind_format)
    sign = np.where(np.signbit(value), 0x80, 0)
    octets = np.where(np.isnan(value), _SMALL_NAN, code | sign)
    return octets.astype(np.uint8)


def _nearest_code(size: Array, kind_format: _SmallFormat) -> Array:
    """Return numbers >= 0 in a format with denormals, to nearest even; as integers."""
    bias = kind_format.bias
    mantissa_bits = kind_format.mantissa_bits
    # The caller replaces the results for NaN.
    size = np.where(np.isnan(size), 0.0, size)
    # `frexp` returns the exponent 1 for a number in [1, 2).
    _, above = np.frexp(size)
    # Smaller numbers are denormals, which share the least exponent. So does 0.
    least = 1 - bias
    exponent = np.maximum(above - 1, least)
    exponent = np.where(size > 0, exponent, least)
    scaled = np.ldexp(size, mantissa_bits - exponent)
    units = np.rint(scaled).astype(np.int64)
    # A mantissa that became too long carries into the exponent by itself.
    biased = exponent - least
    return np.asarray((biased << mantissa_bits) + units)


def power_of_two_of(value: Array, mode: str, *, is_finite: bool) -> Array:
    """Return f32 as ue8m0, the exponent of its magnitude, rounded up or towards zero.

    Args:
        value: f32.
        mode: "rz" or "rp".
        is_finite: True if a number beyond the greatest power becomes the greatest power, 0xfe.
            Otherwise it becomes NaN, 0xff.
    """
    magnitude = np.abs(np.asarray(value))
    bits = magnitude.view(np.uint32)
    exponent = bits >> 23
    if mode == "rp":
        mantissa = bits & 0x7FFFFF
        # A power of two has mantissa 0. The least power, 2**-127, is a denormal.
        mantissa_of_power = np.where(exponent == 0, 0x400000, 0)
        exponent = exponent + (mantissa > mantissa_of_power)
    beyond = 0xFE if is_finite else 0xFF
    code = np.where(exponent >= 0xFF, beyond, exponent)
    code = np.where(np.isnan(magnitude), 0xFF, code)
    return code.astype(np.uint8)
