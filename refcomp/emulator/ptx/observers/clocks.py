"""Vector clocks of threads, for kernels in which a part of a block waits for another part.

Each thread counts its own events. For every thread of its block, it holds the latest event known to
have happened before (Lamport 1978; Mattern, "Virtual Time and Global States", 1989).

- Threads that a barrier of the block or warp synchronizes *join* their clocks.
- A thread that arrives at a place *releases* its clock there.
- A thread that goes on behind the place *acquires* the clocks that were released there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.ptx.text.module import PtxInstruction, PtxModule
from refcomp.emulator.ptx.text.reach import reached_functions


class ThreadClocks:
    """The clocks of the threads of some blocks.

    Args:
        blocks: the number of blocks.
        per_block: the number of threads of a block.
    """

    def __init__(self, blocks: int, per_block: int) -> None:
        self._per_block = per_block
        # int32 [block, thread, other]: the latest event of `other` that happened before.
        self._known = np.zeros((blocks, per_block, per_block), np.int32)
        each = np.arange(per_block)
        self._known[:, each, each] = 1
        self._places: dict[Hashable, Array] = {}

    def own(self, numbers: Array) -> Array:
        """Return the number of the next event of each thread."""
        block, item = divmod(numbers, self._per_block)
        found: Array = self._known[block, item, item].astype(np.int64)
        return found

    def join(self, numbers: Array) -> None:
        """Join the clocks of the threads of each block."""
        for block, items in self._by_block(numbers):
            self._known[block, items] = self._known[block, items].max(axis=0)
            self._known[block, items, items] += 1

    def release(self, numbers: Array, place: Hashable) -> None:
        """Release the clocks of threads at a place."""
        for block, items in self._by_block(numbers):
            joined = self._known[block, items].max(axis=0)
            before = self._places.get(place)
            self._places[place] = (
                joined if before is None else np.maximum(joined, before)
            )
            self._known[block, items, items] += 1

    def acquire(self, numbers: Array, place: Hashable) -> None:
        """Let threads acquire the clocks that were released at a place."""
        found = self._places.get(place)
        if found is None:
            return
        for block, items in self._by_block(numbers):
            self._known[block, items] = np.maximum(self._known[block, items], found)

    def _by_block(self, numbers: Array) -> Iterator[tuple[int, Array]]:
        blocks = numbers // self._per_block
        for block in np.unique(blocks):
            yield int(block), numbers[blocks == block] % self._per_block

    def happened_before(self, times: Array, others: Array, numbers: Array) -> Mask:
        """Return True where an event happened before the next event of a thread.

        Args:
            times: the number of each event.
            others: the thread of each event, in the same block.
            numbers: the thread whose next event is compared.
        """
        block, item = divmod(numbers, self._per_block)
        other = others % self._per_block
        latest = self._known[block, item, other]
        return np.asarray(latest >= times)


def has_partial_barriers(module: PtxModule, kernel: str) -> bool:
    """Return True if a kernel has barriers at which only a part of a block need arrive."""
    return any(
        _is_partial(instruction)
        for function in reached_functions(module, kernel)
        for instruction in function.instructions
    )


def _is_partial(instruction: PtxInstruction) -> bool:
    if instruction.opcode == "mbarrier":
        return True
    if instruction.opcode not in ("bar", "barrier") or "warp" in instruction.modifiers:
        return False
    # A reduction has a result and a predicate besides the barrier and the count.
    whole = 3 if "red" in instruction.modifiers else 1
    return len(instruction.operands) > whole
