"""The bytes of shared memory that asynchronous copies write until a thread has waited for them."""

from __future__ import annotations

import numpy as np

from refcomp.emulator.machine.arrays import Array, Offsets

_CELL = 4  # bytes; each copy has a multiple of them
# The owner of a cell: none, or 1 + the number of a thread, or the code of a barrier.
_NONE = 0


class PendingCopies:
    """The copies in flight of the threads of some blocks.

    A thread waits for its own copies, or a barrier (mbarrier) waits for them.

    Args:
        size: bytes of the shared memory of all blocks.
        threads: the number of threads.
    """

    def __init__(self, size: int, threads: int) -> None:
        cells = -(-size // _CELL)
        self._owner = np.zeros(cells, np.int64)
        # The number of the copy's group if a thread owns the cell, else of the barrier's phase.
        self._group = np.zeros(cells, np.int64)
        # Thread -> the number of the group of its next copy.
        self._current = np.zeros(threads, np.int64)

    def begin(self, numbers: Array, offsets: Offsets, size: int) -> None:
        """Record copies of `size` bytes to `offsets` by the threads `numbers`."""
        cells = _cells_of(offsets, size)
        self._owner[cells] = numbers + 1
        self._group[cells] = self._current[numbers]

    def commit(self, numbers: Array) -> None:
        """End a group of copies of each thread."""
        self._current[numbers] += 1

    def wait(self, numbers: Array, pending: int) -> None:
        """Let each thread wait for its groups except the latest `pending`; -1: for all copies."""
        # 1 + the number of a thread -> the first group that stays in flight.
        threads = len(self._current)
        first_pending = np.zeros(threads + 1, np.int64)
        first_pending[numbers + 1] = self._current[numbers] - pending
        is_of_thread = self._owner > _NONE
        owner = np.where(is_of_thread, self._owner, _NONE)
        is_complete = self._group < first_pending[owner]
        self._owner[is_of_thread & is_complete] = _NONE

    def hand_over(self, numbers: Array, barrier: int, phase: int) -> None:
        """Let a barrier wait for all copies of some threads, instead of the threads.

        Args:
            barrier: the barrier's place in shared memory.
            phase: the phase that does not end before the copies are complete.
        """
        is_theirs = np.isin(self._owner, numbers + 1)
        self._owner[is_theirs] = _code_of(barrier)
        self._group[is_theirs] = phase

    def begin_bulk(self, offset: int, size: int, barrier: int, phase: int) -> None:
        """Record a copy of `size` bytes to `offset`. Arguments are as in `hand_over`."""
        first = offset // _CELL
        end = -(-(offset + size) // _CELL)
        self._owner[first:end] = _code_of(barrier)
        self._group[first:end] = phase

    def end_phases(self, barrier: int, phase: int) -> None:
        """Complete the copies of the phases of a barrier that precede `phase`."""
        is_of_barrier = self._owner == _code_of(barrier)
        has_ended = self._group < phase
        self._owner[is_of_barrier & has_ended] = _NONE

    def in_flight(self, offsets: Offsets, size: int) -> Array:
        """Return True for the accesses of `size` bytes at `offsets` that touch bytes in flight."""
        cells = _cells_of(offsets, size)
        is_in_flight = self._owner[cells] != _NONE
        return np.asarray(is_in_flight.any(axis=0))


def _cells_of(offsets: Offsets, size: int) -> Array:
    """Return the cells of accesses, [number of the cell in an access, access]."""
    first = np.asarray(offsets) // _CELL
    steps = np.arange(-(-size // _CELL))
    return np.add.outer(steps, first)


def _code_of(barrier: int) -> int:
    """Return the negative number that stands for a barrier among the owners."""
    return -(barrier + 1)
