"""Vector instructions on the bytes of registers: averages, and sums of absolute differences."""

from __future__ import annotations

import numpy as np

from refcomp.emulator.instructions.operation import Semantics, operation
from refcomp.emulator.machine.arrays import Array

_BYTE = np.uint32(255)


def _byte(value: Array, number: int) -> Array:
    return (np.asarray(value) >> np.uint32(8 * number) & _BYTE).astype(np.int64)


def _differences(a: Array, b: Array, *, is_masked: bool = False) -> Array:
    """Return the sum of |a - b| of four bytes; masked, without those where b is 0."""
    total = np.zeros(np.broadcast(a, b).shape, np.int64)
    for number in range(4):
        one = _byte(a, number)
        other = _byte(b, number)
        counted = np.abs(one - other)
        total = total + (np.where(other == 0, 0, counted) if is_masked else counted)
    return total.astype(np.uint32)


def _halves(a: Array, b: Array, c: Array) -> Array:
    parts = [
        (np.asarray(x) >> s & np.uint32(0xFFFF)).astype(np.int64)
        for x in (a, b)
        for s in _S
    ]
    total: Array = np.abs(parts[0] - parts[2]) + np.abs(parts[1] - parts[3])
    result: Array = total.astype(np.uint32) + c
    return result


_S = (np.uint32(0), np.uint32(16))


def _distance(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(a, b) - np.minimum(a, b) + c


def _four_at_once(a: Array, b: Array, c: Array, *, is_masked: bool) -> Array:
    """Return four sums of differences: of `b` and the bytes of `a` from number 0, 1, 2 and 3 on."""
    result = np.zeros(np.broadcast(a, b, c).shape, np.uint64)
    for number in range(4):
        window = (np.asarray(a) >> np.uint64(8 * number)).astype(np.uint32)
        old = np.asarray(c) >> np.uint64(16 * number)
        total = _differences(window, b, is_masked=is_masked).astype(np.uint64) + old
        result = result | (total & np.uint64(0xFFFF)) << np.uint64(16 * number)
    return result


def _averages(a: Array, b: Array, c: Array) -> Array:
    """Return the average of each byte, rounded up where the lowest bit of `c`'s byte is set."""
    result = np.zeros(np.broadcast(a, b, c).shape, np.uint32)
    for number in range(4):
        total = _byte(a, number) + _byte(b, number) + (_byte(c, number) & 1)
        result = result | (total >> 1).astype(np.uint32) << np.uint32(8 * number)
    return result


_THREE = "u32 = u32 u32 u32"
_QUAD = "u64 = u64 u32 u64"
VECTOR_BYTES: dict[str, Semantics] = {
    "v_sad_u8": operation(_THREE, lambda a, b, c: _differences(a, b) + c),
    "v_msad_u8": operation(
        _THREE, lambda a, b, c: _differences(a, b, is_masked=True) + c
    ),
    "v_sad_hi_u8": operation(
        _THREE, lambda a, b, c: (_differences(a, b) << np.uint32(16)) + c
    ),
    "v_sad_u16": operation(_THREE, _halves),
    "v_sad_u32": operation(_THREE, _distance),
    "v_qsad_pk_u16_u8": operation(
        _QUAD, lambda *abc: _four_at_once(*abc, is_masked=False)
    ),
    "v_mqsad_pk_u16_u8": operation(
        _QUAD, lambda *abc: _four_at_once(*abc, is_masked=True)
    ),
    "v_lerp_u8": operation(_THREE, _averages),
}
