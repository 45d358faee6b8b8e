"""The threads of a batch by number: their groups, and the barriers that they passed."""

from __future__ import annotations

import numpy as np

from refcomp.oracle.tensors.arrays import Array


class BailOut(Exception):
    """A rule may be broken, or the order of threads may show: the plain interpreter decides."""


class Groups:
    """All threads of some groups of a kernel. Iterations of loops are groups of one thread."""

    def __init__(self, group: Array, group_size: int) -> None:
        self.group = group  # i64 [count]: the number of each thread's group
        self.group_size = group_size  # threads
        self.count = len(group)  # threads of all groups
        # i64 [count]: the barrier interval of each thread. It is 1 before the first barrier.
        self.interval = np.ones(self.count, np.int64)

    def pass_barrier(self, ids: Array) -> None:
        """Let the threads `ids` pass a barrier. Raises BailOut unless they are whole groups."""
        if len(ids) < self.count:
            arrived = np.bincount(self.group[ids] - self.group[0])
            if not np.isin(arrived, (0, self.group_size)).all():
                raise BailOut
        self.interval[ids] += 1
