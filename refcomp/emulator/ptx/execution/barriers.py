"""The barriers of blocks: which threads have arrived, and which may go on.

Source: NVIDIA, "Parallel Thread Execution ISA", section "bar, barrier".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.ptx.machine.threads import BlockThreads

_COUNT = 16  # barriers of a block


class BlockBarriers:
    """The barriers of the blocks of a batch."""

    def __init__(self, threads: BlockThreads) -> None:
        self._threads = threads
        # int64 [thread], of threads that wait: the number of the barrier
        self._number = np.zeros(threads.count, np.int64)
        # likewise: how many threads the barrier waits for; 0 if for all of the block
        self._expected = np.zeros(threads.count, np.int64)
        # int64 [block, barrier]: how many threads arrived there without waiting
        self._arrived = np.zeros((len(threads.blocks), _COUNT), np.int64)

    def wait(self, numbers: Array, barrier: Array, expected: Array) -> None:
        """Record threads that wait at barriers."""
        self._number[numbers] = barrier
        self._expected[numbers] = expected

    def arrive(self, numbers: Array, barrier: Array) -> None:
        """Record threads that arrive at barriers and do not wait."""
        blocks = self._threads.block_of[numbers]
        np.add.at(self._arrived, (blocks, barrier), 1)

    def complete(self, waits: Mask, has_ended: Mask) -> Iterator[Array]:
        """Yield, for each barrier that is complete, the numbers of the threads that waited there.

        The barrier can then be used again.

        Args:
            waits: bool [thread], those that wait at a barrier.
            has_ended: bool [thread], those that have ended or do not exist.
        """
        whole = self._of_whole_blocks(waits, has_ended)
        if len(whole):
            yield whole
            waits = waits.copy()
            waits[whole] = False
        for block in np.unique(self._threads.block_of[waits]):
            yield from self._of_block(int(block), waits, has_ended)

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
        # bool [block, thread]: threads for whose sake the block is not handled here
        at_another = waits & (number != barrier[:, None])
        with_count = waits & (expected != 0)
        still_runs = ~(waits | has_ended)
        hinders = at_another | with_count | still_runs
        # bool [block]
        is_whole = waits.any(axis=1) & ~hinders.any(axis=1)
        is_whole &= ~self._arrived.any(axis=1)
        threads = waits & is_whole[:, None]
        return np.asarray(np.flatnonzero(threads))

    def _of_block(self, block: int, waits: Mask, has_ended: Mask) -> Iterator[Array]:
        """Yield the threads of a block that wait at a barrier at which enough have arrived."""
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
                yield first + np.flatnonzero(here)

    def describe(self, numbers: Array) -> str:
        """Describe where threads wait: how many of them at which barrier."""
        barriers, counts = np.unique(self._number[numbers], return_counts=True)
        return ", ".join(
            f"{count} threads at barrier {barrier}"
            for barrier, count in zip(barriers, counts, strict=True)
        )
