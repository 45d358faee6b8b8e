"""The types of PTX, and how numpy arrays hold their values.

Source: NVIDIA, "Parallel Thread Execution ISA", section "Types".
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.foundation.errors import Unsupported

# Types that numpy has. Any other type is held as an unsigned integer of its width.
_DTYPES: dict[str, np.dtype[Any]] = {
    "pred": np.dtype(np.bool_),
    "s8": np.dtype(np.int8),
    "s16": np.dtype(np.int16),
    "s32": np.dtype(np.int32),
    "s64": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
_UNSIGNED: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.bool_),
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}
# Bits of a type whose name does not say them.
_WIDTHS = {"pred": 1, "e4m3": 8, "e5m2": 8, "ue8m0": 8}
_NAME = re.compile(r"(?:[usb]|b?f|tf)(?P<bits>8|16|32|64|128)")
# The name of the carry flag. It stands among the types of sources and results. It is bool.
CARRY = "%cc"


def is_type(name: str) -> bool:
    """Return True if a modifier is the name of a type."""
    return _bits_of_part(name.split("x")[0]) is not None


def _bits_of_part(name: str) -> int | None:
    match = _NAME.fullmatch(name)
    return int(match["bits"]) if match else _WIDTHS.get(name)


def bits_of(kind: str) -> int:
    """Return the width of a type in bits; of a packed type, that of all its parts."""
    if kind == CARRY:
        return 1
    part, _, count = kind.partition("x")
    bits = _bits_of_part(part)
    assert bits is not None, kind
    return bits * int(count or 1)


def unsigned_of(kind: str) -> np.dtype[Any]:
    """Return the unsigned integers of the width of a type; bool of a predicate.

    Raises Unsupported for types of 128 bits.
    """
    found = _UNSIGNED.get(bits_of(kind))
    if found is None:
        raise Unsupported(
            f"values of the type {kind} are not emulated",
            why="a register of the emulator has at most 64 bits",
            remedy="use pairs of b64",
        )
    return found


def dtype_of(kind: str) -> np.dtype[Any]:
    """Return the numpy type of the values of a type."""
    return _DTYPES.get(kind) or unsigned_of(kind)


def is_signed(kind: str) -> bool:
    """Return True for the signed integers."""
    return kind[0] == "s"


def as_unsigned(value: Array) -> Array:
    """Return the bits of a value as unsigned integers; of a bool, the value itself."""
    value = np.asarray(value)
    if value.dtype.kind in "ub":
        return value
    return value.view(f"u{value.itemsize}")


def of_bits(bits: int, kind: str) -> Array:
    """Return the value of a type that has these bits, as an array without axes."""
    return np.array(bits, unsigned_of(kind)).view(dtype_of(kind))
