"""Exit codes are what scripts rely on; errors have the same parts in text and in JSON."""

import json
from pathlib import Path

import pytest

from refcomp.cli.outcomes import MEANINGS, error_to_json, error_to_text, exit_code
from refcomp.foundation.errors import (
    CompilerBug,
    RefcompError,
    ToolchainError,
    Unsupported,
    UserError,
)
from refcomp.foundation.snippets import Snippet


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RefcompError("failed"), 1),
        (MemoryError("no room"), 1),
        (OSError(28, "No space left on device"), 1),
        (OSError(12, "Cannot allocate memory"), 1),
        (ImportError("x.so: failed to map segment from shared object"), 1),
        (RuntimeError("can't start new thread"), 1),
        (ImportError("no module x"), 70),
        (RuntimeError("odd"), 70),
        (OSError(2, "No such file"), 70),
        (ToolchainError("no llc"), 3),
        (UserError("wrong"), 4),
        (Unsupported("too much"), 5),
        (CompilerBug("oops"), 70),
        (KeyError("internal"), 70),
    ],
)
def test_each_failure_has_its_code(error: Exception, code: int) -> None:
    assert exit_code(error) == code
    assert code in MEANINGS


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (MemoryError(), "error: memory ran out"),
        (MemoryError("8 GiB"), "error: memory ran out: 8 GiB"),
        (RuntimeError("can't start new thread"), "error: memory ran out: can't start new thread"),
        (
            OSError(12, "Cannot allocate memory"),
            "error: memory ran out: [Errno 12] Cannot allocate",
        ),
    ],
)
def test_a_lack_of_memory_is_told_with_what_to_do(error: Exception, first: str) -> None:
    text = error_to_text(error)
    assert text.startswith(first)
    assert text.endswith("take smaller sizes, or raise the limit of memory (ulimit -v)")


def test_text_holds_what_where_why_and_remedy() -> None:
    error = UserError("bad shape", where="argument A", why="it is 3", remedy="pass 4")
    assert error_to_text(error) == (
        "error: bad shape\n  where: argument A\n  why: it is 3\n  what to do: pass 4"
    )


def test_json_holds_the_parts_that_there_are() -> None:
    error = ToolchainError("llc failed", command=("llc", "-O2"), stderr="no", kept=Path("/kept"))
    assert json.loads(json.dumps(error_to_json(error))) == {
        "error": {
            "kind": "ToolchainError",
            "exit_code": 3,
            "what": "llc failed",
            "command": ["llc", "-O2"],
            "stderr": "no",
            "kept": "/kept",
        }
    }


def test_json_holds_the_wrong_line_and_earlier_ones() -> None:
    split = Snippet("a.py:3", "split here")
    error = UserError("wrong", at=Snippet("a.ir:7:2", text="x"), earlier=[split])
    parts = error_to_json(error)["error"]
    assert (parts["line"], parts["earlier"]) == ("a.ir:7:2", {"split here": "a.py:3"})


def test_an_internal_error_is_told_as_a_bug_with_the_way_to_report_it() -> None:
    text = error_to_text(KeyError("n"))
    assert "a bug in refcomp: KeyError: 'n'" in text
    assert "--traceback" in text


@pytest.mark.parametrize(
    "kind", [UserError, ToolchainError, CompilerBug, MemoryError, KeyError, ValueError]
)
def test_no_name_in_an_error_commands_the_terminal(kind: type[Exception]) -> None:
    text = error_to_text(kind("no kernel \x1b]0;owned\x07\x9b2J\r"))
    assert "owned" in text and not set(text) & set("\x1b\x07\x9b\r")


def test_lines_and_letters_of_an_error_stay() -> None:
    assert error_to_text(UserError("größer\n\t→ ^", where="a")) == (
        "error: größer\n\t→ ^\n  where: a"
    )
