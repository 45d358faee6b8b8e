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
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.internal.conjecture import engine
from hypothesis.reporting import with_reporter

from refcomp.driver.kernel_resources import SlowKernelWarning
from refcomp.ir.printer import print_func
from refcomp.schedule.schedule import Schedule
from tests.properties import targets
from tests.properties.differential import lowered
from tests.strategies.computation import Computation

_ROUND = 100  # schedules of a round, between two looks at the clock, where they take no minute
_FIRST_ROUND = 20
_SHRINKING = 60.0  # seconds for each failure, at most
_ENDED = "WARNING: Hypothesis has spent more than five minutes"
_ROUND_SECONDS = 60.0
_TOLD = 10  # rounds between two lines that tell how far it is
_BLOB = re.compile(r"@reproduce_failure\((?P<blob>.*)\) as a decorator")
_FILE = '''#!/usr/bin/env python3
"""A schedule that fails on target {target}: run with PYTHONPATH naming the checkout.

{told}
"""

from hypothesis import given, reproduce_failure, settings

from tests.properties import targets


@reproduce_failure({blob})
@settings(deadline=None)
@given(targets.cases_for("{target}", {kinds}))
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
    kinds: Sequence[str] = (),
) -> tuple[int, str]:
    """Draws schedules, of `kinds` if some are named: how many ran until one failed, and the text
    of a program for the failure ('' for none). What a pass may refuse does not count.

    Without `Phase.shrink` the failure is the first that was met, and not made smaller; with it,
    it is made smaller until the monotonic clock shows `until`.
    """
    ran, has_failed = 0, False
    failed: list[tuple[Computation, Schedule]] = []

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=True,
        report_multiple_bugs=False,  # a group of failures would have no single blob
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    @given(targets.cases_for(target, kinds))
    def run(case: Any) -> None:
        nonlocal ran, has_failed
        try:
            with _shrinking_ends(until):
                targets.check_on(target, *case)
        except Exception as error:
            if targets.is_refused(case[0], error):
                return
            ran += not has_failed
            failed[:] = [case]
            has_failed = True
            raise
        ran += not has_failed

    try:
        with _limits_kept():
            run()
    except Exception as error:  # whatever a schedule can raise is a finding
        return ran, _program(target, kinds, error, *failed[0])
    return ran, ""


# Hypothesis shrinks for five minutes, and has no setting for that. Its warning names five minutes
# whatever the limit is.


@contextmanager
def _limits_kept() -> Iterator[None]:
    seconds = engine.MAX_SHRINKING_SECONDS
    try:
        with with_reporter(_report):
            yield
    finally:
        engine.MAX_SHRINKING_SECONDS = seconds


def _report(text: object) -> None:
    """Print what hypothesis reports, but the limit that is in force."""
    if str(text).startswith(_ENDED):
        text = f"shrinking ended after {engine.MAX_SHRINKING_SECONDS:.0f} seconds"
    print(text, flush=True)


@contextmanager
def _shrinking_ends(until: float) -> Iterator[None]:
    """When what runs fails, the time for shrinking it is what is left."""
    try:
        yield
    except Exception:
        left = min(_SHRINKING, max(0.0, until - time.monotonic()))
        engine.MAX_SHRINKING_SECONDS = min(engine.MAX_SHRINKING_SECONDS, left)
        raise


def _program(
    target: str,
    kinds: Sequence[str],
    error: Exception,
    computation: Computation,
    schedule: Schedule,
) -> str:
    notes = "\n".join(getattr(error, "__notes__", ()))
    found = _BLOB.search(notes)
    told = [
        f"{type(error).__name__}: {error}",
        *map(str, schedule.steps),
        _text_of(lambda: print_func(lowered(computation, schedule))),
        "".join(traceback.format_exception(error)[-4:]),
    ]
    shown = "\n\n".join(told).replace("\\", "/").replace('"""', "'''")
    blob = found["blob"] if found else "'', b''"
    return _FILE.format(target=target, kinds=tuple(kinds), told=shown, blob=blob)


def _text_of(make: Callable[[], str]) -> str:
    try:
        return make()
    except Exception as error:  # lowering may be what fails
        return f"(no loop IR: {error})"


def main(arguments: list[str] | None = None) -> int:
    """Fuzzes until the time is up, or so many schedules ran; the exit code is 1 when something
    failed."""
    given_ = _parsed(arguments)
    warnings.simplefilter("ignore", SlowKernelWarning)  # random kernels are not meant to be fast
    number = int(time.time()) if given_.seed is None else given_.seed
    begin, first = time.monotonic(), number
    end, most = begin + given_.minutes * 60, given_.examples
    kinds = [kind for group in given_.kinds for kind in targets.GROUPS[group]]
    total, found = 0, set[str]()
    while total < most and time.monotonic() < end:
        examples = int(min(_size_of_round(total, time.monotonic() - begin), most - total))
        ran, program = fuzz_round(given_.target, number, examples, until=end, kinds=kinds)
        total, number = total + ran, number + 1
        if program:
            path = _written(program, given_.folder)
            found.add(path.name)
            print(f"round {number - 1}: {path}", flush=True)
        if (number - first) % _TOLD == 0:
            print(_told(total, len(found), begin), flush=True)
    print(_told(total, len(found), begin))
    print(f"{total} schedules on {given_.target}, {len(found)} failures, last seed {number - 1}")
    return 1 if found else 0


def _size_of_round(total: int, seconds: float) -> int:
    """Return how many schedules take about a minute, if `total` took `seconds`."""
    if not total:
        return _FIRST_ROUND
    return max(_FIRST_ROUND, min(_ROUND, int(total * _ROUND_SECONDS / max(seconds, 1e-9))))


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz_schedules", description=__doc__)
    parser.add_argument("--minutes", type=float, help="how long (default: 1, or --examples)")
    parser.add_argument("--examples", type=int, help="how many schedules (default: --minutes)")
    parser.add_argument("--target", choices=targets.NAMES, default="llvm")
    parser.add_argument(
        "--kinds", nargs="+", choices=[*targets.GROUPS], default=[],
        help="groups of computations (default: all, and those that need no name)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=None, help="the first round's (default: time)")
    parser.add_argument("--folder", type=Path, default=Path(), help="where failures are written")
    given_ = parser.parse_args(arguments)
    if given_.minutes is None:
        given_.minutes = 1.0 if given_.examples is None else math.inf
    if given_.examples is None:
        given_.examples = math.inf
    return given_


def _written(program: str, folder: Path) -> Path:
    name = f"failure_{hashlib.sha256(program.encode()).hexdigest()[:12]}.py"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(program, encoding="utf-8")
    return folder / name


def _told(total: int, found: int, begin: float) -> str:
    minutes = (time.monotonic() - begin) / 60
    return f"{total} in {minutes:.1f} minutes, {total / minutes:.0f} a minute, {found} failures"


if __name__ == "__main__":
    sys.exit(main())
