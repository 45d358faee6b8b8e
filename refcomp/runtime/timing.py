"""Measures how long a function takes: `time_evaluator` and its TimeResult.

Garbage collection is off meanwhile, arguments are checked once before, and one call that is not
counted warms the caches. A device works through the calls of a repetition one after the other. One
that has a clock (`seconds` of its driver: events of a GPU) tells by that; else this machine's clock
stops when the device is done with the last call: `sync` is called before and after a repetition,
not around each call.
An emulated device takes no time that would mean anything: it is asked what one call did instead,
and the result refuses to be read as seconds.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat as repeated
from typing import Any, Protocol, runtime_checkable

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.runtime.device import Device
from refcomp.runtime.function import Function

# How much more at least is tried when a measurement was too short.
_GROWTH = 1.618


@runtime_checkable
class ClockDriver(Protocol):
    """A Driver whose devices tell the time themselves."""

    def seconds(self, index: int, work: Callable[[], None]) -> float:
        """How long device `index` takes for what `work` gives it."""


@runtime_checkable
class CountingDriver(Protocol):
    """A Driver some of whose devices are emulated, and count what they do."""

    def counted(self, index: int, work: Callable[[], None]) -> object | None:
        """What `work` has device `index` do, counted; None, and nothing is run, of a real one."""


@dataclass(frozen=True, slots=True)
class WorkResult:
    """What one call had an emulated device do; whatever asks for seconds is refused, UserError."""

    counts: Any

    @property
    def results(self) -> tuple[float, ...]:
        """Refused."""
        raise _no_time()

    @property
    def mean(self) -> float:
        """Refused."""
        raise _no_time()

    median = min = max = std = mean

    def __str__(self) -> str:
        return f"counted, not timed: {self.counts}"


def _no_time() -> UserError:
    return UserError(
        "an emulated device takes no time that could be told",
        why="this machine interprets each instruction, which says nothing of a GPU",
        remedy="read `.counts`, or an estimate by refcomp.profile.report_of(...).bound",
    )


@dataclass(frozen=True, slots=True)
class TimeResult:
    """Seconds per call, one number for each repetition."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The average of `results`."""
        return float(np.mean(self.results))

    @property
    def median(self) -> float:
        """The middle of `results`."""
        return float(np.median(self.results))

    @property
    def min(self) -> float:
        """The least of `results`."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The greatest of `results`."""
        return max(self.results)

    @property
    def std(self) -> float:
        """The standard deviation of `results`, as of the whole population."""
        return float(np.std(self.results))

    def __str__(self) -> str:
        return f"{self.mean * 1e3:.4f} ms per call (std {self.std * 1e3:.4f}, {len(self.results)})"


def time_evaluator(
    function: Function, device: Device, number: int, repeat: int, min_repeat_ms: float
) -> Callable[..., TimeResult | WorkResult]:
    """What takes the function's arguments, calls it `repeat` times `number` times, and tells.

    `number` grows until one repetition lasts `min_repeat_ms`. An emulated device is given one call,
    and its work is told instead. UserError for another device than the function's or numbers
    below 1.
    """
    timed = function.on(device)
    for name, value in (("number", number), ("repeat", repeat)):
        if not isinstance(value, int) or value < 1:
            raise UserError(
                f"{name} is {value!r}", remedy="use an integer of at least 1"
            )
    if not (math.isfinite(min_repeat_ms) and min_repeat_ms >= 0):
        raise UserError(
            f"min_repeat_ms is {min_repeat_ms!r}", remedy="use milliseconds >= 0"
        )

    def evaluate(*args: Any) -> TimeResult | WorkResult:
        call = timed.bind(*args)
        if (counts := _counted(call, device)) is not None:
            return WorkResult(counts)
        with _without_collection():
            call()
            return TimeResult(
                tuple(_measure(call, device, number, repeat, min_repeat_ms / 1e3))
            )

    return evaluate


def _counted(call: Callable[[], None], device: Device) -> object | None:
    driver = device.driver
    return (
        driver.counted(device.index, call)
        if isinstance(driver, CountingDriver)
        else None
    )


def _measure(
    call: Callable[[], None], device: Device, number: int, repeat: int, least: float
) -> Iterator[float]:
    """Seconds per call, `repeat` times; repetitions that were too short are not counted."""
    done = 0
    while done < repeat:
        elapsed = _seconds(call, device, number)
        if elapsed < least:
            number = _larger_number(number, elapsed, least)
            continue
        yield elapsed / number
        done += 1


def _larger_number(number: int, elapsed: float, least: float) -> int:
    wanted = number * least / elapsed if elapsed > 0 else math.inf
    # A first measurement far too short says little of the rate: grow at most hundredfold.
    return math.ceil(min(max(wanted, number * _GROWTH), number * 100))


def _seconds(call: Callable[[], None], device: Device, number: int) -> float:
    def work() -> None:
        for _ in repeated(None, number):
            call()

    if isinstance(device.driver, ClockDriver):
        return device.driver.seconds(device.index, work)
    device.sync()
    start = time.perf_counter_ns()
    work()
    device.sync()
    return (time.perf_counter_ns() - start) / 1e9


@contextmanager
def _without_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
