"""Floats of eight bits as gfx942 has them, and the 19-bit format of its xf32 products.

`fp8` has 4 bits of exponent and 3 of mantissa, `bf8` 5 and 2; the biases are 8 and 16. The formats
have neither infinities nor a negative zero. The one NaN is 0x80 ("FNUZ"), which is also what a
number that is too large becomes.
Format: the CDNA3 ISA manual, section on data types; the fnuz types of the ONNX standard.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from refcomp.emulator.machine.arrays import Array, Words

Floats = npt.NDArray[np.float32]


class _Format(NamedTuple):
    mantissa_bits: int
    bias: int  # of the exponent


_SIGN = 0x80
_NAN = 0x80  # instead of a negative zero
_FORMATS = {"fp8": _Format(3, 8), "bf8": _Format(2, 16)}


@cache
def values_of(kind: str) -> Floats:
    """Return the f32 that each of the 256 bytes means."""
    mantissa_bits, bias = _FORMATS[kind]
    octet = np.arange(256)
    exponent = (octet & 0x7F) >> mantissa_bits
    mantissa = octet & ((1 << mantissa_bits) - 1)
    # A normal number has a leading 1, which is not stored. A denormal has the exponent 1.
    leading = 1 << mantissa_bits
    units = np.where(exponent == 0, mantissa, mantissa | leading)
    unit_exponent = np.maximum(exponent, 1) - bias - mantissa_bits
    size = np.ldexp(units.astype(np.float32), unit_exponent)
    signed = np.where(octet & _SIGN, -size, size)
    values = np.where(octet == _NAN, np.float32(np.nan), signed)
    return values.astype(np.float32)


def from_bytes(octets: npt.ArrayLike, kind: str) -> Floats:
    """Return bytes as f32."""
    index = np.asarray(octets).astype(np.intp)
    return values_of(kind)[index]


def to_bytes(value: npt.ArrayLike, kind: str) -> Words:
    """Return f32 as bytes, rounded to nearest even."""
    return _encoded(value, kind, np.rint)


def to_bytes_by_chance(value: npt.ArrayLike, noise: npt.ArrayLike, kind: str) -> Words:
    """Return f32 as bytes by stochastic rounding.

    A number is rounded up where `noise`, 32 bits as a fraction, and what is cut off come to 1.
    """
    chance = np.asarray(noise, np.uint32).astype(np.float64) / 2.0**32
    return _encoded(value, kind, lambda units: np.floor(units + chance))


def _encoded(
    value: npt.ArrayLike, kind: str, rounded: Callable[[Array], Array]
) -> Words:
    mantissa_bits, bias = _FORMATS[kind]
    """Return f32 as bytes. `rounded` makes integers of numbers >= 0 in units of the last bit."""
    value = np.asarray(value, np.float32)
    is_finite = np.isfinite(value)
    size = np.where(is_finite, np.abs(value), np.float32(0)).astype(np.float64)
    exponent = np.where(size > 0, np.frexp(size)[1] - 1, -bias)
    # Smaller numbers are denormals, which share the least exponent.
    exponent = np.maximum(exponent, 1 - bias)
    units = rounded(np.ldexp(size, mantissa_bits - exponent)).astype(np.int64)
    # A mantissa that became too long carries into the exponent by itself.
    octet = ((exponent + bias - 1) << mantissa_bits) + units
    is_beyond = ~is_finite | (octet > 0x7F)
    is_negative = np.signbit(value) & (octet != 0)
    octet = np.where(is_negative, octet | _SIGN, octet)
    return np.where(is_beyond, _NAN, octet).astype(np.uint32)


def to_xf32(value: npt.ArrayLike) -> Floats:
    """Return f32 with the mantissa rounded to 10 bits, to nearest even."""
    value = np.asarray(value, np.float32)
    bits = value.view(np.uint32)
    # Of 23 bits, 13 are cut off. Half of the last bit is added, less 1 where that bit is even.
    last_bit = (bits >> np.uint32(13)) & np.uint32(1)
    nearest = bits + (np.uint32(0xFFF) + last_bit)
    rounded = (nearest & ~np.uint32(0x1FFF)).view(np.float32)
    return np.where(np.isfinite(value), rounded, value).astype(np.float32)
