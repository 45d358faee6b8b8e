"""How many segments of memory the lanes of a wave touch in one access.

The model: an access of a wave is served by as many transactions as there are segments (a cache
line) that its active lanes touch, whatever the order of the lanes. So does AMD's "ROCm Compute
Profiler" documentation describe the address coalescer of the vector L1 cache, and the lines: 128
bytes on MI300, 64 before. A GPU takes the lanes in parts, of 16 bytes a lane a few at a time: where
lanes of several parts share a line, it may look for it more often than is counted here.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.observers.counting.banks import alike

_NONE = -1


def count_segments(index: Array, active: Array | None, size: int, segment: int) -> int:
    """Of byte offsets [wave, lane], of which the active ones move `size` bytes, not more than a
    segment: the number of pairs of a wave and a segment of `segment` bytes that it touches."""
    counts = [
        kind.waves * _count_wave(kind.offsets.tobytes(), size, segment)
        for kind in alike(index, active, segment)
    ]
    return sum(counts) if counts else _count(index, active, size, segment)


@lru_cache(maxsize=4096)
def _count_wave(index: bytes, size: int, segment: int) -> int:
    return _count(np.frombuffer(index, np.int64)[None, :], None, size, segment)


def _count(index: Array, active: Array | None, size: int, segment: int) -> int:
    first, last = index // segment, (index + (size - 1)) // segment
    if active is not None:
        first, last = np.where(active, first, _NONE), np.where(active, last, _NONE)
    touched = first if (first == last).all() else np.concatenate([first, last], axis=1)
    if (touched[:, 1:] < touched[:, :-1]).any():
        touched = np.sort(touched, axis=1)
    is_first = np.ones(touched.shape, np.bool_)
    is_first[:, 1:] = touched[:, 1:] != touched[:, :-1]
    return int(np.count_nonzero(is_first & (touched != _NONE)))


def least_segments(lanes: Array, size: int, segment: int) -> int:
    """As many as waves with so many active lanes [wave] touch at least, if no two lanes share."""
    return int((-(-lanes * size // segment)).sum())


class Touched:
    """Which segments of memory a launch touched at all: what it must move at least."""

    def __init__(self, segment: int) -> None:
        self.segment = segment
        self._flags = np.zeros(0, np.bool_)

    def add(self, index: Array, size: int) -> None:
        """`size` bytes at each of the offsets."""
        if not index.size:
            return
        first, last = index // self.segment, (index + (size - 1)) // self.segment
        needed = int(last.max()) + 1
        if needed > len(self._flags):
            more = np.zeros(
                max(needed, 2 * len(self._flags)) - len(self._flags), np.bool_
            )
            self._flags = np.concatenate([self._flags, more])
        self._flags[first] = True
        over = last != first
        self._flags[last[over]] = True

    @property
    def bytes(self) -> int:
        """All segments that were touched, whole."""
        return int(np.count_nonzero(self._flags)) * self.segment
