"""A barrier in shared memory (mbarrier): how many arrivals and bytes its phase still waits for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from refcomp.emulator.machine.arrays import Array, Mask

_PHASE_SHIFT = 32


@dataclass(slots=True)
class PhaseBarrier:
    """A barrier of phases.

    Attributes:
        expected: arrivals that end a phase.
        pending: those that the current phase still waits for.
        missing_bytes: that were announced and have not come; negative: came before.
        phase: the number of the current phase.
        acquired: thread -> the phase up to which it has seen all earlier ones end.
        tried: thread -> the phase in which its latest try saw an earlier one end.
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
        """Announce bytes; with a negative size, let bytes come."""
        self.missing_bytes += size
        self._end_phase()

    def _end_phase(self) -> None:
        if self.pending == 0 and self.missing_bytes == 0:
            self.phase += 1
            self.pending = self.expected

    def was_tried(self, numbers: Array, over: Mask) -> Mask:
        """Return which threads tried before in this phase; those of `over` have from now on."""
        found = [self.tried.get(one) == self.phase for one in numbers.tolist()]
        self.tried.update(dict.fromkeys(numbers[over].tolist(), self.phase))
        return np.array(found, np.bool_)

    def unseen_phases(self, numbers: Array) -> range:
        """Return the phases whose end some of these threads see first now; always the latest."""
        first = min(self.acquired.get(one, 0) for one in numbers.tolist())
        self.acquired.update(dict.fromkeys(numbers.tolist(), self.phase))
        return range(min(first, self.phase - 1), self.phase)

    def has_ended(self, states: Array, *, by_parity: bool) -> Mask:
        """Return whether the phases have ended that states name, or parities of phases."""
        if by_parity:
            return np.asarray(states & 1 != self.phase & 1)
        return np.asarray(states >> _PHASE_SHIFT < self.phase)
