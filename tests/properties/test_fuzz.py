"""The fuzzer finds a seeded bug and writes a program that meets it again."""

import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import strategies as st
from hypothesis.internal.conjecture import engine

from tests.properties import fuzz
from tests.properties.seeded_bugs import INTERPRETED, switched_on

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("target", "examples"),
    [("interp", 20), ("kernels", 6), pytest.param("opencl", 6, marks=pytest.mark.pocl)],
)
def test_a_round_without_a_bug_finds_nothing(target, examples):
    ran, program = fuzz.fuzz_round(target, number=5, examples=examples)
    assert ran >= examples
    assert program == ""


def test_a_failure_becomes_a_program_that_fails_only_while_the_bug_is_there(tmp_path):
    (bug,) = [b for b in INTERPRETED if b.name == "lost tail guard"]
    with switched_on(bug):
        _, program = fuzz.fuzz_round("interp", number=7, examples=200, until=0)
    assert "split(" in program
    assert "func case(" in program
    path = tmp_path / "failure.py"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(path)], cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "DidNotReproduce" in done.stderr, "the bug is off: its example must pass now"


def test_shrinking_ends_when_the_time_is_up(monkeypatch):
    def check(target, computation, schedule):
        assert len(schedule.steps) < 5

    made = st.lists(st.integers()).map(lambda numbers: (None, SimpleNamespace(steps=numbers)))
    monkeypatch.setattr(fuzz.targets, "cases_for", lambda target: made)
    monkeypatch.setattr(fuzz.targets, "check_on", check)
    limit = engine.MAX_SHRINKING_SECONDS
    ran = [fuzz.fuzz_round("interp", 7, until=end)[0] for end in (0, math.inf)]
    assert ran[0] < ran[1], "what is not shrunk any more runs no further"
    assert limit == engine.MAX_SHRINKING_SECONDS


def test_the_command_tells_how_many_schedules_ran(tmp_path, capsys):
    code = fuzz.main(["--minutes", "0.001", "--target", "interp", "--folder", str(tmp_path)])
    told = capsys.readouterr().out
    assert code == 0
    assert "schedules on interp, 0 failures" in told
    assert not told.startswith("0 schedules")
    assert list(tmp_path.iterdir()) == []
