"""Bytes of shared memory that an asynchronous copy writes, until its thread has waited for it."""

from __future__ import annotations

import numpy as np

from refcomp.emulator.machine.arrays import Array, Offsets

_CELL = 4  # bytes; a copy moves 4, 8 or 16


class Flights:
    """The copies in flight of some threads.

    Args:
        size: bytes of the shared memory of all blocks.
        threads: the number of threads.
    """

    def __init__(self, size: int, threads: int) -> None:
        # int64 [cell]: 1 + the number of the thread; 0: nothing is in flight; negative: less 1 than
        # the negative place of the barrier (mbarrier) that waits for the copy.
        self._owner = np.zeros(-(-size // _CELL), np.int64)
        self._group = np.zeros(len(self._owner), np.int64)  # of the copy, or phase
        self._current = np.zeros(
            threads, np.int64
        )  # the group of each thread's next copy

    def take_off(self, numbers: Array, offsets: Offsets, size: int) -> None:
        """Record copies of `size` bytes to `offsets` by the threads `numbers`."""
        for step in range(0, size, _CELL):
            cells = (offsets + step) // _CELL
            self._owner[cells] = numbers + 1
            self._group[cells] = self._current[numbers]

    def commit(self, numbers: Array) -> None:
        """End a group of copies of each thread."""
        self._current[numbers] += 1

    def land(self, numbers: Array, pending: int) -> None:
        """Let each thread wait for its groups but the latest `pending`; -1: for all copies."""
        # One more than the latest group that has landed, by 1 + the number of the thread.
        landed = np.zeros(len(self._current) + 1, np.int64)
        landed[numbers + 1] = self._current[numbers] - pending
        is_down = (self._owner > 0) & (self._group < landed[np.maximum(self._owner, 0)])
        self._owner[is_down] = 0

    def hand_over(self, numbers: Array, barrier: int, phase: int) -> None:
        """Let a barrier, by its place in shared memory, wait for all copies of some threads."""
        owned = np.isin(self._owner, numbers + 1)
        self._owner[owned] = -(barrier + 1)
        self._group[owned] = phase

    def bring(self, offset: int, size: int, barrier: int, phase: int) -> None:
        """Record a copy to `offset` that a barrier waits for."""
        cells = slice(offset // _CELL, -(-(offset + size) // _CELL))
        self._owner[cells] = -(barrier + 1)
        self._group[cells] = phase

    def land_at(self, barrier: int, phase: int) -> None:
        """End the copies of a barrier's phases before this one."""
        is_down = (self._owner == -(barrier + 1)) & (self._group < phase)
        self._owner[is_down] = 0

    def in_flight(self, offsets: Offsets, size: int) -> Array:
        """Return which accesses of `size` bytes at `offsets` touch bytes in flight."""
        found = np.zeros(np.shape(offsets), np.bool_)
        for step in range(0, size, _CELL):
            found |= self._owner[(offsets + step) // _CELL] != 0
        return found
