"""Three tiers of tests, by mark: assign each test one of them, and hold the quick ones to it.

- `quick`: no compiler, no OpenCL and no browser, and little time. All of them together take
  a minute or two on two cores, so that a contributor runs them while working.
- `tools`: compilers, OpenCL, browsers, whole set-ups, and kernels on an emulated GPU.
- `search`: properties that draw many examples, damaged input, mutants, long proofs.

A test's tier is the one that it, its class or its module is marked with. Without such a mark it is
`search` in the folders that search, `tools` where it is marked with a tool, and else `quick`.
A quick test that starts a tool, or that uses an OpenCL device, fails.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TIERS = ("quick", "tools", "search")
# Tests that search, whatever tools they need.
_SEARCH = ("tests/properties/", "tests/mutate/")
# What a quick test may start, besides programs that it or this checkout has written. With an empty
# cache, matplotlib asks fc-list for the fonts.
_ALLOWED = re.compile(r"python[0-9.]*|bash|sh|uname|fc-list")
_WRITTEN = (tempfile.gettempdir(), *(ROOT / name for name in ("scripts", "benchmarks", ".ci")))
# A use of a device calls one of these, though another test has found and opened the device before.
# To ask which devices there are is no use of one.
_OPENCL = ("enqueue_copy", "enqueue_nd_range_kernel")

_running: list[pytest.Item] = []  # the quick test that runs now, if any


def assign_tier(item: pytest.Item, tools: Collection[str]) -> None:
    """Mark a test with its tier; `tools` are the marks that name a tool.

    Raises pytest.UsageError for a test that is marked with two tiers.
    """
    names = {mark.name for mark in item.iter_markers()}
    marked = names & {*TIERS}
    if len(marked) > 1:
        raise pytest.UsageError(f"{item.nodeid} has two tiers: {', '.join(sorted(marked))}")
    if not marked:
        item.add_marker(_usual_tier(item, names & {*tools}))


def tier_of(item: pytest.Item) -> str:
    return next(tier for tier in TIERS if item.get_closest_marker(tier))


def _usual_tier(item: pytest.Item, needed: Collection[str]) -> str:
    if item.nodeid.startswith(_SEARCH):
        return "search"
    return "tools" if needed else "quick"


@contextmanager
def held_to_its_tier(item: pytest.Item) -> Generator[None, None, None]:
    """Fail the test if it is quick and starts a tool inside."""
    _running[:] = [item] if tier_of(item) == "quick" else []
    try:
        yield
    finally:
        _running.clear()


def watch_tools() -> None:
    """From now on, see what this process starts and what it does with OpenCL."""
    start = subprocess.Popen.__init__

    def guarded(self: Any, args: Any, *more: Any, **options: Any) -> None:
        if _running and not _may_start(args):
            _refuse(f"starts {_program_of(args)}")
        start(self, args, *more, **options)

    subprocess.Popen.__init__ = guarded  # type: ignore[method-assign]


def watch_opencl() -> None:
    """See what is done with OpenCL from now on, also by tests that import pyopencl themselves."""
    try:
        opencl = import_module("pyopencl")
    except ImportError:
        return
    for name in _OPENCL:
        setattr(opencl, name, _guarded(name, getattr(opencl, name)))


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        if _running:
            _refuse(f"calls {name} of OpenCL")
        return function(*args, **options)

    return call


def _refuse(what: str) -> None:
    pytest.fail(
        f"a quick test {what}: mark the test with the tool that it needs, or with its tier "
        f"({', '.join(TIERS[1:])}; see tests/tiers.py)"
    )


def _program_of(args: str | os.PathLike[str] | Sequence[Any]) -> str:
    return os.fspath(args if isinstance(args, str | os.PathLike) else args[0])


def _may_start(args: Any) -> bool:
    program = Path(_program_of(args))
    if _ALLOWED.fullmatch(program.name):
        return True
    return any(program.is_relative_to(folder) for folder in _WRITTEN)
