"""The smallest useful build, C[i] = A[i] + B[i] of symbolic length: cold, cached, and one call.

Cold means an empty compile cache: in a fresh process (tools are sought and asked for their version
too) and in one that has compiled before. Imports are not counted; import_time has them.
"""

from __future__ import annotations

import gc
import tempfile
from functools import partial

import numpy as np

import refcomp
from benchmarks.fresh import call_fresh
from benchmarks.measure import figure_of, interleave, seconds_per_call
from benchmarks.report import Bar, Row, row_beside
from refcomp.compiler import build
from refcomp.schedule.schedule import create_schedule

_COLD, _CACHED = Bar(0.2), Bar(0.010)
_BUILDS = {
    "cold build, fresh process": _COLD,
    "cold build, same process": _COLD,
    "cached build, fresh process": _CACHED,
    "cached build, same process": _CACHED,
}
_LANES = 16
_FEW = 16  # elements, so few that the overhead of a call dominates


def measure(is_quick: bool) -> list[Row]:
    """Measure builds by state of cache and process, then the cost of a call beside numpy's."""
    rounds = [_build_round() for _ in range(3 if is_quick else 15)]
    rows = [
        Row("vector_add", case, figure_of(times), bar=bar)
        for (case, bar), times in zip(_BUILDS.items(), zip(*rounds, strict=True), strict=True)
    ]
    return [*rows, *_call_rows(is_quick)]


def _build_round() -> list[float]:
    """Return the seconds of each case of _BUILDS."""
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
        environment = {"REFCOMP_CACHE_DIR": folder}
        return [t for _ in range(2) for t in call_fresh(build_times, environment=environment)]


def build_times() -> list[float]:
    """Return the seconds of two builds in one process.

    The first build also prepares what all builds of a process share.
    """
    times = []
    for name in ("add", "plus"):
        gc.collect()  # otherwise one build would pay for the garbage of all before it
        times.append(seconds_per_call(partial(_build, name)))
    return times


def _build(name: str) -> refcomp.runtime.Module:
    n = refcomp.var("n")
    a, b = (refcomp.placeholder((n,), name=letter) for letter in "AB")
    c = refcomp.compute((n,), lambda i: a[i] + b[i], name="C")
    schedule = create_schedule(c)
    _, inner = schedule[c].split(c.op.axis[0], factor=_LANES)
    schedule[c].vectorize(inner)
    return build(schedule, [a, b, c], "llvm", name=name)


def _call_rows(is_quick: bool) -> list[Row]:
    function = _build("add").entry
    x, y, z = (np.ones(_FEW, np.float32) for _ in range(3))
    arrays = [refcomp.from_numpy(array) for array in (x, y, z)]
    bound = function.bind(*arrays)
    times = interleave(
        {
            "ndarray": lambda: function(*arrays),
            "numpy arrays": lambda: function(x, y, z),
            "bound": bound,
            "numpy": lambda: np.add(x, y, out=z),
        },
        rounds=3 if is_quick else 31,
        least_s=0.005 if is_quick else 0.02,
    )
    cases = {
        "one call, checked, on NDArrays": "ndarray",
        "one call, checked, on numpy arrays": "numpy arrays",
        "one call, arguments bound before": "bound",
    }
    return [
        row_beside("vector_add", case, times[name], "np.add", times["numpy"])
        for case, name in cases.items()
    ]
