"""Which waves run in a slice of time: none that has begun starves, as on a GPU.

Waves with the smallest program counter run first, so that waves meet again; those alone would run
for ever where they wait in a loop for what others are yet to write. So blocks are counted in
slices. In every second one only those waves run that have not for longest, if some have not; the
next slices are the shorter then.
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.machine.arrays import Array

LONGEST, SHORTEST = 256, 16


class Slices:
    """`left` counts the blocks of a slice that are still to run."""

    def __init__(self, waves: int) -> None:
        self._last = np.zeros(waves, np.int64)  # the slice in which each wave ran last
        self._number, self._length, self.left = 1, LONGEST, LONGEST
        self._favoured: Array | None = None

    def begin(self, running: Array) -> None:
        """A slice begins while some waves could run: bool [wave]."""
        self._number, self._favoured, last = self._number + 1, None, self._last[running]
        if self._number % 2 == 0:
            is_fair = bool(last.min() == last.max())
            self._favoured = None if is_fair else running & (self._last == last.min())
            self._length = 2 * self._length if is_fair else self._length // 2
            self._length = max(SHORTEST, min(self._length, LONGEST))
        self.left = self._length

    def among(self, running: Array) -> Array:
        """Those that run in this slice; all when none of these could run any more."""
        if self._favoured is None:
            return running
        found: Array = running & self._favoured
        if found.any():
            return found
        self._favoured = None
        return running

    def note(self, chosen: Array) -> None:
        """These run now."""
        self._last[chosen] = self._number

    def have_waited(self) -> Array:
        """The waves that did not run for a whole slice."""
        found: Array = self._last < self._number
        return found
