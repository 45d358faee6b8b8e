"""Times of several contenders, measured in turns, with medians, spreads and ratios.

Requires calls that run to their end. In each round, all contenders run one after the other, and
each round begins with another contender. So a machine that becomes slower or faster in between
changes both sides of a ratio.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

Call = Callable[[], object]
Clock = Callable[[], float]
_MOST_CALLS = 1_000_000


@dataclass(frozen=True, slots=True)
class Figure:
    """The median of several rounds, and between which values the middle half of them lies."""

    median: float
    low: float
    high: float
    rounds: int


def figure_of(samples: Sequence[float]) -> Figure:
    """Return the Figure of at least one sample."""
    low, median, high = np.quantile(np.asarray(samples, np.float64), (0.25, 0.5, 0.75))
    return Figure(float(median), float(low), float(high), len(samples))


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """Return the Figure of ours / theirs, formed within each round."""
    return figure_of([a / b for a, b in zip(ours, theirs, strict=True)])


def interleave(
    contenders: Mapping[str, Call],
    *,
    rounds: int,
    least_s: float = 0.0,
    rest_s: float = 0.0,
    clock: Clock = time.perf_counter,
) -> dict[str, list[float]]:
    """Return the seconds per call of each contender, one value a round.

    Each contender is called once before, which does not count. In each round, it is called for
    about `least_s` seconds. With `rest_s`, a turn begins with so many seconds of rest, and a call
    that does not count: threads of the contender before may still wait actively. For code of one
    thread that never waits, `clock` may be `time.process_time`: then time that other processes take
    does not count.
    """
    numbers = {name: _calls_lasting(call, least_s) for name, call in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    with _without_collection():
        for turn in range(rounds):
            for name in rotated(list(contenders), turn):
                if rest_s:
                    time.sleep(rest_s)
                    contenders[name]()
                taken = seconds_per_call(contenders[name], numbers[name], clock)
                seconds[name].append(taken)
    return seconds


def rotated(names: list[str], turn: int) -> list[str]:
    """Return the names in the order of round `turn`: each round begins with another one."""
    first = turn % len(names)
    return names[first:] + names[:first]


def seconds_per_call(call: Call, number: int = 1, clock: Clock = time.perf_counter) -> float:
    """Return the mean time of `number` calls."""
    start = clock()
    for _ in range(number):
        call()
    return (clock() - start) / number


def _calls_lasting(call: Call, least_s: float) -> int:
    call()
    number = 1
    while (took := number * seconds_per_call(call, number)) < least_s and number < _MOST_CALLS:
        number = min(_MOST_CALLS, math.ceil(number * min(10.0, 1.2 * least_s / max(took, 1e-9))))
    return number


@contextmanager
def _without_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
