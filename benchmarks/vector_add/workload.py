"""The smallest useful build, C[i] = A[i] + B[i] of symbolic length: cold, cached, and one call.

Cold means an empty compile cache: in a fresh process, which also seeks the tools and asks for their
versions, and in one that has compiled before. Beside the latter stand the same tools, run alone on
the same text. Imports of public names count only in the row of a whole process, which stands beside
one that imports numpy.
"""

from __future__ import annotations

import gc
import shlex
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import refcomp
from benchmarks.fresh import call_fresh, run_python
from benchmarks.measure import figure_of, interleave, seconds_per_call
from benchmarks.report import Bar, Row, row_beside
from benchmarks.vector_add.program import build_add

_COLD, _BESIDE_TOOLS = Bar(0.2), Bar(2.5, "ratio")
_CACHED, _BEYOND_NUMPY = Bar(0.004), Bar(0.025)
NAMES = ("add", "plus", "sum", "total")  # of functions: each is a build of its own
_PROCESS = "from benchmarks.vector_add.program import build_add; build_add('add')"
_FEW = 16  # elements, so few that the overhead of a call dominates


def measure(is_quick: bool) -> list[Row]:
    """Measure builds by state of cache and process, then the cost of a call beside numpy's."""
    return [*_build_rows(is_quick), *_process_rows(is_quick), *_call_rows(is_quick)]


def _build_rows(is_quick: bool) -> list[Row]:
    """Measure builds within fresh processes. Only the first build of a process is a round alone."""
    first, cold, tools, cached = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as kept:
        call_fresh(build_once, environment={"REFCOMP_KEEP": kept})
        commands = commands_of(Path(kept))
        for _ in range(3 if is_quick else 15):
            with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as cache:
                again = partial(call_fresh, environment={"REFCOMP_CACHE_DIR": cache})
                empty = again(build_seconds, **commands)
                filled = again(build_seconds)
            first.append(empty["builds"][0])
            cold += empty["builds"][1:]
            tools += empty["tools"][1:]
            cached += filled["builds"][1:]
    title, case = "vector_add", "cold build, same process"
    return [
        Row(title, "cold build, fresh process", figure_of(first), bar=_COLD),
        row_beside(title, case, cold, "the tools alone", tools, bar=_BESIDE_TOOLS),
        Row(title, "cached build, same process", figure_of(cached), bar=_CACHED),
    ]


def build_once() -> None:
    """Build the program, for what the build leaves behind."""
    build_add("add")


def commands_of(kept: Path) -> dict[str, Any]:
    """Return the commands of the one run in a folder of $REFCOMP_KEEP, and where they run."""
    (script,) = kept.glob("*/commands.sh")
    lines = map(shlex.split, script.read_text(encoding="utf-8").splitlines())
    # What is no tool: #!, set -e, cd, export.
    commands = [words for words in lines if words and words[0].startswith("/")]
    return {"commands": commands, "folder": str(script.parent)}


def build_seconds(
    commands: list[list[str]] | None = None, folder: str = ""
) -> dict[str, list[float]]:
    """Return the seconds of a build for each of NAMES, each followed by the commands alone.

    The first build also prepares what all builds of a process share.
    """
    for name in refcomp.__all__:
        getattr(refcomp, name)  # imports what is behind it, which shall not count
    seconds: dict[str, list[float]] = {"builds": [], "tools": []}
    for name in NAMES:
        gc.collect()  # otherwise one build would pay for the garbage of all before it
        seconds["builds"].append(seconds_per_call(partial(build_add, name)))
        seconds["tools"].append(seconds_per_call(partial(_run_tools, commands or [], folder)))
    return seconds


def _run_tools(commands: list[list[str]], folder: str) -> None:
    for command in commands:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def _process_rows(is_quick: bool) -> list[Row]:
    """Measure a whole process with a filled cache, beyond one that imports numpy and no more."""
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as cache:
        environment = {"REFCOMP_CACHE_DIR": cache}
        times = interleave(
            {
                "build": lambda: run_python(["-c", _PROCESS], environment),
                "numpy": lambda: run_python(["-c", "import numpy"]),
            },
            rounds=5 if is_quick else 31,
        )
    beyond = [ours - theirs for ours, theirs in zip(times["build"], times["numpy"], strict=True)]
    return [
        Row(
            "vector_add",
            "cached build, whole process, beyond import numpy",
            figure_of(beyond),
            "import numpy",
            figure_of(times["numpy"]),
            bar=_BEYOND_NUMPY,
        )
    ]


def _call_rows(is_quick: bool) -> list[Row]:
    function = build_add("add").entry
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
