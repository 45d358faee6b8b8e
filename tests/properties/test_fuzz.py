"""The fuzzer finds a seeded bug and writes a program that meets it again."""

import math
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import engine

from refcomp.foundation.errors import Unsupported
from tests.properties import fuzz
from tests.properties.seeded_bugs import INTERPRETED, switched_on
from tests.strategies.computes import VECTOR_EXTERNS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("target", "examples"),
    [
        ("interp", 20),
        ("kernels", 6),
        pytest.param("opencl", 6, marks=pytest.mark.pocl),
        pytest.param("emulated", 4, marks=pytest.mark.rocm),
        pytest.param("nvptx-emulated", 4, marks=pytest.mark.llvm),
    ],
)
def test_a_round_without_a_bug_finds_nothing(target, examples):
    ran, program = fuzz.fuzz_round(target, number=5, examples=examples)
    assert ran >= examples
    assert program == ""


def test_a_failure_becomes_a_program_that_fails_only_while_the_bug_is_there(tmp_path):
    (bug,) = [b for b in INTERPRETED if b.name == "lost tail guard"]
    with switched_on(bug):
        _, program = fuzz.fuzz_round("interp", number=7, examples=200, until=0)
    assert "split(" in program or "tile(" in program, program
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
        tried[-1] += 1
        assert len(schedule.steps) < 5

    made = st.lists(st.integers()).map(lambda numbers: (None, SimpleNamespace(steps=numbers)))
    monkeypatch.setattr(fuzz.targets, "cases_for", lambda target, kinds: made)
    monkeypatch.setattr(fuzz.targets, "check_on", check)
    limit, tried = engine.MAX_SHRINKING_SECONDS, []
    for end in (0, math.inf):
        tried.append(0)
        fuzz.fuzz_round("interp", 7, until=end)
    assert tried[0] < tried[1], "what is not shrunk any more runs no further"
    assert limit == engine.MAX_SHRINKING_SECONDS


@pytest.mark.parametrize("seconds", [21.0, 60.0])
def test_shrinking_ends_after_so_many_seconds_and_says_so(monkeypatch, capsys, seconds):
    """By a clock that advances only while a schedule is checked."""

    def check(target, computation, schedule):
        clock[0] += 7.0
        assert len(schedule.steps) < 5

    clock, ends = [0.0], []
    made = st.lists(st.integers()).map(lambda numbers: (None, SimpleNamespace(steps=numbers)))
    monkeypatch.setattr(fuzz.targets, "cases_for", lambda target, kinds: made)
    monkeypatch.setattr(fuzz.targets, "check_on", check)
    clocked = SimpleNamespace(**{**vars(time), "perf_counter": lambda: clock[0]})
    monkeypatch.setattr(engine, "time", clocked)
    for limit in (0.0, seconds):
        clock[0] = 0.0
        monkeypatch.setattr(fuzz, "_SHRINKING", limit)
        fuzz.fuzz_round("interp", 7)
        ends.append(clock[0])
    assert seconds - 7.0 <= ends[1] - ends[0] <= seconds + 7.0, "a check is not cut off"
    told = capsys.readouterr().out
    assert f"shrinking ended after {seconds:.0f} seconds" in told
    assert "five minutes" not in told


def test_the_command_tells_how_many_schedules_ran(tmp_path, capsys):
    code = fuzz.main(["--minutes", "0.001", "--target", "interp", "--folder", str(tmp_path)])
    told = capsys.readouterr().out
    assert code == 0
    assert "schedules on interp, 0 failures" in told and "a minute" in told
    assert not told.startswith("0 ")
    assert list(tmp_path.iterdir()) == []


def test_the_command_ends_after_so_many_schedules(tmp_path, capsys, monkeypatch):
    asked = []

    def run(target, number, examples, until, kinds):
        asked.append(examples)
        assert kinds == []
        return (examples - 30, "a program") if number == 8 else (examples, "")

    monkeypatch.setattr(fuzz, "fuzz_round", run)
    code = fuzz.main(["--examples", "250", "--seed", "7", "--folder", str(tmp_path)])
    assert code == 1
    assert asked == [20, 100, 100, 60], "what a failure cut off runs in a later round"
    assert "250 schedules on llvm, 1 failures, last seed 10" in capsys.readouterr().out
    assert [path.read_text() for path in tmp_path.iterdir()] == ["a program"]


def test_schedules_are_counted_until_one_fails(monkeypatch):
    def check(target, computation, schedule):
        assert len(schedule.steps) < 5

    made = st.lists(st.integers()).map(lambda numbers: (None, SimpleNamespace(steps=numbers)))
    monkeypatch.setattr(fuzz.targets, "cases_for", lambda target, kinds: made)
    monkeypatch.setattr(fuzz.targets, "check_on", check)
    plain, _ = fuzz.fuzz_round("interp", 7, until=0)
    shrunk, _ = fuzz.fuzz_round("interp", 7)
    assert plain == shrunk, "what shrinking tries is not counted"


def test_a_round_of_slow_schedules_takes_a_minute():
    assert fuzz._size_of_round(0, 0.0) == 20
    assert fuzz._size_of_round(20, 40.0) == 30
    assert fuzz._size_of_round(20, 400.0) == 20
    assert fuzz._size_of_round(20, 1.0) == 100


def test_the_command_draws_groups_of_computations_that_are_named(tmp_path, monkeypatch):
    def run(target, number, examples, until, kinds):
        asked.extend(kinds)
        return examples, ""

    asked = []
    monkeypatch.setattr(fuzz, "fuzz_round", run)
    fuzz.main(["--examples", "9", "--kinds", "scans", "vectors", "--folder", str(tmp_path)])
    assert asked == [*fuzz.targets.GROUPS["scans"], *fuzz.targets.GROUPS["vectors"]]


def test_every_named_kind_with_loops_to_bind_is_drawn_for_kernels():
    drawn = []

    def draw(case):
        drawn.append(case[0].kind)

    wanted = [kind for kind in fuzz.targets.NAMED if kind not in VECTOR_EXTERNS]
    for kind in wanted:
        once = settings(max_examples=1, database=None, deadline=None, phases=[Phase.generate])
        once(given(fuzz.targets.cases_for("kernels", (kind,)))(draw))()
    assert drawn == wanted


def test_what_a_pass_may_refuse_does_not_count(monkeypatch):
    def check(target, computation, schedule):
        tried.append(computation)
        raise Unsupported("cannot put a barrier", why="threads run it a different number of times")

    tried = []
    monkeypatch.setattr(fuzz.targets, "check_on", check)
    assert fuzz.fuzz_round("interp", 1, 4, kinds=["triangle"]) == (0, "")
    assert len(tried) >= 4
    ran, program = fuzz.fuzz_round("interp", 1, 4, [Phase.generate], kinds=["point"])
    assert ran == 1
    assert "('point',)" in program
