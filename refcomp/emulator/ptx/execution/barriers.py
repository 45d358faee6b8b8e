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
        # Of threads that wait: the number of the barrier, and how many threads it waits for, where
        # 0 stands for all of the block.
        self._number = np.zeros(threads.count, np.int64)
        self._expected = np.zeros(threads.count, np.int64)
        # [block, barrier]: threads that arrived there without waiting.
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
        """Yield the numbers of threads that go on together; each barrier is then as before.

        Args:
            waits: bool [thread], those that wait at a barrier.
            has_ended: likewise, those that have ended, or do not exist.
        """
        whole = self._of_whole_blocks(waits, has_ended)
        if len(whole):
            yield whole
            waits = waits.copy()
            waits[whole] = False
        for block in np.unique(self._threads.block_of[waits]):
            yield from self._of_block(int(block), waits, has_ended)

    def _of_whole_blocks(self, waits: Mask, has_ended: Mask) -> Array:
        """Return the threads of blocks that wait as a whole, at a barrier for all of the block."""
        shape = len(self._threads.blocks), self._threads.per_block
        waits = waits.reshape(shape)
        is_whole = waits.any(axis=1) & (waits | has_ended.reshape(shape)).all(axis=1)
        is_whole &= ~self._arrived.any(axis=1)
        number = self._number.reshape(shape)
        first = number[np.arange(len(number)), waits.argmax(axis=1)]
        is_whole &= ((number == first[:, None]) | ~waits).all(axis=1)
        is_whole &= ~(waits & (self._expected.reshape(shape) != 0)).any(axis=1)
        found: Array = np.flatnonzero((waits & is_whole[:, None]).reshape(-1))
        return found

    def _of_block(self, block: int, waits: Mask, has_ended: Mask) -> Iterator[Array]:
        """Yield the threads of a block that wait at a barrier at which enough have arrived."""
        first = block * self._threads.per_block
        mine = slice(first, first + self._threads.per_block)
        alive = int((~has_ended[mine]).sum())
        for barrier in np.unique(self._number[mine][waits[mine]]):
            here = waits[mine] & (self._number[mine] == barrier)
            expected = int(self._expected[mine][here].max()) or alive
            if int(here.sum()) + int(self._arrived[block, barrier]) >= expected:
                self._arrived[block, barrier] = 0
                yield first + np.flatnonzero(here)

    def describe(self, numbers: Array) -> str:
        """Describe where threads wait: how many of them at which barrier."""
        barriers, counts = np.unique(self._number[numbers], return_counts=True)
        return ", ".join(
            f"{count} threads at barrier {barrier}"
            for barrier, count in zip(barriers, counts, strict=True)
        )
