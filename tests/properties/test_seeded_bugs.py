"""The properties find compiler bugs: each bug of a list, switched on alone, is found."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.properties.differential import check_interpreted
from tests.properties.hunt import is_found
from tests.properties.seeded_bugs import COMPILED, INTERPRETED, SeededBug, switched_on
from tests.properties.test_schedules import cases
from tests.strategies.computes import FEW_STAGES

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("bug", INTERPRETED, ids=lambda bug: bug.name)
def test_the_interpreter_finds(bug):
    with switched_on(bug):
        assert is_found(check_interpreted, 1500, cases(bug.kinds or FEW_STAGES, bug.dtypes)), (
            f"{bug.name} goes unseen"
        )


@pytest.mark.llvm
@pytest.mark.parametrize("bug", COMPILED, ids=lambda bug: bug.name)
def test_machine_code_betrays(bug):
    command = [sys.executable, "-m", "tests.properties.hunt", bug.name]
    result = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    # A negative status is a signal: the wrong machine code crashed.
    assert result.returncode <= 0, f"{bug.name} goes unseen\n{result.stderr}"


def test_a_bug_is_gone_when_it_is_switched_off():
    with switched_on(INTERPRETED[0]):
        pass
    assert not is_found(check_interpreted, examples=30)


def test_a_bug_whose_line_is_gone_is_an_error():
    stale = SeededBug("stale", "refcomp.lowering.nest", "_update", "no such line", "")
    expected = pytest.raises(AssertionError, match="stale: its line is not in _update once")
    with expected, switched_on(stale):
        pass
