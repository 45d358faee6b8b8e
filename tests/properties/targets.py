"""The targets that random schedules run on: what is drawn for each, and how it is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from refcomp.foundation.errors import Unsupported
from refcomp.schedule.schedule import Schedule
from tests.properties.device_differential import (
    check_cuda,
    check_emulated,
    check_every_pass,
    check_nvidia,
    check_opencl,
    check_ptx,
    check_rocm,
)
from tests.properties.differential import check_compiled, check_interpreted
from tests.properties.test_schedules import cases
from tests.strategies.computation import DTYPES, Computation
from tests.strategies.computes import (
    COMPUTES,
    DEPENDENT_REDUCTIONS,
    MORE,
    MORE_SCANS,
    MORE_SIZES,
    SCANS,
    VECTOR_EXTERNS,
    VECTORS,
)
from tests.strategies.gpu_attempts import attempted_cases
from tests.strategies.gpu_schedules import gpu_cases

# Kinds of computations that are drawn where they are named, by the name of their group.
GROUPS: dict[str, tuple[str, ...]] = {
    "more": MORE,
    "sizes": MORE_SIZES,
    "scans": MORE_SCANS,
    "dependent": DEPENDENT_REDUCTIONS,
    "vectors": (*VECTORS, *VECTOR_EXTERNS),
}
NAMED = tuple(kind for kinds in GROUPS.values() for kind in kinds)
# The rows of a scan are kernels that the host launches; an extern has no loops to bind.
_SCANS = {*SCANS, *MORE_SCANS, *(kind for kind in VECTORS if "scan" in kind)}
_NO_LOOPS = {*VECTOR_EXTERNS}
# What passes for kernels refuse: loops that would need a barrier, though threads run them
# differently often. Ranges of reductions that depend on threads lead to such loops.
_UNEVEN = "threads run it a different number of times"


def device_cases(kinds: Sequence[str] = (), dtypes: Sequence[str] = DTYPES) -> SearchStrategy[Any]:
    """Computations with schedules for GPUs. Scans have schedules of their own, too."""
    scans = [kind for kind in kinds if kind in _SCANS]
    others = [kind for kind in kinds if kind not in _SCANS and kind not in _NO_LOOPS]
    drawn = []
    if others or not kinds:
        drawn.append(gpu_cases(others, dtypes))
    if scans:
        drawn.append(attempted_cases(dtypes, scans))
    return st.one_of(drawn).map(lambda case: (case.computation, case.schedule))


def _all_device_cases() -> SearchStrategy[Any]:
    """Scans and blocks among them."""
    attempted = attempted_cases().map(lambda case: (case.computation, case.schedule))
    named = [device_cases(kinds) for kinds in GROUPS.values()]
    return st.one_of(*[device_cases(COMPUTES)] * 6, *[attempted] * 2, *named)


def _all_host_cases(kinds: Sequence[str] = ()) -> SearchStrategy[Any]:
    """Computations of `kinds`; by default of all, also those that others draw by name only."""
    if kinds:
        return cases(kinds)
    return st.one_of(*[cases()] * 3, *map(cases, GROUPS.values()))


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
    "emulated-gfx1100": (device_cases, partial(check_emulated, gpu="gfx1100")),
    "nvptx-emulated": (device_cases, partial(check_ptx, target="nvptx")),
    "cuda-emulated": (device_cases, partial(check_ptx, target="cuda")),
}
NAMES = tuple(_TARGETS)


def cases_for(target: str, kinds: Sequence[str] = ()) -> SearchStrategy[Any]:
    """Computations, of `kinds` or of all that the target runs, with schedules for it."""
    strategy = _TARGETS[target][0]
    if strategy is device_cases and not kinds:
        return _all_device_cases()
    return strategy(kinds)


def check_on(target: str, computation: Computation, schedule: Schedule) -> None:
    """AssertionError or a RefcompError when the result is not numpy's."""
    _TARGETS[target][1](computation, schedule)


def is_refused(computation: Computation, error: Exception) -> bool:
    """Whether `error` tells that a pass refuses the schedule, as it may for this computation."""
    is_uneven = isinstance(error, Unsupported) and _UNEVEN in str(error)
    return is_uneven and computation.kind in DEPENDENT_REDUCTIONS
