"""The loads in which a race was found, and an observer that makes their values undefined.

A load is known by its thread, its space and its cell: some bytes of memory.
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.code.findings import RACE
from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.ptx.machine.findings import Extents
from refcomp.emulator.ptx.machine.observation import (
    ObservedThreads,
    PtxObserver,
    SpaceAccess,
)
from refcomp.emulator.ptx.text.module import PtxModule

_LOADS = ("ld", "ldu")  # the instructions that can be poisoned


class RacingLoads:
    """The loads of a launch that race.

    Args:
        cell: bytes of a cell.
    """

    def __init__(self, cell: int) -> None:
        self._cell = cell
        self._of_threads: set[tuple[str, int, int]] = set()  # space, cell, thread
        # (space, cell) whose loads race -> the only thread of which they do not, or -1.
        self._of_others: dict[tuple[str, int], int] = {}
        self._is_certain = False  # a race of two stores was found

    def add(self, space: str, cells: Array, threads: Array) -> None:
        """Add loads of cells by threads, which are numbered in the launch."""
        pairs = zip(cells.tolist(), threads.tolist(), strict=True)
        self._of_threads.update((space, cell, thread) for cell, thread in pairs)

    def add_others(self, space: str, cells: Array, writers: Array) -> None:
        """Add all loads of cells but those of the threads that write them."""
        for cell, writer in zip(cells.tolist(), writers.tolist(), strict=True):
            known = self._of_others.setdefault((space, cell), writer)
            if known != writer:
                self._of_others[space, cell] = -1

    def add_certain(self, wrong: Mask) -> None:
        """Learn which accesses race with others than loads."""
        self._is_certain |= bool(wrong.any())

    def observer(self) -> PtxObserver | None:
        """Return what poisons the loads; None if there are none, or if another race is certain."""
        if self._is_certain or not (self._of_threads or self._of_others):
            return None
        return _PoisonedLoads(self._cell, self._of_threads, self._of_others)


class _PoisonedLoads(PtxObserver):
    """Makes the values of racing loads undefined. Other accesses that race are findings."""

    def __init__(
        self,
        cell: int,
        of_threads: set[tuple[str, int, int]],
        of_others: dict[tuple[str, int], int],
    ) -> None:
        self._cell = cell
        self._of_threads = of_threads
        self._of_others = of_others
        self._cells = {
            space: np.array(
                sorted(
                    {cell for s, cell, _ in of_threads if s == space}
                    | {cell for s, cell in of_others if s == space}
                ),
                np.int64,
            )
            for space in ("global", "shared")
        }

    def launched(
        self, module: PtxModule, grid: Extents, block: Extents, extent: int
    ) -> None:
        self._first = 0
        self._next = 0

    def began(self, threads: ObservedThreads) -> None:
        self._first = self._next
        self._next += threads.count

    def accessed(self, threads: ObservedThreads, access: SpaceAccess) -> None:
        if access.is_store or access.instruction.opcode in _LOADS:
            return
        wrong = self._racing(access)
        if wrong is None:
            return
        before = threads.at, threads.lanes
        threads.at = threads.lanes = access.numbers
        threads.report(RACE, access.instruction, "reads what another writes", wrong)
        threads.at, threads.lanes = before

    def poisoned(self, threads: ObservedThreads, access: SpaceAccess) -> Mask | None:
        if access.is_store or access.instruction.opcode not in _LOADS:
            return None
        return self._racing(access)

    def _racing(self, access: SpaceAccess) -> Mask | None:
        """Return which threads make a racing access; None if none does."""
        found = np.zeros(len(access.numbers), np.bool_)
        for step in range(0, access.size, self._cell):
            cells = (access.offsets + step) // self._cell
            for number in np.flatnonzero(np.isin(cells, self._cells[access.space])):
                cell = int(cells[number])
                thread = self._first + int(access.numbers[number])
                found[number] |= (access.space, cell, thread) in self._of_threads
                writer = self._of_others.get((access.space, cell))
                found[number] |= writer is not None and writer != thread
        return found if found.any() else None
