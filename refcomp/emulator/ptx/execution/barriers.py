"""The barriers of blocks: which threads have arrived, and which may go on.

Source: NVIDIA, "Parallel Thread Execution ISA", section "bar, barrier".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.ptx.machine.threads import BlockThreads
from refcomp.foundation.counted import counted

CLUSTER = 16  # the number of the barrier of a cluster, which has one block
_COUNT = 17  # barriers of a block


class BlockBarriers:
    """The barriers of the blocks of a batch."""

    def __init__(self, threads: BlockThreads) -> None:
        self._threads = threads
        # int64 [thread]: the number of the barrier at which the thread waits
        self._number = np.zeros(threads.count, np.int64)
        # int64 [thread]: the number of threads for which this barrier waits; 0: the whole block
        self._expected = np.zeros(threads.count, np.int64)
        # bool [thread]: the predicate that this barrier reduces
        self._predicate = np.zeros(threads.count, np.bool_)
        # int64 [block, barrier]: the number of threads that arrived without waiting
        self._arrived = np.zeros((len(threads.blocks), _COUNT), np.int64)
        # int64 [block, barrier]: the count that threads named; 0: no thread named one
        self._counts = np.zeros((len(threads.blocks), _COUNT), np.int64)

    def other_count(self, numbers: Array, barrier: Array, count: Array) -> int:
        """Record the counts that threads name at barriers, where 0 stands for the whole block.

        Return a count that others named there before, if one differs; else 0.
        """
        named = count > 0
        places = self._threads.block_of[numbers[named]] * _COUNT + barrier[named]
        counts = self._counts.reshape(-1)
        before = counts[places]
        counts[places] = count[named]
        # Of threads that name different counts at once, one is kept.
        before = np.where(before == 0, counts[places], before)
        differs = before != count[named]
        return int(before[differs][0]) if differs.any() else 0

    def wait(
        self,
        numbers: Array,
        barrier: Array,
        expected: Array,
        predicate: Array | bool = False,
    ) -> None:
        """Record threads that wait at barriers, with predicates that a barrier may reduce."""
        self._number[numbers] = barrier
        self._expected[numbers] = expected
        self._predicate[numbers] = predicate

    def arrive(self, numbers: Array, barrier: Array) -> None:
        """Record threads that arrive at barriers and do not wait."""
        blocks = self._threads.block_of[numbers]
        np.add.at(self._arrived, (blocks, barrier), 1)
        for place in np.unique(blocks * _COUNT + barrier):
            some = numbers[blocks * _COUNT + barrier == place]
            for observer in self._threads.around.observers:
                observer.released(self._threads, some, ("bar", int(place)))

    def complete(self, waits: Mask, has_ended: Mask) -> Iterator[Array]:
        """Yield, for each barrier that is complete, the numbers of the threads that waited there.

        The barrier can then be used again. Observers see that these threads are synchronized.

        Args:
            waits: bool [thread], those that wait at a barrier.
            has_ended: bool [thread], those that have ended or do not exist.
        """
        observers = self._threads.around.observers
        whole = self._of_whole_blocks(waits, has_ended)
        if len(whole):
            yield whole
            for observer in observers:
                observer.synchronized(self._threads, whole, is_warp=False)
            waits = waits.copy()
            waits[whole] = False
        for block in np.unique(self._threads.block_of[waits]):
            for barrier, some in self._of_block(int(block), waits, has_ended):
                yield some
                place = "bar", int(block) * _COUNT + barrier
                for observer in observers:
                    observer.released(self._threads, some, place)
                    observer.acquired(self._threads, some, place)

    def reduced(self, numbers: Array, some: Array, operation: str) -> Array:
        """Return the reductions of the predicates of a complete barrier, by block.

        Args:
            numbers: the numbers of all threads that waited there.
            some: the numbers of the threads that get the result.
            operation: "popc", "and" or "or".
        """
        blocks = self._threads.block_of[numbers]
        count = np.bincount(
            blocks, self._predicate[numbers], len(self._threads.blocks)
        ).astype(np.uint32)
        if operation == "and":
            found = count == np.bincount(blocks, minlength=len(count))
        else:
            found = count if operation == "popc" else count > 0
        chosen: Array = found[self._threads.block_of[some]]
        return chosen

    def _of_whole_blocks(self, waits: Mask, has_ended: Mask) -> Array:
        """Return the threads of blocks that wait as a whole, at a barrier for all of the block.

        This is the common case, in which all blocks of the batch are handled at once.
        """
        blocks = len(self._threads.blocks)
        shape = (blocks, self._threads.per_block)
        waits = waits.reshape(shape)
        has_ended = has_ended.reshape(shape)
        number = self._number.reshape(shape)
        expected = self._expected.reshape(shape)
        first = waits.argmax(axis=1)
        barrier = number[np.arange(blocks), first]
        # bool [block, thread]: threads because of which the block is not handled here
        at_another = waits & (number != barrier[:, None])
        with_count = waits & (expected != 0)
        still_runs = ~(waits | has_ended)
        excludes = at_another | with_count | still_runs
        # bool [block]
        is_whole = waits.any(axis=1) & ~excludes.any(axis=1)
        is_whole &= ~self._arrived.any(axis=1)
        threads = waits & is_whole[:, None]
        return np.asarray(np.flatnonzero(threads))

    def _of_block(
        self, block: int, waits: Mask, has_ended: Mask
    ) -> Iterator[tuple[int, Array]]:
        """Yield each complete barrier of a block, and the numbers of the threads waiting there."""
        first = block * self._threads.per_block
        mine = slice(first, first + self._threads.per_block)
        waits = waits[mine]
        number = self._number[mine]
        alive = np.count_nonzero(~has_ended[mine])
        for barrier in np.unique(number[waits]):
            here = waits & (number == barrier)
            arrived = np.count_nonzero(here) + self._arrived[block, barrier]
            expected = self._expected[mine][here].max() or alive
            if arrived >= expected:
                self._arrived[block, barrier] = 0
                self._counts[block, barrier] = 0
                yield int(barrier), first + np.flatnonzero(here)

    def describe(self, numbers: Array) -> str:
        """Describe where threads wait: how many of them at which barrier."""
        barriers, counts = np.unique(self._number[numbers], return_counts=True)
        return ", ".join(
            f"{counted(count, 'thread')} at barrier {barrier}"
            for barrier, count in zip(barriers, counts, strict=True)
        )
