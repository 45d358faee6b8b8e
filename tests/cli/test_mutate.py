"""`refcomp mutate` prints a table, and fails when too much wrong code goes unnoticed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from refcomp.cli import mutate
from refcomp.mutate.mutant import Mutant

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


@pytest.mark.search
def test_a_table_by_kind_and_policy(cli: Cli, program: Path) -> None:
    result = cli("mutate", program, "--all")
    assert (result.exit_code, result.stderr) == (0, "")
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["loop-ir", "wrong", "ours", "rtol", "1e-02", "rtol", "1e-03"]
    assert any(row.startswith("guard inverted") for row in rows)
    assert any(row.startswith("all ") and "100.0 %" in row for row in rows)


@pytest.mark.search
def test_all_of_them_in_json(cli: Cli, program: Path) -> None:
    result = cli("mutate", program, "--all", "--json")
    report = json.loads(result.stdout)
    few = json.loads(cli("mutate", program, "--count", 5, "--json").stdout)
    assert report["mutants"] > few["mutants"] >= 5
    assert report["mutants"] == report["wrong"] + sum(report["equivalent"].values())
    assert report["noticed"]["ours"] == report["wrong"] - len(report["survivors"])
    assert list(report["of"]) == ["loop-ir"] and not report["refused"]


@pytest.mark.search
def test_what_is_mutated_is_chosen(cli: Cli, program: Path) -> None:
    args = ("mutate", program, "--of", "compiler", "--of", "loop-ir", "--count", 6)
    report = json.loads(cli(*args, "--json").stdout)
    assert list(report["of"]) == ["loop-ir", "compiler"]
    assert report["mutants"] == sum(part["mutants"] for part in report["of"].values())
    assert report["of"]["compiler"]["mutants"] == 6
    text = cli(*args).stdout
    heads = [line.split()[0] for line in text.splitlines() if "rtol" in line]
    assert heads == ["loop-ir", "compiler", "wrong"]
    assert "6 mutants, " in text and " no code: the compiler " in text
    result = cli("mutate", "--of", "fortran")
    assert result.exit_code == 2 and "'fortran' is not one of" in result.stderr


@pytest.mark.search
def test_without_a_program_templates_are_tried_too() -> None:
    assert list(mutate._families(None, ())) == ["loop-ir", "compiler", "llvm"]
    templates = ["llvm", "opencl", "cuda", "amdgpu"]
    assert list(mutate._families(None, ("all",))) == [
        "loop-ir",
        "compiler",
        "topi",
        "graph",
        *templates,
    ]
    assert list(mutate._families(None, ("opencl",))) == ["opencl"]


def test_survivors_are_listed_and_fail(cli: Cli, program: Path, monkeypatch) -> None:
    monkeypatch.setattr(mutate, "score_loop_ir", _unnoticed)
    result = cli("mutate", program)
    assert result.exit_code == 1
    assert "survives: here, lowering: guard dropped: " in result.stdout
    assert "if (a)  ->  b (so)" in result.stdout


def _unnoticed(*_args):
    yield Mutant("here", "lowering", "guard dropped", "if (a)  ->  b", frozenset(), reason="so")


def test_loop_ir_has_no_schedule_to_mutate(cli: Cli, program: Path) -> None:
    result = cli("mutate", f"{program}:text")
    assert result.exit_code == 4
    assert "cannot be mutated" in result.stderr and "it has no schedule" in result.stderr


@pytest.mark.search
def test_each_file_of_graph_passes_has_a_table(cli: Cli) -> None:
    result = cli("mutate", "--of", "graph", "--count", 16, "--json")
    report = json.loads(result.stdout)
    assert {"graph: fold_constants", "graph: fuse_operators"} <= set(report["of"])
    assert report["mutants"] == sum(part["mutants"] for part in report["of"].values()) >= 16
