"""Measuring the time of a function: `time_evaluator` and its TimeResult.

The arguments are checked once, before the measurement. The first call warms the caches, and is not
measured. The garbage collector is off.

A device runs the calls of a repetition one after the other. If the device has a clock (`seconds` of
its driver, such as events of a GPU), this clock measures. Otherwise this machine's clock measures
from before the first call until the device has done the last call of the repetition.

The time of an emulated device says nothing about a real one. So an emulated device counts the work
of one call, and the result raises an error if it is read as seconds.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat as repeated
from typing import Protocol, runtime_checkable

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.runtime.device import Device
from refcomp.runtime.function import Function

# The least factor by which the number of calls grows after a repetition that was too short.
_GROWTH = 1.618


@runtime_checkable
class ClockDriver(Protocol):
    """A Driver whose devices have a clock."""

    def seconds(self, index: int, work: Callable[[], None]) -> float:
        """Return the seconds that device `index` needs for what `work` queues."""


@runtime_checkable
class CountingDriver(Protocol):
    """A Driver of devices that may be emulated. An emulated device counts its work."""

    def counted(self, index: int, work: Callable[[], None]) -> object | None:
        """Run `work` on an emulated device, and return the counts.

        For a real device, return None without running anything.
        """


@dataclass(frozen=True, slots=True)
class WorkResult:
    """The work of one call on an emulated device. It has no times.

    The properties of a TimeResult raise UserError.
    """

    counts: object  # such as refcomp.emulator's counts of instructions

    @property
    def results(self) -> tuple[float, ...]:
        """Not available: raises UserError."""
        raise _no_time()

    @property
    def mean(self) -> float:
        """Not available: raises UserError."""
        raise _no_time()

    median = min = max = std = mean

    def __str__(self) -> str:
        return f"counted, not timed: {self.counts}"


def _no_time() -> UserError:
    return UserError(
        "the time of an emulated device cannot be measured",
        why="this machine interprets each instruction, so its time says nothing about a GPU",
        remedy="read `.counts`, or an estimate by refcomp.profile.report_of(...).bound",
    )


@dataclass(frozen=True, slots=True)
class TimeResult:
    """The measured time of a function, which a `time_evaluator` returns.

    Attributes:
        results: seconds per call, one value for each repetition.

    Source: TVM, BenchmarkResult.

    Example::

        >>> times = rc.runtime.TimeResult((0.25, 0.5, 1.5))
        >>> times.mean, times.median, times.min, times.max
        (0.75, 0.5, 0.25, 1.5)
        >>> print(f"{times.std:.4f}")
        0.5401
        >>> print(times)
        750.0000 ms per call (std 540.0617, 3)
    """

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of `results`, in seconds."""
        return float(np.mean(self.results))

    @property
    def median(self) -> float:
        """The median of `results`, in seconds."""
        return float(np.median(self.results))

    @property
    def min(self) -> float:
        """The minimum of `results`, in seconds."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The maximum of `results`, in seconds."""
        return max(self.results)

    @property
    def std(self) -> float:
        """The standard deviation of `results` as a whole population, in seconds."""
        return float(np.std(self.results))

    def __str__(self) -> str:
        return f"{self.mean * 1e3:.4f} ms per call (std {self.std * 1e3:.4f}, {len(self.results)})"


def time_evaluator(
    function: Function, device: Device, number: int, repeat: int, min_repeat_ms: float
) -> Callable[..., TimeResult | WorkResult]:
    """Return a callable that measures `function`; see `Module.time_evaluator`.

    Raises UserError if the function does not run on `device`, and for numbers below 1.
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

    def evaluate(*args: object) -> TimeResult | WorkResult:
        call = timed.bind(*args)
        driver = device.driver
        if isinstance(driver, CountingDriver):
            counts = driver.counted(device.index, call)
            if counts is not None:
                return WorkResult(counts)
        with without_collection():
            call()
            results = _measure(call, device, number, repeat, min_repeat_ms / 1e3)
            return TimeResult(tuple(results))

    return evaluate


def _measure(
    call: Callable[[], None], device: Device, number: int, repeat: int, minimum: float
) -> Iterator[float]:
    """Yield the seconds per call of `repeat` repetitions.

    Repetitions shorter than `minimum` seconds do not count, and make `number` grow.
    """
    done = 0
    while done < repeat:
        elapsed = seconds_of(call, device, number)
        if elapsed < minimum:
            needed = number * minimum / elapsed if elapsed > 0 else math.inf
            # A repetition that is far too short is a bad estimate: grow at most hundredfold.
            number = math.ceil(min(max(needed, number * _GROWTH), number * 100))
            continue
        yield elapsed / number
        done += 1


def seconds_of(call: Callable[[], None], device: Device, number: int) -> float:
    """Return the seconds that a device needs for `number` calls one after the other.

    The device must not be an emulated one (`is_emulated`).
    """

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


def is_emulated(device: Device) -> bool:
    """Return True if a device counts its work, so that its times say nothing."""
    driver = device.driver
    if not isinstance(driver, CountingDriver):
        return False
    return driver.counted(device.index, lambda: None) is not None


@contextmanager
def without_collection() -> Iterator[None]:
    """Keep the garbage collector from running inside of the block."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
