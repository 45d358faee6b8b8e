"""`refcomp print` prints what is ready, tells what is missing, and writes the signatures."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from refcomp.cli.headers import check_header, read_header

Cli = Callable[..., Result]


@pytest.mark.llvm
def test_ready_text_is_printed_below_its_header(cli: Cli, add_text: str) -> None:
    ready = cli("pass", "--all", input=add_text).stdout
    result = cli("print", input=ready)
    assert (result.exit_code, result.stderr) == (0, "")
    header = read_header(result.stdout, "")
    check_header(header, result.stdout, "")
    assert str(header.signatures[0]) == "add(A: f32[n], B: f32[n], C: f32[n] (output))"


def test_text_that_is_not_ready_is_refused_with_what_is_missing(cli: Cli, add_text: str) -> None:
    result = cli("print", input=add_text)
    assert result.exit_code == 4
    assert "add is not ready to be printed for llvm" in result.stderr
    assert "these passes are missing: " in result.stderr and "flatten_storage" in result.stderr
    assert "--all-passes" in result.stderr


@pytest.mark.llvm
def test_the_missing_passes_can_be_run(cli: Cli, scale_text: str) -> None:
    result = cli("print", "--all-passes", "--target", "llvm -mcpu=x86-64", input=scale_text)
    header = read_header(result.stdout, "")
    assert str(header.signatures[0]) == "scale(A: bf16[n], B: bf16[n] (output), alpha: f32)"
    assert str(header.target) == "llvm -mcpu=x86-64"
    assert "libgomp" not in header.requires


@pytest.mark.llvm
def test_arguments_changed_by_an_earlier_command_are_known(cli: Cli, scale_text: str) -> None:
    ready = cli("pass", "--all", input=scale_text).stdout
    header = read_header(cli("print", input=ready).stdout, "")
    assert str(header.signatures[0]) == "scale(A: bf16[n], B: bf16[n] (output), alpha: f32)"


@pytest.mark.llvm
def test_json_has_the_text_and_the_signatures(cli: Cli, add_text: str) -> None:
    report = json.loads(cli("print", "--all-passes", "--json", input=add_text).stdout)
    assert report["language"] == "llvm"
    assert report["signatures"][0]["name"] == "add"
    assert "define i32 @add(" in report["text"]


def test_devices_are_not_printed_for(cli: Cli, add_text: str) -> None:
    result = cli("print", "--target", "opencl", input=add_text)
    assert result.exit_code == 5
    assert "`refcomp show` shows the text" in result.stderr


def test_the_interpreter_has_no_text(cli: Cli, add_text: str) -> None:
    result = cli("print", "--target", "interp", input=add_text)
    assert result.exit_code == 5
    assert "nothing is printed for the target interp" in result.stderr


def test_without_tools_it_is_told_how_to_get_them(
    cli: Cli, add_text: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFCOMP_LLVM", str(tmp_path))
    monkeypatch.setenv("REFCOMP_CACHE_DIR", f"{tmp_path}/cache")
    result = cli("print", "--all-passes", "--json", input=add_text)
    error = json.loads(result.stderr)["error"]
    assert (result.exit_code, error["kind"]) == (3, "ToolchainError")
    assert "install" in error["remedy"]
