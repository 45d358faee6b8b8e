"""The loads in which a race was found, and an observer that makes their values undefined.

A load is identified by its thread, its space, its cell and its phase. A cell is some bytes of
memory. The phase is the number of barriers of the block that the thread has passed.
"""

from __future__ import annotations

from typing import NamedTuple

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

PHASE_BITS = 15  # phases are counted modulo 2**15
ANY_PHASE = -1
_PHASES = (1 << PHASE_BITS) - 1
_LOADS = ("ld", "ldu")  # the instructions that can be poisoned


class _CellLoad(NamedTuple):
    space: str
    cell: int
    phase: int  # ANY_PHASE: all phases


class _ThreadLoad(NamedTuple):
    load: _CellLoad
    thread: int


class RacingLoads:
    """The loads of a launch that race.

    Args:
        cell: bytes of a cell.
    """

    def __init__(self, cell: int) -> None:
        self._cell = cell
        self._of_threads: set[_ThreadLoad] = set()
        # Loads that race -> the only thread whose loads do not race, or -1.
        self._of_others: dict[_CellLoad, int] = {}
        self._is_certain = False  # a race of two stores was found

    def add(self, space: str, cells: Array, threads: Array, phases: Array) -> None:
        """Add loads of cells by threads, which are numbered in the launch, in these phases."""
        rows = zip(cells.tolist(), phases.tolist(), threads.tolist(), strict=True)
        self._of_threads.update(
            _ThreadLoad(_CellLoad(space, cell, phase), thread)
            for cell, phase, thread in rows
        )

    def add_others(
        self, space: str, cells: Array, writers: Array, phases: Array
    ) -> None:
        """Add all loads of cells in phases, except for loads by the writers of the cells."""
        rows = zip(cells.tolist(), phases.tolist(), writers.tolist(), strict=True)
        for cell, phase, writer in rows:
            load = _CellLoad(space, cell, phase)
            known = self._of_others.setdefault(load, writer)
            if known != writer:
                self._of_others[load] = -1

    def add_certain(self, wrong: Mask) -> None:
        """Record that two stores race, where `wrong` is True."""
        self._is_certain |= bool(wrong.any())

    def observer(self) -> PtxObserver | None:
        """Return an observer that poisons the loads. None: there are none, or stores race, too."""
        if self._is_certain or not (self._of_threads or self._of_others):
            return None
        return _PoisonedLoads(self._cell, self._of_threads, self._of_others)


class _PoisonedLoads(PtxObserver):
    """Makes the values of racing loads undefined. Other accesses that race are findings."""

    def __init__(
        self,
        cell: int,
        of_threads: set[_ThreadLoad],
        of_others: dict[_CellLoad, int],
    ) -> None:
        self._cell = cell
        self._of_threads = of_threads
        self._of_others = of_others
        loads = {load for load, _ in of_threads} | of_others.keys()
        self._cells = {
            space: np.array(
                sorted({load.cell for load in loads if load.space == space}), np.int64
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
        self._phases = np.zeros(threads.count, np.int64)

    def synchronized(
        self, threads: ObservedThreads, numbers: Array, is_warp: bool
    ) -> None:
        if not is_warp:
            self._phases[numbers] = (self._phases[numbers] + 1) & _PHASES

    def accessed(self, threads: ObservedThreads, access: SpaceAccess) -> None:
        if access.is_store or access.instruction.opcode in _LOADS:
            return
        racing = self._racing(access)
        if racing is None:
            return
        wrong = racing.any(axis=1)
        before = threads.at, threads.lanes
        threads.at = threads.lanes = access.numbers
        threads.report(RACE, access.instruction, "reads what another writes", wrong)
        threads.at, threads.lanes = before

    def poisoned(self, threads: ObservedThreads, access: SpaceAccess) -> Mask | None:
        if access.is_store or access.instruction.opcode not in _LOADS:
            return None
        return self._racing(access)

    def _racing(self, access: SpaceAccess) -> Mask | None:
        """Return True for the bytes of each thread's access that race; None if none does."""
        found = np.zeros((len(access.numbers), access.size), np.bool_)
        for step in range(0, access.size, self._cell):
            cells = (access.offsets + step) // self._cell
            of_cell = slice(step, step + self._cell)
            for number in np.flatnonzero(np.isin(cells, self._cells[access.space])):
                thread = int(access.numbers[number])
                phases = (ANY_PHASE, int(self._phases[thread]))
                found[number, of_cell] = any(
                    self._is_racing(
                        _CellLoad(access.space, int(cells[number]), phase),
                        self._first + thread,
                    )
                    for phase in phases
                )
        return found if found.any() else None

    def _is_racing(self, load: _CellLoad, thread: int) -> bool:
        if _ThreadLoad(load, thread) in self._of_threads:
            return True
        writer = self._of_others.get(load)
        return writer is not None and writer != thread
