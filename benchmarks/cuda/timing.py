"""Times of contenders on a GPU, by its events, in turns, over buffers that no cache holds.

Each contender is a list of calls that queue the same work on different buffers. They are queued one
after the other, so that the data of a call left the caches before its buffers come again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

Call = Callable[[], object]
COLD_BYTES = 256 << 20  # of all buffers that a contender takes in turn: several times any L2
MAX_SETS = 64
_WARM_S = 0.1  # of work before the first round, in which the card raises its clock
_MAX_CALLS = 1000


class EventClock(Protocol):
    """A driver that measures by events, such as `refcomp.runtime.CudaDriver`."""

    def seconds(self, index: int, work: Callable[[], None]) -> float:
        """Return the device's seconds for what `work` queues."""


def buffer_sets(set_bytes: int, free_bytes: int) -> int:
    """Return how many sets of buffers to take in turn: enough for COLD_BYTES, at least two.

    One, if a quarter of the free memory has no place for two; at most MAX_SETS.
    """
    wanted = max(2, math.ceil(COLD_BYTES / max(1, set_bytes)))
    return max(1, min(wanted, MAX_SETS, free_bytes // 4 // max(1, set_bytes)))


def interleave_events(
    clock: EventClock, contenders: Mapping[str, Sequence[Call]], rounds: int, least_s: float
) -> dict[str, list[float]]:
    """Return the seconds per call of each contender, one value a round.

    Each measurement takes about `least_s` seconds. Each round begins with another contender.
    """
    turns = {name: itertools.cycle(calls) for name, calls in contenders.items()}
    counts = {
        name: _calls_lasting(clock, turns[name], len(calls), least_s)
        for name, calls in contenders.items()
    }
    for name in contenders:
        _seconds(clock, turns[name], _calls_lasting(clock, turns[name], 1, _WARM_S))
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            count = counts[name]
            samples[name].append(_seconds(clock, turns[name], count) / count)
    return samples


def _seconds(clock: EventClock, calls: itertools.cycle[Call], count: int) -> float:
    def work() -> None:
        for _ in range(count):
            next(calls)()

    return clock.seconds(0, work)


def _calls_lasting(
    clock: EventClock, calls: itertools.cycle[Call], sets: int, least_s: float
) -> int:
    """Return how many calls take `least_s` seconds, after one call for each set of buffers."""
    count = sets
    _seconds(clock, calls, count)
    while (took := _seconds(clock, calls, count)) < least_s and count < _MAX_CALLS:
        count = min(_MAX_CALLS, math.ceil(count * min(10.0, 1.2 * least_s / max(took, 1e-9))))
    return count
