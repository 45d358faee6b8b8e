"""REFCOMP_CHECK_BOUNDS=1 holds for commands as it does for builds in Python."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from refcomp.cli.headers import read_header
from refcomp.ir.parser import parse_func

Cli = Callable[..., Result]
GATHER = """\
func gather(A: bf16[n], I: i64[m], B: bf16[m] out) {
  for i in range(m) {
    B[i] = A[I[i]]
  }
}
"""
WRONG = "gather reads from A out of bounds: index 4 in dimension 0, which has 3 elements (n)"


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFCOMP_CHECK_BOUNDS", "1")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return _inputs(tmp_path / "good.npz", [0, 2])


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return _inputs(tmp_path / "bad.npz", [0, 4])


def _inputs(path: Path, indices: list[int]) -> Path:
    np.savez(path, A=np.arange(3, dtype=np.float32).view(np.uint32), I=np.array(indices))
    return path


def _plain(text: str) -> str:
    return text.replace("bf16", "u32")


def _assert_refused(result: Result) -> None:
    assert result.exit_code == 4
    assert WRONG in result.stderr
    assert "where: B[i] = A[I[i]]" in result.stderr


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_text_is_built_with_checks(cli: Cli, good: Path, bad: Path, target: str) -> None:
    text = _plain(GATHER)
    if target == "opencl":
        text = text.replace("range(m)", "range(m) threadIdx.x")
    assert cli("execute", "--target", target, "-i", good, input=text).exit_code == 0
    _assert_refused(cli("execute", "--target", target, "-i", bad, input=text))


def test_passed_text_carries_its_checks(cli: Cli, good: Path, bad: Path) -> None:
    passed = cli("pass", "--all", input=_plain(GATHER)).stdout
    assert len(parse_func(passed).checks) == 1
    result = cli("execute", "-i", good, input=passed)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("B: u32[2]") and "faults" not in result.stdout
    _assert_refused(cli("execute", "-i", bad, input=passed))


@pytest.mark.llvm
@pytest.mark.parametrize("commands", [["print", "--all-passes"], ["pass", "--all"]])
def test_text_goes_through_all_commands(
    cli: Cli, good: Path, bad: Path, commands: list[str]
) -> None:
    text = cli(*commands, input=_plain(GATHER)).stdout
    printed = text if commands[0] == "print" else cli("print", input=text).stdout
    module = cli("assemble", input=printed).stdout_bytes
    assert cli("execute", "-i", good, input=module).exit_code == 0
    _assert_refused(cli("execute", "-i", bad, input=module))


@pytest.mark.llvm
def test_arguments_of_another_type_keep_their_signature(cli: Cli) -> None:
    passed = cli("pass", "--all", input=GATHER).stdout
    assert "A: u16[n]" in passed and "faults: i64[1, 3] out" in passed
    (signature,) = read_header(passed, "").signatures
    assert str(signature) == "gather(A: bf16[n], I: i64[m], B: bf16[m] (output))"
    printed = cli("print", input=passed)
    assert printed.exit_code == 0
    (signature,) = read_header(printed.stdout, "").signatures
    assert len(signature.checks) == 1


@pytest.mark.llvm
def test_the_pass_is_listed_and_shown(cli: Cli, tmp_path: Path) -> None:
    assert cli("pass", "--list").stdout.startswith("check_accesses")
    shown = json.loads(cli("show", "-", "--json", input=_plain(GATHER)).stdout)
    texts = {stage["stage"]: stage["text"] for stage in shown}
    assert "faults[0, 0] = A.at" in texts["after:check_accesses"]


def test_who_does_not_ask_sees_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFCOMP_CHECK_BOUNDS", "0")
    assert "check_accesses" not in cli("pass", "--list").stdout
    assert "faults" not in cli("pass", "--all", input=GATHER).stdout


def test_the_pass_can_be_run_by_its_name(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFCOMP_CHECK_BOUNDS")
    checked = cli("pass", "check_accesses", input=GATHER).stdout
    assert "faults[0, 2] = n" in checked
    assert cli("pass", "check_accesses", input=checked).stdout == checked
