"""Time slices of waves: no wave that has begun starves, as on a GPU.

Waves with the smallest program counter run first, so that diverged waves meet again. But such waves
may wait in a loop for a value that other waves have yet to write. They would then run forever. So
time is divided into slices, counted in blocks of instructions. In every second slice, only those
waves run that have waited longest. While some waves have waited longer than others, slices become
shorter.
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.machine.arrays import Array

# Lengths of slices, in blocks.
MAX_LENGTH = 256
MIN_LENGTH = 16


class Slices:
    """The time slices of a batch of waves."""

    def __init__(self, waves: int) -> None:
        # int64 [waves]: the number of the slice in which each wave ran last.
        self._last = np.zeros(waves, np.int64)
        self._number = 1
        self._length = MAX_LENGTH
        self.left = MAX_LENGTH  # blocks still to run in this slice
        self._favoured: Array | None = None  # bool [waves]; None: all

    def begin(self, running: Array) -> None:
        """Begin a slice. `running` (bool [waves]) marks the waves that can run."""
        self._number += 1
        self._favoured = None
        last = self._last[running]
        if self._number % 2 == 0:
            is_fair = bool(last.min() == last.max())
            if is_fair:
                self._length = min(2 * self._length, MAX_LENGTH)
            else:
                self._favoured = running & (self._last == last.min())
                self._length = max(self._length // 2, MIN_LENGTH)
        self.left = self._length

    def runnable(self, running: Array) -> Array:
        """Return which of `running` may run in this slice (both bool [waves]).

        If no favoured wave can run any more, all may.
        """
        if self._favoured is None:
            return running
        found: Array = running & self._favoured
        if found.any():
            return found
        self._favoured = None
        return running

    def record(self, chosen: Array) -> None:
        """Record that the waves `chosen` (bool [waves]) run now."""
        self._last[chosen] = self._number

    def starved(self) -> Array:
        """Return, as bool [waves], which waves have not run in this slice."""
        found: Array = self._last < self._number
        return found
