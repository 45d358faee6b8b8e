"""Text, bytes and JSON reach files and stdout; a terminal gets no bytes, a pipe no colour."""

import io
import json
from pathlib import Path

import pytest

from refcomp.cli import streams
from refcomp.foundation.errors import UserError


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "is_terminal", lambda stream: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")


def test_text_comes_back_from_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "text")
    streams.write_text("größer\n", path)
    assert streams.read_text(path) == "größer\n"


def test_what_is_no_text_is_written_escaped(tmp_path: Path) -> None:
    path = tmp_path / "text"
    streams.write_text("name \udcff", str(path))
    assert path.read_text() == "name \\udcff"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing cannot be read\n.*No such file") as caught:
        streams.read_text(str(tmp_path / "nothing"))
    assert "Traceback" not in str(caught.value)


def test_what_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(b"abc\xff")
    with pytest.raises(UserError, match=r"bytes is not text\n.*byte 3 is not UTF-8\n.*emulate"):
        streams.read_text(str(path))


def test_a_folder_that_is_not_there_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x cannot be written\n.*No such file"):
        streams.write_text("", str(tmp_path / "folder" / "x"))


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    streams.write_text("define i32 @f()\n", language="llvm")
    assert capsys.readouterr().out == "define i32 @f()\n"


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_colour(capsys: pytest.CaptureFixture[str]) -> None:
    streams.write_text("define i32 @f()\n", language="llvm")
    shown = capsys.readouterr().out
    assert "\x1b[" in shown
    assert "define" in shown


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_no_bytes() -> None:
    with pytest.raises(UserError, match=r"stdout is a terminal.*\n.*give -o"):
        streams.refuse_terminal("-", "give -o FILE")
    streams.refuse_terminal("file", "give -o FILE")


def test_bytes_reach_a_file_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "out"
    streams.write_bytes(b"\x00\n\r\xff", str(path))
    assert path.read_bytes() == b"\x00\n\r\xff"


def test_stdin_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"PK\xff")))
    assert streams.read_bytes("-") == b"PK\xff"


def test_json_is_one_valid_value(capsys: pytest.CaptureFixture[str]) -> None:
    streams.write_json({"a": [1, 2.5, None]})
    assert json.loads(capsys.readouterr().out) == {"a": [1, 2.5, None]}


def test_json_goes_to_a_file(tmp_path: Path) -> None:
    streams.write_json([1], str(tmp_path / "x.json"))
    assert json.loads((tmp_path / "x.json").read_text()) == [1]


def test_json_has_no_way_to_hold_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        streams.write_json(float("nan"))


def test_progress_is_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with streams.progress("working") as tell:
        tell("still working")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.usefixtures("terminal")
def test_progress_is_told_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with streams.progress("working") as tell:
        tell("still working")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "working" in captured.err
