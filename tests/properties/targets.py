"""The targets that random schedules run on: what is drawn for each, and how it is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from refcomp.schedule.schedule import Schedule
from tests.properties.device_differential import (
    check_cuda,
    check_emulated,
    check_every_pass,
    check_nvidia,
    check_opencl,
    check_rocm,
)
from tests.properties.differential import check_compiled, check_interpreted
from tests.properties.test_schedules import cases
from tests.strategies.computation import DTYPES, Computation
from tests.strategies.computes import COMPUTES, MORE, MORE_SCANS, MORE_SIZES
from tests.strategies.gpu_attempts import attempted_cases
from tests.strategies.gpu_schedules import gpu_cases


def device_cases(kinds: Sequence[str] = (), dtypes: Sequence[str] = DTYPES) -> SearchStrategy[Any]:
    """Computations with schedules for GPUs."""
    return gpu_cases(kinds, dtypes).map(lambda case: (case.computation, case.schedule))


def _all_device_cases() -> SearchStrategy[Any]:
    """Scans and blocks among them."""
    attempted = attempted_cases().map(lambda case: (case.computation, case.schedule))
    shifted = attempted_cases(kinds=MORE_SCANS).map(lambda case: (case.computation, case.schedule))
    return st.one_of(
        *[device_cases(COMPUTES)] * 3, device_cases((*MORE, *MORE_SIZES)), attempted, shifted
    )


def _all_host_cases(kinds: Sequence[str] = ()) -> SearchStrategy[Any]:
    """Computations of `kinds`; by default of all, also those that others draw by name only."""
    if kinds:
        return cases(kinds)
    return st.one_of(*[cases()] * 3, cases((*MORE, *MORE_SIZES, *MORE_SCANS)))


_Check = Callable[[Computation, Schedule], None]
_TARGETS: dict[str, tuple[Callable[[Sequence[str]], SearchStrategy[Any]], _Check]] = {
    "interp": (_all_host_cases, check_interpreted),
    "llvm": (_all_host_cases, check_compiled),
    "kernels": (device_cases, check_every_pass),  # interpreted, so that races show
    "opencl": (device_cases, check_opencl),
    "rocm": (device_cases, check_rocm),
    "cuda": (device_cases, check_cuda),  # by g++ on this machine
    "nvidia": (device_cases, check_nvidia),
    "emulated": (device_cases, check_emulated),
}
NAMES = tuple(_TARGETS)


def cases_for(target: str, kinds: Sequence[str] = ()) -> SearchStrategy[Any]:
    """Computations, of `kinds` or of all that the target runs, with schedules for it."""
    strategy = _TARGETS[target][0]
    if strategy is device_cases and not kinds:
        return _all_device_cases()
    if strategy is device_cases and set(kinds) <= {*MORE_SCANS}:
        drawn = attempted_cases(kinds=kinds)
        return drawn.map(lambda case: (case.computation, case.schedule))
    return strategy(kinds)


def check_on(target: str, computation: Computation, schedule: Schedule) -> None:
    """AssertionError or a RefcompError when the result is not numpy's."""
    _TARGETS[target][1](computation, schedule)
