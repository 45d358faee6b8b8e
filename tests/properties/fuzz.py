"""Looks for schedules whose result is not numpy's, for as long as one likes; see `main`.

Each round draws new schedules by the strategies of the property tests. What fails is shrunk and
written as a program: the schedule's steps and the loop IR as a comment, and the drawn example in
hypothesis' own code, so that running the file meets the same failure until it is mended.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.internal.conjecture import engine

from refcomp.ir.printer import print_func
from refcomp.schedule.schedule import Schedule
from tests.properties import targets
from tests.properties.differential import lowered
from tests.strategies.computation import Computation

_ROUND = 100  # schedules between two looks at the clock
_BLOB = re.compile(r"@reproduce_failure\((?P<blob>.*)\) as a decorator")
_FILE = '''#!/usr/bin/env python3
"""A schedule that fails on target {target}: run with PYTHONPATH naming the checkout.

{told}
"""

from hypothesis import given, reproduce_failure, settings

from tests.properties import targets


@reproduce_failure({blob})
@settings(deadline=None)
@given(targets.cases_for("{target}"))
def fails(case):
    targets.check_on("{target}", *case)


if __name__ == "__main__":
    fails()
'''


def fuzz_round(
    target: str,
    number: int,
    examples: int = _ROUND,
    phases: Sequence[Phase] = tuple(Phase),
    until: float = math.inf,
) -> tuple[int, str]:
    """Draws schedules: how many ran, and the text of a program for a failure ('' for none).

    Without `Phase.shrink` the failure is the first that was met, and not made smaller; with it,
    it is made smaller until the monotonic clock shows `until`.
    """
    ran = 0
    failed: list[tuple[Computation, Schedule]] = []

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=True,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    @given(targets.cases_for(target))
    def run(case: Any) -> None:
        nonlocal ran
        ran += 1
        failed[:] = [case]
        with _shrinking_ends(until):
            targets.check_on(target, *case)

    try:
        with _limits_kept():
            run()
    except Exception as error:  # whatever a schedule can raise is a finding
        return ran, _program(target, error, *failed[0])
    return ran, ""


# Hypothesis shrinks for five minutes, and has no setting for that.


@contextmanager
def _limits_kept() -> Iterator[None]:
    seconds = engine.MAX_SHRINKING_SECONDS
    try:
        yield
    finally:
        engine.MAX_SHRINKING_SECONDS = seconds


@contextmanager
def _shrinking_ends(until: float) -> Iterator[None]:
    """When what runs fails, the time for shrinking it is what is left."""
    try:
        yield
    except Exception:
        left = max(0.0, until - time.monotonic())
        engine.MAX_SHRINKING_SECONDS = min(engine.MAX_SHRINKING_SECONDS, left)
        raise


def _program(target: str, error: Exception, computation: Computation, schedule: Schedule) -> str:
    notes = "\n".join(getattr(error, "__notes__", ()))
    found = _BLOB.search(notes)
    told = [
        f"{type(error).__name__}: {error}",
        *map(str, schedule.steps),
        _text_of(lambda: print_func(lowered(computation, schedule))),
        "".join(traceback.format_exception(error)[-4:]),
    ]
    shown = "\n\n".join(told).replace("\\", "/").replace('"""', "'''")
    return _FILE.format(target=target, told=shown, blob=found["blob"] if found else "'', b''")


def _text_of(make: Callable[[], str]) -> str:
    try:
        return make()
    except Exception as error:  # lowering may be what fails
        return f"(no loop IR: {error})"


def main(arguments: list[str] | None = None) -> int:
    """Fuzzes until the time is up; the exit code is 1 when something failed."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz_schedules", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default: 1)")
    parser.add_argument("--target", choices=targets.NAMES, default="llvm")
    parser.add_argument("--seed", type=int, default=None, help="the first round's (default: time)")
    parser.add_argument("--folder", type=Path, default=Path(), help="where failures are written")
    given_ = parser.parse_args(arguments)
    number = int(time.time()) if given_.seed is None else given_.seed
    end = time.monotonic() + given_.minutes * 60
    total, found = 0, set[str]()
    while time.monotonic() < end:
        ran, program = fuzz_round(given_.target, number, until=end)
        total, number = total + ran, number + 1
        if program:
            name = f"failure_{hashlib.sha256(program.encode()).hexdigest()[:12]}.py"
            given_.folder.mkdir(parents=True, exist_ok=True)
            (given_.folder / name).write_text(program, encoding="utf-8")
            found.add(name)
            print(f"round {number - 1}: {given_.folder / name}", flush=True)
    print(f"{total} schedules on {given_.target}, {len(found)} failures, last seed {number - 1}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
