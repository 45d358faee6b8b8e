"""A model of coalescing: how many segments of memory the lanes of a wave touch in one access.

A segment is a cache line. An access of a wave takes one transaction for each segment that its
active lanes touch, in whatever order the lanes touch them. Source: AMD's "ROCm Compute Profiler"
documentation, on the address coalescer of the vector L1 cache. A line has 128 bytes on MI300, and
64 bytes on earlier GPUs.

Limit: a GPU processes accesses of 16 bytes a lane in parts of a few lanes. If lanes of several
parts share a line, the GPU may look it up more often than is counted here.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.observers.counting.banks import alike

_NONE = -1  # in place of the offset or the segment of an inactive lane


def count_segments(index: Array, active: Array | None, size: int, segment: int) -> int:
    """Return the number of segments that an access touches, summed over waves.

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
        count = _count_wave(pattern, size, segment)
        total += kind.waves * count
    return total


@lru_cache(maxsize=4096)
def _count_wave(index: bytes, size: int, segment: int) -> int:
    offsets = np.frombuffer(index, np.int64)
    return _count(
        index=offsets[np.newaxis, :],
        active=None,
        size=size,
        segment=segment,
    )


def _count(index: Array, active: Array | None, size: int, segment: int) -> int:
    last_byte = index + (size - 1)
    first = index // segment
    last = last_byte // segment
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


def requested_bytes(index: Array, active: Array | None, size: int) -> Array:
    """Return the number of bytes that each wave requests, int [wave].

    Bytes that several lanes request count once. Arguments are as in `count_segments`.
    """
    kinds = list(alike(index, active, 1))
    if not kinds:
        return _requested_bytes(index, active, size)
    (kind,) = kinds
    pattern = kind.offsets.tobytes()
    count = _requested_bytes_of_wave(pattern, size)
    return np.full(kind.waves, count)


@lru_cache(maxsize=4096)
def _requested_bytes_of_wave(index: bytes, size: int) -> int:
    offsets = np.frombuffer(index, np.int64)
    (count,) = _requested_bytes(
        index=offsets[np.newaxis, :],
        active=None,
        size=size,
    )
    return int(count)


def _requested_bytes(index: Array, active: Array | None, size: int) -> Array:
    if active is not None:
        # An inactive lane adds nothing if it requests the same bytes as the last active lane.
        masked = np.where(active, index, _NONE)
        last = masked.max(axis=1, keepdims=True)
        index = np.where(active, index, last)
    index = np.sort(index, axis=1)
    # The bytes of each lane that precede those of the next lane.
    distance = np.diff(index, axis=1)
    own = np.minimum(distance, size)
    total = own.sum(axis=1) + size
    is_inactive = index[:, -1] == _NONE
    return np.where(is_inactive, 0, total)


def least_segments(requested: Array, segment: int) -> int:
    """Return the fewest segments that can hold the bytes that waves request, summed over waves.

    `requested` is the result of `requested_bytes`.
    """
    rounded_up = -(-requested // segment)
    return int(rounded_up.sum())


class TouchedSegments:
    """The segments of memory that a launch touches, and so must move at least once."""

    def __init__(self, segment: int) -> None:
        self.segment = segment  # bytes
        # [segment], up to the last one that was touched, or further
        self._flags = np.zeros(0, np.bool_)

    def add(self, index: Array, size: int) -> None:
        """Add accesses of `size` bytes at the offsets `index` (int [n])."""
        if not index.size:
            return
        last_byte = index + (size - 1)
        first = index // self.segment
        last = last_byte // self.segment
        self._grow(to=int(last.max()) + 1)
        self._flags[first] = True
        is_split = last != first
        self._flags[last[is_split]] = True

    def _grow(self, to: int) -> None:
        present = len(self._flags)
        if to <= present:
            return
        # At least doubled, so that the flags are copied a logarithmic number of times.
        grown = np.zeros(max(to, 2 * present), np.bool_)
        grown[:present] = self._flags
        self._flags = grown

    @property
    def bytes(self) -> int:
        """The bytes of all segments that were touched."""
        touched = np.count_nonzero(self._flags)
        return int(touched) * self.segment
