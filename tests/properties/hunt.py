"""Hunts one seeded bug with random schedules; as a program, with those that may crash.

`python -m tests.properties.hunt NAME` ends with 0 when machine code betrays the bug, 1 when not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from refcomp.foundation.errors import RefcompError
from tests.properties.differential import check_compiled
from tests.properties.seeded_bugs import COMPILED, switched_on
from tests.properties.test_schedules import cases
from tests.strategies.computes import FEW_STAGES

# Examples of the first round; each later one has twice as many. Hypothesis draws many examples that
# resemble earlier ones: bugs that took 150 examples of one seed show in the first ten of another.
# Some bugs show only in later, larger examples of a seed.
_FIRST_ROUND = 25


def is_found(check: Callable[[Any, Any], None], examples: int, strategy: Any = None) -> bool:
    """Return True if `check` fails on one of `examples` random schedules."""
    drawn = cases(FEW_STAGES) if strategy is None else strategy
    left, number = examples, 0
    while left > 0:
        size = min(left, _FIRST_ROUND << number)
        if _is_found_in_round(check, drawn, number, size):
            return True
        left -= size
        number += 1
    return False


def _is_found_in_round(
    check: Callable[[Any, Any], None], drawn: Any, number: int, examples: int
) -> bool:
    @seed(7 + number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    @given(drawn)
    def hunt(case: Any) -> None:
        check(*case)

    try:
        hunt()
    except (AssertionError, RefcompError):
        return True
    return False


if __name__ == "__main__":
    (wanted,) = [bug for bug in COMPILED if bug.name == sys.argv[1]]
    with switched_on(wanted):
        sys.exit(
            0
            if is_found(check_compiled, 500, cases(wanted.kinds or FEW_STAGES, wanted.dtypes))
            else 1
        )
