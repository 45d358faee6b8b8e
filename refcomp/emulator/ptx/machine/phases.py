"""A barrier in shared memory (mbarrier): the arrivals and bytes that complete its phases."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from refcomp.emulator.machine.arrays import Array, Mask

_PHASE_SHIFT = 32


@dataclass(slots=True)
class PhaseBarrier:
    """A barrier whose phases end one after the other.

    Attributes:
        expected: the number of arrivals that end a phase.
        pending: the number of arrivals for which the current phase still waits.
        missing_bytes: bytes that were announced and have not arrived. It is negative if more bytes
            arrived than were announced so far.
        phase: the number of the current phase.
        acquired: thread -> the phase whose predecessors the thread has all acquired.
        tried: thread -> the phase at the thread's latest try that found its own phase ended.
    """

    expected: int
    pending: int = -1
    missing_bytes: int = 0
    phase: int = 0
    acquired: dict[int, int] = field(default_factory=dict)
    tried: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pending = self.expected

    def arrive(self, count: int, *, drops: bool = False) -> int:
        """Arrive `count` times. Return the state before: the phase and its pending arrivals.

        A thread that drops out is not expected in later phases.
        """
        state = self.phase << _PHASE_SHIFT | self.pending
        if drops:
            self.expected -= 1
        self.pending = max(self.pending - count, 0)
        self._end_phase()
        return state

    def expect(self, size: int) -> None:
        """Announce `size` bytes. With a negative size, record that bytes have arrived."""
        self.missing_bytes += size
        self._end_phase()

    def _end_phase(self) -> None:
        if self.pending == 0 and self.missing_bytes == 0:
            self.phase += 1
            self.pending = self.expected

    def was_tried(self, numbers: Array, over: Mask) -> Mask:
        """Return True for the threads that tried before in this phase.

        Record a try of the threads for which `over` is True.
        """
        found = [self.tried.get(one) == self.phase for one in numbers.tolist()]
        tries = dict.fromkeys(numbers[over].tolist(), self.phase)
        self.tried.update(tries)
        return np.array(found, np.bool_)

    def unseen_phases(self, numbers: Array) -> range:
        """Return the ended phases that some of these threads have not acquired, or the last one.

        Record that the threads acquire them.
        """
        threads = numbers.tolist()
        first = min(self.acquired.get(one, 0) for one in threads)
        last = self.phase - 1
        self.acquired.update(dict.fromkeys(threads, self.phase))
        return range(min(first, last), self.phase)

    def has_ended(self, states: Array, *, by_parity: bool) -> Mask:
        """Return True for states whose phase has ended.

        Args:
            states: results of `arrive`, or the parities of phases.
            by_parity: True if `states` are parities.
        """
        if by_parity:
            parity = self.phase & 1
            return np.asarray(states & 1 != parity)
        phases = states >> _PHASE_SHIFT
        return np.asarray(phases < self.phase)
