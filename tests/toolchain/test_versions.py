"""Versions are read once per file, and what cannot be read is said in words."""

import os
import re
import sys
from pathlib import Path

import pytest

from refcomp.toolchain.description import VersionRule
from refcomp.toolchain.versions import (
    file_identity,
    read_versions,
    version_text,
    version_to_text,
)

RULE = VersionRule(("--version",), re.compile(r"version (\d+(?:\.\d+)*)"), (1,), None)


def _tool(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\necho {path.name} >> {path.parent}/log\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_versions_of_several_tools(tmp_path: Path) -> None:
    a = _tool(tmp_path / "a", "echo tool version 19.1.7 of today")
    b = _tool(tmp_path / "b", "echo; echo version 3")
    assert read_versions([a, b], RULE) == {a: (19, 1, 7), b: (3,)}
    assert version_text(b, RULE) == "\nversion 3\n"


def test_a_tool_is_asked_once_until_its_file_changes(tmp_path: Path) -> None:
    tool = _tool(tmp_path / "tool", "echo version 1.0")
    for _ in range(3):
        assert read_versions([tool], RULE) == {tool: (1, 0)}
    assert (tmp_path / "log").read_text() == "tool\n"
    before = file_identity(tool)
    _tool(tmp_path / "tool", "echo version 2.10")
    assert file_identity(tool) != before
    assert read_versions([tool], RULE) == {tool: (2, 10)}


def test_a_python_also_depends_on_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    before = file_identity(sys.executable)
    assert file_identity(sys.executable) == before
    os.utime(folder, (1, 1))
    assert file_identity(sys.executable) != before


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("echo hello world", r"does not print its version \(hello world\)"),
        ("true", r"does not print its version \(it said nothing\)"),
        ("echo no license >&2; exit 7", r"does not print.*exit status 7: no license"),
        ("sleep 600", r"does not print.*was not done after 0\.3 s"),
    ],
)
def test_a_tool_that_does_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, reason: str
) -> None:
    monkeypatch.setenv("REFCOMP_TOOL_TIMEOUT", "0.3")
    tool = _tool(tmp_path / "tool", body)
    answer = read_versions([tool], RULE)[tool]
    assert isinstance(answer, str)
    assert re.search(reason, answer)


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_bytes(b"\x7fELF rubbish")
    path.chmod(0o755)
    answer = read_versions([str(path)], RULE)[str(path)]
    assert isinstance(answer, str)
    assert "cannot be started" in answer


def test_a_failure_is_not_remembered(tmp_path: Path) -> None:
    flag = tmp_path / "works"
    tool = _tool(tmp_path / "tool", f"[ -e {flag} ] && echo version 5")
    assert isinstance(read_versions([tool], RULE)[tool], str)
    flag.touch()
    assert read_versions([tool], RULE)[tool] == (5,)


def test_text_of_a_version() -> None:
    assert version_to_text((19, 1, 7)) == "19.1.7"
