"""A model of coalescing: how many segments of memory the lanes of a wave touch in one access.

An access of a wave is served by as many transactions as its active lanes touch segments, which are
cache lines. The order of the lanes does not matter. AMD's "ROCm Compute Profiler" documentation
describes the address coalescer of the vector L1 cache so, with lines of 128 bytes on MI300, and of
64 bytes before. Limit: a GPU processes accesses of 16 bytes a lane in parts of a few lanes. If
lanes of several parts share a line, the GPU may look it up more often than is counted here.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.observers.counting.banks import alike

_NONE = -1  # instead of the segment of a lane that is off


def count_segments(index: Array, active: Array | None, size: int, segment: int) -> int:
    """Return how many pairs of a wave and a segment an access touches.

    Args:
        index: int64 [wave, lane], offsets in bytes.
        active: bool [wave, lane]; None: all lanes.
        size: bytes of each lane, at most `segment`.
        segment: bytes of a segment.
    """
    kinds = list(alike(index, active, segment))
    if not kinds:
        return _count(index, active, size, segment)
    total = 0
    for kind in kinds:
        pattern = kind.offsets.tobytes()
        total += kind.waves * _count_wave(pattern, size, segment)
    return total


@lru_cache(maxsize=4096)
def _count_wave(index: bytes, size: int, segment: int) -> int:
    offsets = np.frombuffer(index, np.int64)
    return _count(offsets[np.newaxis, :], None, size, segment)


def _count(index: Array, active: Array | None, size: int, segment: int) -> int:
    first = index // segment
    last = (index + (size - 1)) // segment
    if active is not None:
        first = np.where(active, first, _NONE)
        last = np.where(active, last, _NONE)
    touched = first
    if not np.array_equal(first, last):
        touched = np.concatenate([first, last], axis=1)
    # Most accesses are in order already.
    is_descending = touched[:, 1:] < touched[:, :-1]
    if is_descending.any():
        touched = np.sort(touched, axis=1)
    is_first = np.ones(touched.shape, np.bool_)
    is_first[:, 1:] = touched[:, 1:] != touched[:, :-1]
    is_segment = touched != _NONE
    return int(np.count_nonzero(is_first & is_segment))


def asked_bytes(index: Array, active: Array | None, size: int) -> Array:
    """Return how many bytes each wave asks for, int [wave].

    Bytes that several lanes ask for count once. Arguments are as in `count_segments`.
    """
    kinds = list(alike(index, active, 1))
    if not kinds:
        return _asked_bytes(index, active, size)
    (kind,) = kinds
    return np.full(kind.waves, _asked_bytes_of_wave(kind.offsets.tobytes(), size))


@lru_cache(maxsize=4096)
def _asked_bytes_of_wave(index: bytes, size: int) -> int:
    offsets = np.frombuffer(index, np.int64)
    return int(_asked_bytes(offsets[np.newaxis, :], None, size)[0])


def _asked_bytes(index: Array, active: Array | None, size: int) -> Array:
    if active is not None:
        # A lane that is off asks for what the last one asks for.
        last = np.where(active, index, _NONE).max(axis=1, keepdims=True)
        index = np.where(active, index, last)
    index = np.sort(index, axis=1)
    # Of each lane, the bytes before those of the next one.
    own = np.minimum(np.diff(index, axis=1), size)
    found: Array = np.where(index[:, -1] == _NONE, 0, own.sum(axis=1) + size)
    return found


def least_segments(asked: Array, segment: int) -> int:
    """Return the fewest segments that can hold the bytes that waves ask for, summed over waves.

    `asked` is what `asked_bytes` returns.
    """
    rounded_up = -(-asked // segment)
    return int(rounded_up.sum())


class Touched:
    """The segments of memory that a launch touched at all, and must move at least once."""

    def __init__(self, segment: int) -> None:
        self.segment = segment  # bytes
        self._flags = np.zeros(0, np.bool_)  # [segment], as far as any was touched

    def add(self, index: Array, size: int) -> None:
        """Add accesses of `size` bytes at the offsets `index` (int [n])."""
        if not index.size:
            return
        first = index // self.segment
        last = (index + (size - 1)) // self.segment
        needed = int(last.max()) + 1
        present = len(self._flags)
        if needed > present:
            # At least twice as many, so that few launches copy the flags often.
            grown = np.zeros(max(needed, 2 * present), np.bool_)
            grown[:present] = self._flags
            self._flags = grown
        self._flags[first] = True
        over = last != first
        self._flags[last[over]] = True

    @property
    def bytes(self) -> int:
        """The bytes of all segments that were touched."""
        return int(np.count_nonzero(self._flags)) * self.segment
