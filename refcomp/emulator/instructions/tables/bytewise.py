"""Vector instructions on the bytes of registers: averages, and sums of absolute differences."""

from __future__ import annotations

import numpy as np

from refcomp.emulator.instructions.operation import Semantics, operation
from refcomp.emulator.machine.arrays import Array

_BYTE = np.uint32(255)


def _byte(value: Array, number: int) -> Array:
    shifted = np.asarray(value) >> np.uint32(8 * number)
    return (shifted & _BYTE).astype(np.int64)


def _differences(a: Array, b: Array, *, is_masked: bool = False) -> Array:
    """Return the sum of |a - b| of four bytes; masked, without those where b is 0."""
    total = np.zeros(np.broadcast(a, b).shape, np.int64)
    for number in range(4):
        other = _byte(b, number)
        difference = np.abs(_byte(a, number) - other)
        if is_masked:
            difference = np.where(other == 0, 0, difference)
        total = total + difference
    return total.astype(np.uint32)


def _sad(a: Array, b: Array, c: Array) -> Array:
    return _differences(a, b) + c


def _masked_sad(a: Array, b: Array, c: Array) -> Array:
    return _differences(a, b, is_masked=True) + c


def _high_sad(a: Array, b: Array, c: Array) -> Array:
    """Return the sum of differences in the upper half, added to `c`."""
    return (_differences(a, b) << np.uint32(16)) + c


def _half(value: Array, number: int) -> Array:
    shifted = np.asarray(value) >> np.uint32(16 * number)
    return (shifted & np.uint32(0xFFFF)).astype(np.int64)


def _sad_of_halves(a: Array, b: Array, c: Array) -> Array:
    low = np.abs(_half(a, 0) - _half(b, 0))
    high = np.abs(_half(a, 1) - _half(b, 1))
    total: Array = low + high
    result: Array = total.astype(np.uint32) + c
    return result


def _distance(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(a, b) - np.minimum(a, b) + c


def _four_at_once(a: Array, b: Array, c: Array, *, is_masked: bool = False) -> Array:
    """Return four sums of differences: of `b` and the bytes of `a` from number 0, 1, 2 and 3 on."""
    result = np.zeros(np.broadcast(a, b, c).shape, np.uint64)
    for number in range(4):
        window = (np.asarray(a) >> np.uint64(8 * number)).astype(np.uint32)
        place = np.uint64(16 * number)  # of this sum, in bits
        old = np.asarray(c) >> place
        sums = _differences(window, b, is_masked=is_masked).astype(np.uint64)
        total = (sums + old) & np.uint64(0xFFFF)
        result = result | total << place
    return result


def _four_at_once_masked(a: Array, b: Array, c: Array) -> Array:
    return _four_at_once(a, b, c, is_masked=True)


def _averages(a: Array, b: Array, c: Array) -> Array:
    """Return the average of each byte, rounded up where the lowest bit of `c`'s byte is set."""
    result = np.zeros(np.broadcast(a, b, c).shape, np.uint32)
    for number in range(4):
        rounds_up = _byte(c, number) & 1
        total = _byte(a, number) + _byte(b, number) + rounds_up
        average = (total >> 1).astype(np.uint32)
        result = result | average << np.uint32(8 * number)
    return result


# Types of the result and the operands.
_THREE = "u32 = u32 u32 u32"
_QUAD = "u64 = u64 u32 u64"
VECTOR_BYTES: dict[str, Semantics] = {
    "v_sad_u8": operation(_THREE, _sad),
    "v_msad_u8": operation(_THREE, _masked_sad),
    "v_sad_hi_u8": operation(_THREE, _high_sad),
    "v_sad_u16": operation(_THREE, _sad_of_halves),
    "v_sad_u32": operation(_THREE, _distance),
    "v_qsad_pk_u16_u8": operation(_QUAD, _four_at_once),
    "v_mqsad_pk_u16_u8": operation(_QUAD, _four_at_once_masked),
    "v_lerp_u8": operation(_THREE, _averages),
}
