"""The interface of observers, which see what threads do while a kernel runs.

An observer is an argument of a launch, and reports findings by `threads.report`. It can change
nothing but the results of loads: `poisoned` can make their values undefined.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.ptx.machine.findings import Extents
from refcomp.emulator.ptx.text.module import PtxInstruction, PtxModule

# A `BlockThreads`. Its module imports this one, so that it cannot be named here.
ObservedThreads: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class SpaceAccess:
    """A memory access of one instruction in one space.

    Attributes:
        instruction: the instruction that accesses memory.
        space: "global" or "shared". Local memory belongs to one thread, and is not shown.
            Constants are in "global".
        is_store: True if it writes; an atomic update writes.
        is_strong: True for atomic updates, and for loads and stores that are volatile or ordered.
        size: bytes that each thread accesses.
        offsets: offsets in the arena or in `threads.shared`, for each of `numbers`.
        numbers: the numbers of the threads in the batch.
        values: the values that a store writes: arrays with an element for each of `numbers`, or
            without axes. Empty for an atomic update.
        part: the number of the access, if the instruction accesses several addresses in each
            thread: it makes one access after the other.
        parts: the number of these accesses.
    """

    instruction: PtxInstruction
    space: str
    is_store: bool
    is_strong: bool
    size: int
    offsets: Array
    numbers: Array
    values: tuple[Array, ...] = ()
    part: int = 0
    parts: int = 1


class PtxObserver:
    """An observer that ignores all events. Subclasses override the methods that they need.

    Attributes:
        may_need_second_run: True if `poisoning_observer` may return an observer.
    """

    may_need_second_run = False

    def launched(
        self, module: PtxModule, grid: Extents, block: Extents, extent: int
    ) -> None:
        """See that a launch begins. `extent` is the number of bytes of the arena that are used."""

    def began(self, threads: ObservedThreads) -> None:
        """See that the threads of some blocks begin."""

    def ran(
        self,
        threads: ObservedThreads,
        instructions: Sequence[PtxInstruction],
        warps: int,
    ) -> None:
        """See that the threads that run, which belong to `warps` warps, executed instructions.

        Only the last instruction may be one of control flow. It is executed after this call.
        """

    def skipped(
        self, threads: ObservedThreads, instruction: PtxInstruction, count: int
    ) -> None:
        """See that `count` of the threads did not execute an instruction, by its predicate."""

    def accessed(self, threads: ObservedThreads, access: SpaceAccess) -> None:
        """See an access to memory."""

    def poisoned(self, threads: ObservedThreads, access: SpaceAccess) -> Mask | None:
        """Return True for the bytes of a load that a thread gets as undefined.

        The result has a row for each thread and a column for each byte. None: there are none.
        """
        return None

    def poisoning_observer(self) -> PtxObserver | None:
        """Return an observer that poisons the loads in which this one found a race.

        The launch runs once more with it alone. If nothing changes, no thread uses the values, and
        the races are dropped. None: there is nothing to poison, or a race of two stores.
        """
        return None

    def synchronized(
        self, threads: ObservedThreads, numbers: Array, is_warp: bool
    ) -> None:
        """See that a barrier of a block or of a warp has synchronized these threads."""

    def released(
        self, threads: ObservedThreads, numbers: Array, place: Hashable
    ) -> None:
        """See that threads arrive at a place where others may wait for them: a release.

        A place is a barrier for a part of a block, or a phase of a barrier in shared memory.
        """

    def acquired(
        self, threads: ObservedThreads, numbers: Array, place: Hashable
    ) -> None:
        """See that threads have waited at a place for those that arrived there: an acquire."""

    def grew(self, extent: int) -> None:
        """See that the kernel allocated memory. `extent` is as in `launched`."""

    def fenced(self, threads: ObservedThreads, numbers: Array) -> None:
        """See that threads order their accesses by a fence, or by an access that orders."""
