"""The places and the states of threads while a kernel runs."""

from __future__ import annotations

import numpy as np

from refcomp.emulator.machine.arrays import Array

# States of a thread.
RUNS = 0
WAITS = 1  # at a barrier
GATHERS = 2  # for threads of its warp, at an instruction that they do together
ENDED = 3


class LaunchStopped(Exception):
    """The launch ends before all threads have; a finding says why."""


class ThreadProgress:
    """The progress of each thread of some blocks.

    Attributes:
        pc: the number of the instruction that the thread executes next, int64 [thread].
        state: one of the constants above, int8 [thread].
        depth: the number of calls that the thread is in, int64 [thread].
    """

    def __init__(self, exists: Array, begin: int) -> None:
        count = len(exists)
        self.pc: Array = np.full(count, begin)
        self.state: Array = np.where(exists, RUNS, ENDED).astype(np.int8)
        self.depth: Array = np.zeros(count, np.int64)

    def depth_of(self, numbers: Array) -> int:
        """Return the depth of threads that are equally deep."""
        return int(self.depth[numbers[0]])
