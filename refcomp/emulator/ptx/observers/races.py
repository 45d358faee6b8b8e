"""Data races: two threads access the same bytes, one of them writes, and nothing orders them.

What orders accesses:

- A barrier of a block (`bar.sync`) orders the accesses of the threads that it synchronizes.
- A barrier of a warp (`bar.warp.sync`) orders the accesses of the warp's threads. Without a
  barrier, the threads of a warp are unordered.
- Some kernels have barriers for a part of a block: `bar.sync` with a count, `bar.arrive`,
  `mbarrier`. There, each thread has a vector clock of the events that happened before
  (`clocks.py`).
- A fence of a thread is assumed to order the thread's accesses, up to its next barrier, after all
  earlier writes of its block. It also orders them after the writes of another block that precede
  a fence of that block.
- Atomic updates, and volatile or ordered accesses, never race with each other.
- Threads that write equal values by the same instruction do not race.
- A load of bytes that nothing wrote does not race with a later store: a use of the value is a
  finding of its own.
- A load whose value no thread uses does not race (`emulator.ptx.execution.confirmation`).

The check is neither sound nor complete.

- *False negatives*: a fence may not really order the accesses. A race with a reader is missed if
  others of its kind read after it.
- *False positives*: programs that rely on the order of threads in a warp. A racing load whose
  value no thread uses, if the thread loads these bytes again behind a barrier of its warp only, and
  uses them.

Source: NVIDIA, "Parallel Thread Execution ISA", section "Memory Consistency Model".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import prod

import numpy as np

from refcomp.emulator.code.findings import RACE
from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.ptx.instructions.types import bits_of
from refcomp.emulator.ptx.machine.findings import Extents
from refcomp.emulator.ptx.machine.observation import (
    ObservedThreads,
    PtxObserver,
    SpaceAccess,
)
from refcomp.emulator.ptx.observers.clocks import ThreadClocks, has_partial_barriers
from refcomp.emulator.ptx.observers.racing_loads import (
    ANY_PHASE,
    PHASE_BITS,
    RacingLoads,
)
from refcomp.emulator.ptx.text.module import PtxModule
from refcomp.foundation.errors import Unsupported

# A record of an access holds 1 + the number of the thread in the launch, the times by barriers, and
# flags.
# The times are the numbers of block and warp barriers so far, modulo 2**PHASE_BITS.
_TIME_BITS = PHASE_BITS
_TIMES = (1 << _TIME_BITS) - 1
_ALL_TIMES = (1 << 2 * _TIME_BITS) - 1
_STRONG = 1
_MANY = 2  # further threads of the block read
_MANY_BLOCKS = 4  # threads of other blocks read
_FLAG_BITS = 3
_THREAD_SHIFT = _FLAG_BITS + 2 * _TIME_BITS
_MAX_THREADS = 1 << (63 - _THREAD_SHIFT)
_NO_FENCES = np.array(-1)
_TYPED_ACCESSES = ("ld", "st", "atom", "red")


class ThreadRaces(PtxObserver):
    """Reports races of one launch."""

    may_need_second_run = True

    def launched(
        self, module: PtxModule, grid: Extents, block: Extents, extent: int
    ) -> None:
        self._per_block = -(-prod(block) // 32) * 32
        if self._per_block * prod(grid) >= _MAX_THREADS:
            raise Unsupported(
                f"a launch of {self._per_block * prod(grid)} threads cannot be checked for races",
                why=f"at most {_MAX_THREADS} threads can have numbers of their own",
                remedy="launch fewer blocks, or leave the check out",
            )
        self._module = module
        self._cell = _smallest_access(module)
        self._loads = RacingLoads(self._cell)
        cells = -(-extent // self._cell)
        self._first = 0  # the number of the first thread of the batch in the launch
        self._next = 0
        self._histories = {"global": _History(cells)}
        # The number of fences of each block.
        self._fences = np.zeros(prod(grid), np.int64)

    def began(self, threads: ObservedThreads) -> None:
        self._first = self._next
        self._next += threads.count
        cells = -(-len(threads.shared.data) // self._cell)
        self._histories["shared"] = _History(cells)
        self._clocks: ThreadClocks | None = None
        if has_partial_barriers(self._module, threads.around.kernel):
            self._clocks = ThreadClocks(len(threads.blocks), threads.per_block)
        self._block_time = np.zeros(threads.count, np.int64)
        self._warp_time = np.zeros(threads.count, np.int64)
        self._has_fence = np.zeros(threads.count, np.bool_)

    def synchronized(
        self, threads: ObservedThreads, numbers: Array, is_warp: bool
    ) -> None:
        if is_warp:
            self._warp_time[numbers] = (self._warp_time[numbers] + 1) & _TIMES
        else:
            self._has_fence[numbers] = False
            self._block_time[numbers] = (self._block_time[numbers] + 1) & _TIMES
        if self._clocks is not None:
            for some in _by_warp(numbers) if is_warp else (numbers,):
                self._clocks.join(some)

    def released(
        self, threads: ObservedThreads, numbers: Array, place: Hashable
    ) -> None:
        if self._clocks is not None:
            self._clocks.release(numbers, place)

    def acquired(
        self, threads: ObservedThreads, numbers: Array, place: Hashable
    ) -> None:
        self._has_fence[numbers] = False
        if self._clocks is not None:
            self._clocks.acquire(numbers, place)

    def grew(self, extent: int) -> None:
        self._histories["global"].grow(-(-extent // self._cell))

    def fenced(self, threads: ObservedThreads, numbers: Array) -> None:
        self._has_fence[numbers] = True
        self._fences[np.unique(self._blocks_of(numbers))] += 1

    def _blocks_of(self, numbers: Array) -> Array:
        """Return the number in the launch of the block of each thread of the batch."""
        found: Array = (self._first + numbers) // self._per_block
        return found

    def accessed(self, threads: ObservedThreads, access: SpaceAccess) -> None:
        history = self._histories[access.space]
        own = self._records(access)
        wrong = np.zeros(len(access.numbers), np.bool_)
        if access.is_store and not access.is_strong:
            wrong |= _differing_twins(access, self._cell)
            self._loads.add_certain(wrong)
        earlier = np.zeros(len(access.numbers), np.int64)
        for cells in self._cells(access):
            for number, (record, fences) in enumerate(
                history.conflicting(cells, access.is_store)
            ):
                bad = self._conflicts(access, record, own, fences)
                self._add_loads(access, cells, record, bad, of_reads=number > 0)
                earlier = np.where(bad & (earlier == 0), record, earlier)
                wrong |= bad
        if wrong.any():
            self._report(threads, access, wrong, earlier)
        for cells in self._cells(access):
            if access.is_store:
                fences = self._fences[self._blocks_of(access.numbers)]
                history.write(cells, own, fences)
                continue
            has_value = self._has_value(threads, access.space, cells)
            history.read(cells[has_value], own[has_value], self._per_block)

    def _add_loads(
        self,
        access: SpaceAccess,
        cells: Array,
        record: Array,
        bad: Mask,
        *,
        of_reads: bool,
    ) -> None:
        """Record the loads of a race: the access itself, or earlier loads that race with it."""
        if not bad.any():
            return
        mine = self._first + access.numbers
        phases = self._block_time[access.numbers]
        if not access.is_store:
            self._loads.add(access.space, cells[bad], mine[bad], phases[bad])
            return
        if not of_reads:  # two stores
            self._loads.add_certain(bad)
            return
        many = bad & ((record & (_MANY | _MANY_BLOCKS)) != 0)
        alone = bad & ~many
        thread = (record >> _THREAD_SHIFT) - 1
        # Only the latest read of a thread is on record. Earlier ones may race, too: in the same
        # phase, or in any if a barrier of the block does not order them.
        by_phase = thread // self._per_block == mine // self._per_block
        by_phase &= (record & _MANY_BLOCKS) == 0
        if self._clocks is not None:
            by_phase[:] = False
        phases = np.where(by_phase, phases, ANY_PHASE)
        self._loads.add(access.space, cells[alone], thread[alone], phases[alone])
        self._loads.add_others(access.space, cells[many], mine[many], phases[many])

    def poisoning_observer(self) -> PtxObserver | None:
        return self._loads.observer()

    def _cells(self, access: SpaceAccess) -> Iterator[Array]:
        for step in range(0, access.size, self._cell):
            yield (access.offsets + step) // self._cell

    def _has_value(self, threads: ObservedThreads, space: str, cells: Array) -> Mask:
        """Return True for cells with a defined byte."""
        memory = threads.shared if space == "shared" else threads.around.arena.bytes
        if memory.known is None:
            return np.ones(len(cells), np.bool_)
        places = cells[:, None] * self._cell + np.arange(self._cell)
        last = len(memory.known) - 1
        found: Mask = memory.known[np.minimum(places, last)].any(axis=1)
        return found

    def _records(self, access: SpaceAccess) -> Array:
        numbers = access.numbers
        if self._clocks is not None:
            times = self._clocks.own(numbers) & _ALL_TIMES
        else:
            times = self._block_time[numbers] << _TIME_BITS | self._warp_time[numbers]
        thread = self._first + numbers + 1
        records: Array = thread << _THREAD_SHIFT | times << _FLAG_BITS
        return records | _STRONG if access.is_strong else records

    def _conflicts(
        self, access: SpaceAccess, record: Array, own: Array, fences: Array
    ) -> Mask:
        """Return True for accesses that are not ordered after earlier accesses.

        Args:
            access: the accesses.
            record: the records of the earlier accesses.
            own: the records of the accesses.
            fences: the number of fences of each earlier access's block before that access.
        """
        thread = (record >> _THREAD_SHIFT) - 1
        mine = (own >> _THREAD_SHIFT) - 1
        is_many = (record & _MANY) != 0
        if self._clocks is not None:
            is_many &= False
        others: Mask = (record != 0) & ((thread != mine) | is_many)
        if access.is_strong:
            others &= (record & _STRONG) == 0
        if not others.any():
            return others
        same_block = thread // self._per_block == mine // self._per_block
        times = record >> _FLAG_BITS & _ALL_TIMES
        if self._clocks is not None:
            ordered_here = self._clocks.happened_before(times, thread, access.numbers)
        else:
            own_times = own >> _FLAG_BITS & _ALL_TIMES
            same_warp = (thread // 32 == mine // 32) & ~is_many
            ordered_here = (times >> _TIME_BITS != own_times >> _TIME_BITS) | (
                same_warp & (times != own_times)
            )
        ordered_here |= self._has_fence[access.numbers]
        seen = self._fences[mine // self._per_block] > 0
        seen &= self._fences[thread // self._per_block] > fences
        spread = (record & _MANY_BLOCKS) != 0
        inside: Mask = same_block & ~ordered_here
        between: Mask = (~same_block | spread) & ~seen
        wrong: Mask = inside if access.space == "shared" else inside | between
        return wrong & others

    def _report(
        self,
        threads: ObservedThreads,
        access: SpaceAccess,
        wrong: Mask,
        earlier: Array,
    ) -> None:
        before = threads.at, threads.lanes
        threads.at = threads.lanes = access.numbers
        first = int(np.flatnonzero(wrong)[0])
        deed = "writes" if access.is_store else "reads"
        record = int(earlier[first])
        if record:
            thread = (record >> _THREAD_SHIFT) - 1
            block, item = divmod(thread, self._per_block)
            mine = (self._first + int(access.numbers[first])) // self._per_block
            where = "of its block" if block == mine else f"of block number {block}"
            other = f"thread number {item} {where}"
        else:
            other = "another thread, by the same instruction,"
        what = f"{deed} {access.space} memory that {other} accesses, with no barrier between them"
        threads.report(RACE, access.instruction, what, wrong)
        threads.at, threads.lanes = before


class _History:
    """The latest accesses to each cell of a memory, as records; 0: none."""

    def __init__(self, cells: int) -> None:
        self._writes = np.zeros(cells, np.int64)
        self._reads = np.zeros(cells, np.int64)
        # The number of fences that the block of the latest writer had made before.
        self._fences = np.zeros(cells, np.int32)
        # The latest reader that is a different thread from the one in `_reads`.
        self._other_reads = np.zeros(cells, np.int64)

    def grow(self, cells: int) -> None:
        """Extend the history to `cells` cells."""
        more = cells - len(self._writes)
        if more > 0:
            self._writes = np.pad(self._writes, (0, more))
            self._reads = np.pad(self._reads, (0, more))
            self._fences = np.pad(self._fences, (0, more))
            self._other_reads = np.pad(self._other_reads, (0, more))

    def conflicting(
        self, cells: Array, is_store: bool
    ) -> Iterator[tuple[Array, Array]]:
        """Yield the records that may conflict with an access to cells: writes, then reads.

        Each record comes with the number of fences of its block before it. For reads, the number
        is -1: a read needs no fence after it, so any fence of its block is enough.
        """
        yield self._writes[cells], self._fences[cells]
        if is_store:
            yield self._reads[cells], _NO_FENCES
            yield self._other_reads[cells], _NO_FENCES

    def write(self, cells: Array, records: Array, fences: Array) -> None:
        """Record writes; earlier reads are forgotten."""
        self._writes[cells] = records
        self._fences[cells] = fences
        self._reads[cells] = 0
        self._other_reads[cells] = 0

    def read(self, cells: Array, records: Array, per_block: int) -> None:
        """Record reads. After a write, the latest reader is kept, with a flag if it has others."""
        old = self._reads[cells]
        thread = (old >> _THREAD_SHIFT) - 1
        mine = (records >> _THREAD_SHIFT) - 1
        time = old >> (_FLAG_BITS + _TIME_BITS) & _TIMES
        own_time = records >> (_FLAG_BITS + _TIME_BITS) & _TIMES
        same_block = thread // per_block == mine // per_block
        is_other = (old != 0) & (thread != mine)
        marks = np.where(is_other & same_block & (time == own_time), _MANY, 0)
        marks |= np.where(is_other & ~same_block, _MANY_BLOCKS | _MANY, 0)
        marks |= np.where(
            same_block & (time == own_time), old & (_MANY | _MANY_BLOCKS), 0
        )
        marks |= old & _MANY_BLOCKS
        self._other_reads[cells] = np.where(is_other, old, self._other_reads[cells])
        self._reads[cells] = records | marks
        # Several threads read a cell at once: the last one is kept, and marked.
        kept = self._reads[cells]
        twins = (kept >> _THREAD_SHIFT) != (records >> _THREAD_SHIFT)
        if twins.any():
            self._other_reads[cells[twins]] = records[twins]
            other = ((kept >> _THREAD_SHIFT) - 1) // per_block != mine // per_block
            self._reads[cells[twins]] |= _MANY
            self._reads[cells[twins & other]] |= _MANY_BLOCKS


def _by_warp(numbers: Array) -> Iterator[Array]:
    warps = numbers // 32
    for warp in np.unique(warps):
        yield numbers[warps == warp]


def _differing_twins(access: SpaceAccess, cell: int) -> Mask:
    """Return True for threads whose store overwrites a different value of another thread's store.

    Both are stores of the same instruction at the same time.
    """
    order = np.argsort(access.offsets, kind="stable")
    offsets = access.offsets[order]
    twin = offsets[1:] == offsets[:-1]
    found = np.zeros(len(order), np.bool_)
    if not twin.any():
        return found
    differs = np.zeros(len(twin), np.bool_)
    for value in access.values:
        if value.ndim:
            ordered = value[order]
            differs |= ordered[1:] != ordered[:-1]
    found[order[1:]] = twin & differs
    return found


def _smallest_access(module: PtxModule) -> int:
    """Return the bytes of the smallest element that a module loads or stores, at most 4."""
    smallest = 4
    for function in module.functions.values():
        for instruction in function.instructions:
            if (
                instruction.opcode in _TYPED_ACCESSES
                and "param" not in instruction.modifiers
            ):
                smallest = min(
                    smallest, max(1, bits_of(instruction.modifiers[-1]) // 8)
                )
    return smallest
