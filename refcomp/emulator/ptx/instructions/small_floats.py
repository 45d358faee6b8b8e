"""Floats that numpy does not have: bf16, tf32, and those of 8 bits.

A number passes through f32, rounded to odd, so that the smaller type is rounded once.

- e4m3 has no infinities. Its NaN is 0x7f, its greatest number 448.
- e5m2 is the upper half of f16.
- ue8m0 is a power of two: the exponent of f32, without a sign.

Source: NVIDIA, "Parallel Thread Execution ISA", section "Alternate Floating-Point Data Formats".
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.rounding import Rounded, narrowed, to_odd

_LOW_16 = np.uint32(16)
_NAN = np.uint32(0x7FFFFFFF)
_SMALL_NAN = 0x7F  # of e4m3 and e5m2


class _SmallFormat(NamedTuple):
    limit: Array  # the greatest number
    mantissa_bits: int
    bias: int  # of the exponent


_FORMATS = {
    "e4m3": _SmallFormat(np.array(448, np.float32), 3, 7),
    "e5m2": _SmallFormat(np.array(57344, np.float32), 2, 15),
}


def f32_of_bf16(value: Array) -> Array:
    """Return bf16, as unsigned integers, as f32."""
    return (np.asarray(value).astype(np.uint32) << _LOW_16).view(np.float32)


def odd_f32(rounded: Rounded) -> Array:
    """Return a number as f32, rounded to odd."""
    value = to_odd(rounded)
    towards_zero = narrowed(rounded, np.dtype(np.float32), "rz")
    bits = towards_zero.view(np.uint32)
    is_inexact = np.isfinite(value) & (towards_zero.astype(np.float64) != value)
    return np.asarray(bits | is_inexact).view(np.float32)


def without_bits(value: Array, count: int, mode: str) -> Array:
    """Return the bits of f32 without the lowest ones, rounded; as u32, shifted down.

    Args:
        count: of the bits that are cut off.
        mode: "rn", "rz", "rm", "rp", or "rna" to the nearest, of two the one away from zero.
    """
    bits = np.asarray(value).view(np.uint32)
    step = np.uint32(count)
    rest = np.uint32((1 << count) - 1)
    half = np.uint32(1 << (count - 1))
    is_negative = np.signbit(value)
    if mode == "rn":
        # A half is added, less one where the last bit is even.
        added = np.asarray(half - np.uint32(1) + (bits >> step & np.uint32(1)))
    elif mode == "rna":
        added = np.array(half)
    elif mode == "rz":
        added = np.zeros((), np.uint32)
    else:
        grows = is_negative if mode == "rm" else ~is_negative
        added = np.where(grows, rest, np.uint32(0))
    # A carry out of the mantissa is the next exponent, and at last infinity.
    rounded = (bits + added) >> step
    exact = np.where(np.isnan(value), _NAN, bits) >> step
    return np.where(np.isfinite(value), rounded, exact)


def bf16_of(rounded: Rounded, mode: str = "rn") -> Array:
    """Return a number as bf16, in unsigned integers. A NaN is 0x7fff."""
    return without_bits(odd_f32(rounded), 16, mode).astype(np.uint16)


def tf32_of(value: Array, mode: str) -> Array:
    """Return f32 as tf32: the bits of f32, of which the 13 lowest are 0."""
    value = np.asarray(value)
    bits = without_bits(value, 13, mode) << np.uint32(13)
    return np.where(np.isnan(value), _NAN, bits)


@cache
def _values_of_e4m3() -> Array:
    octet = np.arange(256)
    exponent = octet >> 3 & 15
    mantissa = octet & 7
    units = np.where(exponent == 0, mantissa, mantissa | 8)
    size = np.ldexp(units.astype(np.float32), np.maximum(exponent, 1) - 10)
    value = np.where(octet & 0x80, -size, size).astype(np.float32)
    return np.where(octet & 0x7F == _SMALL_NAN, np.float32(np.nan), value)


def f32_of_small(octets: Array, kind: str) -> Array:
    """Return e4m3, e5m2 or ue8m0, as unsigned integers of 8 bits, as f32."""
    octets = np.asarray(octets)
    if kind == "e4m3":
        return np.asarray(_values_of_e4m3()[octets.astype(np.intp)])
    if kind == "e5m2":
        halves = (octets.astype(np.uint16) << np.uint16(8)).view(np.float16)
        return halves.astype(np.float32)
    power = octets.astype(np.int32) - 127
    value = np.ldexp(np.ones_like(power, np.float32), power)
    return np.where(octets == 0xFF, np.float32(np.nan), value)


def small_of(value: Array, kind: str) -> Array:
    """Return f32 as e4m3 or e5m2, to the nearest; beyond the greatest number, as the greatest."""
    limit, mantissa_bits, bias = _FORMATS[kind]
    clamped = np.clip(value, -limit, limit)
    size = np.abs(clamped).astype(np.float64)
    code = _nearest_code(size, mantissa_bits=mantissa_bits, bias=bias)
    signed = code | np.where(np.signbit(value), 0x80, 0)
    return np.where(np.isnan(value), _SMALL_NAN, signed).astype(np.uint8)


def _nearest_code(size: Array, *, mantissa_bits: int, bias: int) -> Array:
    """Return numbers >= 0 in a format with denormals, to nearest even; as integers."""
    size = np.where(np.isnan(size), 0.0, size)
    exponent = np.where(size > 0, np.frexp(size)[1] - 1, -bias)
    # Smaller numbers are denormals, which share the least exponent.
    exponent = np.maximum(exponent, 1 - bias)
    units = np.rint(np.ldexp(size, mantissa_bits - exponent)).astype(np.int64)
    # A mantissa that became too long carries into the exponent by itself.
    code: Array = ((exponent + bias - 1) << mantissa_bits) + units
    return code


def power_of_two_of(value: Array, mode: str, *, is_finite: bool) -> Array:
    """Return f32 as ue8m0, the exponent of its magnitude, rounded up or towards zero.

    Args:
        mode: "rz" or "rp".
        is_finite: beyond the greatest power the result is the greatest, else NaN, 0xff.
    """
    value = np.abs(np.asarray(value))
    bits = value.view(np.uint32)
    exponent = bits >> np.uint32(23)
    if mode == "rp":
        # The least power, of exponent 0, is the denormal 2**-127.
        rest = np.where(exponent == 0, np.uint32(0x400000), np.uint32(0))
        exponent = exponent + (bits & np.uint32(0x7FFFFF) > rest)
    beyond = 0xFE if is_finite else 0xFF
    code = np.where(exponent >= 0xFF, beyond, exponent)
    return np.where(np.isnan(value), 0xFF, code).astype(np.uint8)
