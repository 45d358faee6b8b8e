"""`refcomp certify` says whether a program's schedules are right."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.properties.seeded_bugs import INTERPRETED, switched_on

Cli = Callable[..., Result]


@pytest.mark.search
def test_right_schedules_are_certified(cli: Cli, script: Path) -> None:
    result = cli("certify", script)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("add: certified, ")
    both = cli("certify", f"{script}:both").stdout.splitlines()
    assert [line.split(":")[0] for line in both if not line.startswith(" ")] == ["first", "both_1"]


def test_the_report_names_sizes_data_algebras_and_programs(cli: Cli, script: Path) -> None:
    lines = cli("certify", script, "--seed", "3").stdout.splitlines()
    assert lines[1] == "  programs: 4 compared, made by 2 schedule steps and 5 passes"
    data = "random arrays of seed 3 (normal floats, integers of any value)"
    assert lines[2:4] == [f"  trial: n = 5; {data}", f"  trial: n = 13; {data}"]
    assert lines[4:] == [
        "  compared: exactly (field of 2147483647 elements, integers modulo 2^w)",
        "  compared: floats within their error bounds",
        "  bounds: 3 accesses: 3 proved",
    ]


def test_json_has_the_trials(cli: Cli, script: Path) -> None:
    (entry,) = json.loads(cli("certify", script, "--json").stdout)
    assert entry["steps"] == 2
    assert entry["passes"][-1] == "introduce_lets"
    assert (entry["bounds"]["proved"], entry["bounds"]["checked_at_entry"]) == (3, 0)
    assert [trial["sizes"] for trial in entry["trials"]] == [{"n": 5}, {"n": 13}]
    for trial in entry["trials"]:
        assert (trial["seed"], trial["greatest_integer"], trial["programs"]) == (0, None, 2)
        assert trial["algebras"] == ["finite field", "floats within bounds"]


@pytest.mark.search
def test_every_step_is_told_in_json(cli: Cli, script: Path) -> None:
    (entry,) = json.loads(cli("certify", script, "--every-step", "--json").stdout)
    assert entry["holds"] is True
    assert entry["guilty"] is None
    assert "s[C].split(i, factor=8)" in entry["compared"]


def test_a_guilty_step_ends_with_a_failure(cli: Cli, script: Path) -> None:
    (bug,) = [bug for bug in INTERPRETED if bug.name == "lost tail guard"]
    with switched_on(bug):
        result = cli("certify", script)
        (entry,) = json.loads(cli("certify", script, "--json").stdout)
    assert result.exit_code == 1
    assert "s[C].split(i, factor=8), at " in result.stdout
    assert "is guilty (n = " in result.stdout
    assert entry["holds"] is False
    assert entry["sizes"] == {"n": 5}


def test_loop_ir_has_no_schedule_to_certify(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "add.txt"
    path.write_text("func add(A: f32[n], B: f32[n] out) { for i in range(n) { B[i] = A[i] } }")
    result = cli("certify", path)
    assert result.exit_code == 4
    assert "add cannot be certified" in result.stderr
    assert "nothing to be compared with" in result.stderr


_LARGE = """
import refcomp as rc
def computation():
    a = rc.placeholder((4000, 4000), name="A")
    b = rc.compute((4000, 4000), lambda i, j: a[i, j] * 2, name="B")
    return rc.create_schedule(b), [a, b]
"""


def test_a_stand_in_is_told(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    path.write_text(_LARGE)
    result = cli("certify", path)
    assert result.exit_code == 0
    assert " programs agree on a stand-in (B.i = 8, B.j = 8)\n" in result.stdout
    assert "  trial: constant sizes; random arrays of seed 0" in result.stdout
