"""`refcomp assemble` makes machine code in three forms, of text whose signatures fit."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from refcomp.cli import streams
from refcomp.runtime.module_file import load_module

Cli = Callable[..., Result]


@pytest.fixture
def printed(cli: Cli, add_text: str) -> str:
    return cli("print", "--all-passes", input=add_text).stdout


@pytest.mark.llvm
def test_a_module_file_runs(cli: Cli, printed: str, tmp_path: Path) -> None:
    path = tmp_path / "add.module"
    path.write_bytes(cli("assemble", input=printed).stdout_bytes)
    a, c = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    load_module(path)["add"](a, a, c)
    np.testing.assert_array_equal(c, a + a)


@pytest.mark.llvm
def test_a_shared_object_and_assembly(cli: Cli, printed: str) -> None:
    assert cli("assemble", "--format", "so", input=printed).stdout_bytes.startswith(b"\x7fELF")
    assembly = cli("assemble", "--format", "asm", input=printed).stdout
    assert "add:" in assembly.split()


@pytest.mark.llvm
def test_a_file_is_written_and_reported(cli: Cli, printed: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    report = json.loads(cli("assemble", "--json", "-o", path, input=printed).stdout)
    assert report["bytes"] == path.stat().st_size
    assert (report["format"], report["functions"]) == ("module", ["add"])


@pytest.mark.llvm
def test_a_terminal_is_refused(cli: Cli, printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "is_terminal", lambda stream: True)
    result = cli("assemble", input=printed)
    assert result.exit_code == 4
    assert "stdout is a terminal" in result.stderr
    assert "give -o FILE" in result.stderr


@pytest.mark.llvm
def test_a_signature_that_was_tampered_with_is_refused(cli: Cli, printed: str) -> None:
    text = printed.replace('"symbols": ["n"]', '"symbols": []')
    assert text != printed
    result = cli("assemble", input=text)
    assert result.exit_code == 4
    assert "signature of add does not fit" in result.stderr


@pytest.mark.llvm
def test_text_that_llvm_refuses_is_a_toolchain_error(cli: Cli, printed: str) -> None:
    text = printed.replace("ret i32 0", "ret i32 nonsense")
    result = cli("assemble", "--json", input=text)
    assert result.exit_code == 4
    result = cli("assemble", input=text)
    assert result.exit_code == 3
    assert "nonsense" in result.stderr


def test_text_without_a_header_is_refused(cli: Cli) -> None:
    result = cli("assemble", input="define i32 @f(i32 %n) {\n  ret i32 0\n}\n")
    assert result.exit_code == 4
    assert "<stdin> does not say how its functions are called" in result.stderr


def test_json_and_the_result_cannot_share_stdout(cli: Cli) -> None:
    result = cli("assemble", "--json", input="")
    assert result.exit_code == 4
    assert "give -o FILE" in json.loads(result.stderr)["error"]["remedy"]
