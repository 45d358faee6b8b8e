"""Threads by number: the group of each, the barriers that it has passed, and Doubt."""

from __future__ import annotations

import numpy as np

from refcomp.oracle.tensors.arrays import Array


class Doubt(Exception):
    """A rule may be broken, or the order of threads may show: the plain interpreter decides."""


class Groups:
    """All threads of some groups of a kernel, or, as groups of one, iterations of loops.

    Attributes:
        group: i64[count], the number of each thread's group.
        group_size: the threads of a group.
        count: the threads of all groups.
        turn: i64[count], the barriers that each thread has passed, counted from 1.
    """

    def __init__(self, group: Array, group_size: int) -> None:
        self.group, self.group_size, self.count = group, group_size, len(group)
        self.turn = np.ones(self.count, np.int64)

    def pass_barrier(self, ids: Array) -> None:
        """Let the threads `ids` pass a barrier. Raises Doubt unless whole groups are there."""
        if len(ids) < self.count:
            arrived = np.bincount(self.group[ids] - self.group[0])
            if not np.isin(arrived, (0, self.group_size)).all():
                raise Doubt
        self.turn[ids] += 1
