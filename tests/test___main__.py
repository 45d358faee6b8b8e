"""`python -m refcomp` is the command `refcomp`: its usage, output and exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest

import refcomp

pytestmark = pytest.mark.tools


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "refcomp", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_usage_names_the_command() -> None:
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: refcomp [OPTIONS] COMMAND")


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").stdout == f"refcomp, version {refcomp.__version__}\n"


def test_exit_codes_are_those_of_the_command(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("func f(\n")
    assert run("no_such_command").returncode == 2
    done = run("check", str(wrong))
    assert done.returncode == 4
    assert done.stderr.startswith("error: ")
