"""`refcomp lower` writes loop-IR text, to a file or stdout, or JSON."""

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from refcomp.ir.parser import parse_func, parse_funcs

Cli = Callable[..., Result]


def test_text_parses_back(cli: Cli, script: Path) -> None:
    result = cli("lower", script)
    assert (result.exit_code, result.stderr) == (0, "")
    assert parse_func(result.stdout).name == "add"
    assert "vectorized" in result.stdout


def test_several_functions_come_in_one_text_without_what_the_program_prints(
    cli: Cli, script: Path
) -> None:
    result = cli("lower", f"{script}:both")
    assert [func.name for func in parse_funcs(result.stdout)] == ["first", "both_1"]
    assert result.stderr == "this goes to stderr\n"


def test_json_has_the_signature_and_the_schedule(cli: Cli, script: Path) -> None:
    (entry,) = json.loads(cli("lower", script, "--json").stdout)
    assert entry["name"] == entry["signature"]["name"] == "add"
    assert entry["schedule"] == ["s[C].split(i, factor=8)", "s[C].vectorize(i.inner)"]
    assert parse_func(entry["loop_ir"]).name == "add"


def test_a_file_is_written(cli: Cli, script: Path, tmp_path: Path) -> None:
    result = cli("lower", script, "-o", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (0, "")
    assert parse_func((tmp_path / "out").read_text()).name == "add"


def test_a_failing_program_is_an_illegal_request(cli: Cli, script: Path) -> None:
    result = cli("lower", f"{script}:broken")
    assert result.exit_code == 4
    assert "the program failed: ZeroDivisionError" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_illegal_schedule_shows_the_line_of_the_program_with_a_caret(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "users.py"
    path.write_text(
        "import refcomp as rc\n"
        "def computation():\n"
        "    A = rc.placeholder((4,), name='A')\n"
        "    B = rc.compute((4,), lambda i: A[i] + 1, name='B')\n"
        "    s = rc.create_schedule(B)\n"
        "    s[B].vectorize(B.op.axis[0])\n"
        "    parts = s[B].split(B.op.axis[0], 2)\n"
    )
    result = cli("lower", path)
    assert result.exit_code == 4
    assert result.stderr == (
        "error: cannot split axis i of stage B\n"
        f"  --> {path}:7\n"
        "   |     parts = s[B].split(B.op.axis[0], 2)\n"
        "   |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        f"  --> {path}:6\n"
        "   |     s[B].vectorize(B.op.axis[0])\n"
        "   |     ---------------------------- vectorized here\n"
        "  where: stage B, loops: i (data_parallel)\n"
        "  why: it is vectorized already\n"
        "  what to do: split first, then mark\n"
    )
