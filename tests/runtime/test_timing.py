"""Timing: how often a function is called, and what is told; never how long anything takes."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from refcomp.foundation.artifacts import Signature, TensorParam
from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.runtime import timing
from refcomp.runtime.device import Device, HostDriver, cpu
from refcomp.runtime.function import PythonFunction
from refcomp.runtime.timing import ClockDriver, TimeResult, WorkResult, time_evaluator


class Clock:
    """A function whose calls take a known time, and the clock that says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, per_call_ns: int) -> None:
        self.now, self.calls, self.per_call_ns = 0, 0, per_call_ns
        self.collected: set[bool] = set()
        monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: self.now)
        signature = Signature("f", (TensorParam("A", F32, (2,)),))
        self.function = PythonFunction(signature, self.run)

    def run(self, args: list[Any]) -> None:
        self.calls += 1
        self.now += self.per_call_ns
        self.collected.add(gc.isenabled())

    def evaluate(self, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0) -> TimeResult:
        evaluator = time_evaluator(self.function, cpu(), number, repeat, min_repeat_ms)
        return evaluator(np.zeros(2, np.float32))


def test_seconds_per_call(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, per_call_ns=2_000_000)
    result = clock.evaluate(number=5, repeat=4)
    assert result.results == (0.002,) * 4
    assert clock.calls == 1 + 5 * 4
    assert clock.collected == {False}
    assert gc.isenabled()


def test_number_grows_until_a_repetition_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, per_call_ns=1_000)
    result = clock.evaluate(number=1, repeat=2, min_repeat_ms=5)
    assert result.results == (1e-6, 1e-6)
    # The warming call, then 1 and 100 calls that were too short, then twice 5000.
    assert clock.calls == 1 + 1 + 100 + 2 * 5000


def test_a_function_that_takes_no_time_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, per_call_ns=0)
    steps = iter(range(0, 10**9, 300_000))
    monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: next(steps))
    result = clock.evaluate(number=3, repeat=1, min_repeat_ms=0.3)
    assert result.results == (0.0003 / 3,)


class DeviceClock(HostDriver):
    """A device that takes 3 s for each call, whatever this machine's clock says."""

    def __init__(self) -> None:
        self.works = 0

    def seconds(self, index: int, work: Callable[[], None]) -> float:
        before = self.works
        work()
        return 3.0 * (self.works - before)


def test_a_device_that_has_a_clock_tells_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, driver = Clock(monkeypatch, per_call_ns=1), DeviceClock()
    assert isinstance(driver, ClockDriver) and not isinstance(HostDriver(), ClockDriver)
    signature = clock.function.signature

    def run(args: list[Any]) -> None:
        driver.works += 1

    function = PythonFunction(signature, run)
    function.device = Device("cpu", 0, driver)
    evaluate = time_evaluator(function, function.device, number=4, repeat=2, min_repeat_ms=0)
    assert evaluate(np.zeros(2, np.float32)).results == (3.0, 3.0)
    assert driver.works == 1 + 2 * 4


def test_statistics() -> None:
    result = TimeResult((0.001, 0.002, 0.006))
    assert result.mean == pytest.approx(0.003)
    assert (result.median, result.min, result.max) == (0.002, 0.001, 0.006)
    assert result.std == pytest.approx(np.std([0.001, 0.002, 0.006]))
    assert str(result) == "3.0000 ms per call (std 2.1602, 3)"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"number": 0}, r"number is 0\n.*at least 1"),
        ({"number": 1.5}, r"number is 1.5\n.*at least 1"),
        ({"repeat": -1}, r"repeat is -1\n.*at least 1"),
        ({"min_repeat_ms": -1}, r"min_repeat_ms is -1\n.*>= 0"),
        ({"min_repeat_ms": float("inf")}, r"min_repeat_ms is inf\n"),
    ],
)
def test_settings_are_checked(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], message: str
) -> None:
    clock = Clock(monkeypatch, 1)
    with pytest.raises(UserError, match=message):
        clock.evaluate(**settings)
    assert clock.calls == 0


def test_the_device_must_be_the_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    function = Clock(monkeypatch, 1).function
    with pytest.raises(UserError, match=r"f runs on cpu:0, not on cpu:1\n.*cpu:0"):
        time_evaluator(function, cpu(1), 1, 1, 0)


def test_collection_is_switched_on_again_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 1)
    evaluator = time_evaluator(clock.function, cpu(), 1, 1, 0)
    monkeypatch.setattr(timing, "_measure", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        evaluator(np.zeros(2, np.float32))
    assert gc.isenabled()
    with pytest.raises(UserError, match="f takes 1 arguments, not 0"):
        evaluator()


class _Counting(HostDriver):
    """Counts calls, where it is emulated."""

    def __init__(self, *, is_emulated: bool) -> None:
        self.is_emulated = is_emulated

    def counted(self, index: int, work: Callable[[], None]) -> object | None:
        if not self.is_emulated:
            return None
        work()
        return "one call"


def _on(driver: HostDriver, monkeypatch: pytest.MonkeyPatch) -> tuple[Clock, Any]:
    clock, there = Clock(monkeypatch, per_call_ns=1_000), Device("cpu", 0, driver)
    evaluator = time_evaluator(clock.function, there, number=3, repeat=2, min_repeat_ms=0)
    return clock, evaluator(np.zeros(2, np.float32))


def test_an_emulated_device_counts_one_call_and_tells_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, result = _on(_Counting(is_emulated=True), monkeypatch)
    assert isinstance(result, WorkResult) and result.counts == "one call"
    assert clock.calls == 1 and str(result) == "counted, not timed: one call"


@pytest.mark.parametrize("name", ["results", "mean", "median", "min", "max", "std"])
def test_what_was_counted_cannot_be_read_as_time(name: str) -> None:
    with pytest.raises(
        UserError, match="the time of an emulated device cannot be measured"
    ) as error:
        getattr(WorkResult("counts"), name)
    assert "read `.counts`" in str(error.value)


def test_a_real_device_of_such_a_driver_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, result = _on(_Counting(is_emulated=False), monkeypatch)
    assert result.results == (1e-6, 1e-6) and clock.calls == 1 + 3 * 2
