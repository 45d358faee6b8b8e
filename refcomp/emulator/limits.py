"""Limits of a launch: it is given up if no wave ends for too many instructions, or for too long.

Both limits count from the launch, or from when a wave last ended. On NVIDIA GPUs, the end of any
thread of a warp counts. So a long kernel may run on as long as its waves end one after the other. A
wave that waits or loops forever is stopped. Refuses limits that are not positive numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from refcomp.foundation.counted import counted
from refcomp.foundation.errors import UserError

USUAL_STEPS = 2_000_000_000
USUAL_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of what may pass without a wave that ends.

    Attributes:
        steps: Instructions, counted once for each wave or warp that runs them.
        seconds: Time, by `clock`.
        clock: Returns seconds. Tests pass their own.
    """

    steps: int = USUAL_STEPS
    seconds: float = USUAL_SECONDS
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        for name, value, kinds in (
            ("steps", self.steps, int),
            ("seconds", self.seconds, int | float),
        ):
            if isinstance(value, bool) or not isinstance(value, kinds) or not value > 0:
                what = (
                    "a whole number from 1 on" if kinds is int else "a number above 0"
                )
                raise UserError(
                    f"a launch cannot be given up after {value!r} {name}",
                    remedy=f"give {what}, or leave the limit out",
                )


USUAL_LIMITS = Limits()


class Watchdog:
    """Counts what has passed since a wave ended, during one launch.

    Args:
        limits: when it gives up.
        who: what should have ended: a wave, or on NVIDIA GPUs a thread.
    """

    def __init__(self, limits: Limits, who: str = "wave") -> None:
        self._limits = limits
        self._who = who
        self._steps = 0
        self._start = limits.clock()

    def count(self, steps: int) -> bool:
        """Count instructions that ran. Return True if there were too many."""
        self._steps += steps
        return self._steps > self._limits.steps

    def is_late(self) -> bool:
        """Return True if too much time has passed."""
        return self._limits.clock() - self._start > self._limits.seconds

    def restart(self) -> None:
        """Start counting anew, because a wave has ended."""
        self._steps = 0
        self._start = self._limits.clock()

    def overrun(self) -> str:
        """Describe the limit that was exceeded."""
        if self._steps > self._limits.steps:
            steps = counted(self._limits.steps, "instruction")
            return f"no {self._who} has ended for {steps}"
        return f"no {self._who} has ended for {self._limits.seconds:g} seconds"
