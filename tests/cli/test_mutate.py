"""`refcomp mutate` prints a table, and fails when too much wrong code goes unnoticed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from refcomp.cli import mutate

Cli = Callable[..., Result]
_PROGRAM = """
import refcomp as rc

def computation():
    a = rc.placeholder((5,), name="A")
    b = rc.compute((5,), lambda i: a[i] * 2.5 + 1.0, name="B")
    s = rc.create_schedule(b)
    s[b].split(b.op.axis[0], factor=2)
    return s, [a, b]

def text():
    s, args = computation()
    return rc.lower(s, args)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(_PROGRAM, encoding="utf-8")
    return path


def test_a_table_by_kind_and_policy(cli: Cli, program: Path) -> None:
    result = cli("mutate", program, "--all")
    assert (result.exit_code, result.stderr) == (0, "")
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["wrong", "ours", "rtol", "1e-02", "rtol", "1e-03"]
    assert any(row.startswith("guard inverted") for row in rows)
    assert any(row.startswith("all ") and "100.0 %" in row for row in rows)


def test_all_of_them_in_json(cli: Cli, program: Path) -> None:
    result = cli("mutate", program, "--all", "--json")
    report = json.loads(result.stdout)
    few = json.loads(cli("mutate", program, "--count", 5, "--json").stdout)
    assert report["mutants"] > few["mutants"] >= 5
    assert report["mutants"] == report["wrong"] + sum(report["equivalent"].values())
    assert report["noticed"]["ours"] == report["wrong"] - len(report["survivors"])


def test_survivors_are_listed_and_fail(cli: Cli, program: Path, monkeypatch) -> None:
    monkeypatch.setattr(mutate, "score", _unnoticed)
    result = cli("mutate", program)
    assert result.exit_code == 1
    assert "survives: here, lowering: guard dropped: " in result.stdout
    assert "(no data that was tried tells it apart)" in result.stdout


def _unnoticed(*_args):
    from refcomp.mutate.mutations import mutations_of  # noqa: PLC0415
    from refcomp.mutate.score import Mutant, _stages  # noqa: PLC0415
    from refcomp.mutate.subjects import subjects  # noqa: PLC0415

    func = _stages(subjects()[0])[0][1]
    (mutation, *_) = [m for m in mutations_of(func) if m.kind == "guard dropped"]
    yield Mutant("here", "lowering", mutation, frozenset())


def test_loop_ir_has_no_schedule_to_mutate(cli: Cli, program: Path) -> None:
    result = cli("mutate", f"{program}:text")
    assert result.exit_code == 4
    assert "cannot be mutated" in result.stderr and "it has no schedule" in result.stderr
