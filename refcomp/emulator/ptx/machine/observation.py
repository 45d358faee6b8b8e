"""The interface of observers, which see what threads do while a kernel runs.

An observer is given with a launch, and reports findings by `threads.report`. It changes nothing but
what loads return: `poisoned` can make their values undefined.
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
        space: "global" or "shared". Local memory is a thread's own, and not shown.
            Constants are global.
        is_store: True if it writes; an atomic update writes.
        is_strong: True for atomic updates, and for loads and stores that are volatile or ordered.
        size: bytes of each thread.
        offsets: in the arena or in `threads.shared`, for each of `numbers`.
        numbers: of the threads, among all of the batch.
        values: what a store writes: some arrays with an element for each of `numbers`, or without
            axes. Empty for an atomic update.
        part, parts: an instruction that moves items of each thread at several addresses makes an
            access of each, one after another. These are the number of this one, and of all.
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
    """An observer that ignores everything; a real one overrides what it needs.

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
        """See that the threads that run, of so many warps, came to some instructions in a row.

        Only the last of them may decide what runs next; the others are done.
        """

    def skipped(
        self, threads: ObservedThreads, instruction: PtxInstruction, count: int
    ) -> None:
        """See that so many of these threads did not do one of them, by its predicate."""

    def accessed(self, threads: ObservedThreads, access: SpaceAccess) -> None:
        """See an access that was made."""

    def poisoned(self, threads: ObservedThreads, access: SpaceAccess) -> Mask | None:
        """Return which bytes of a load each thread gets as undefined ones.

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
        """See that threads go on together behind a barrier of a block, or of a warp."""

    def released(
        self, threads: ObservedThreads, numbers: Array, place: Hashable
    ) -> None:
        """See that threads arrive at a place where others may wait for them.

        A place is a barrier for a part of a block, or a phase of one in shared memory.
        """

    def acquired(
        self, threads: ObservedThreads, numbers: Array, place: Hashable
    ) -> None:
        """See that threads go on behind such a place, after those that had arrived there."""

    def grew(self, extent: int) -> None:
        """See that the kernel allocated memory. `extent` is as in `launched`."""

    def fenced(self, threads: ObservedThreads, numbers: Array) -> None:
        """See that threads order their accesses by a fence, or by an access that orders."""
