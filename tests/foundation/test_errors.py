"""Each failure says what, where, why and what to do, and all can be caught at once."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from refcomp.foundation.errors import (
    CompilerBug,
    RefcompError,
    ToolchainError,
    Unsupported,
    UserError,
)
from refcomp.foundation.snippets import Snippet

ROOT = Path(__file__).parents[2]
KINDS = [UserError, Unsupported, ToolchainError, CompilerBug]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_caught_as_one(kind: type[RefcompError]) -> None:
    with pytest.raises(RefcompError, match="^it is wrong$"):
        raise kind("it is wrong")


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_is_another(kind: type[RefcompError]) -> None:
    others = [other for other in KINDS if other is not kind]
    assert not isinstance(kind("x"), tuple(others))


@pytest.mark.parametrize("kind", KINDS)
def test_details_follow_in_their_order(kind: type[RefcompError]) -> None:
    error = kind("it is wrong", remedy="do that", why="because", where="here")
    assert str(error).splitlines() == [
        "it is wrong",
        "  where: here",
        "  why: because",
        "  what to do: do that",
    ]
    assert (error.what, error.where, error.why, error.remedy) == (
        "it is wrong",
        "here",
        "because",
        "do that",
    )


def test_absent_and_empty_details_are_left_out() -> None:
    assert str(UserError("wrong", where="", why=None, remedy="r")) == "wrong\n  what to do: r"
    assert str(UserError("wrong")) == "wrong"


def test_notes_can_be_added() -> None:
    error = UserError("wrong")
    error.add_note("in stage C")
    assert error.__notes__ == ["in stage C"]


def test_a_failed_tool_shows_command_stderr_and_folder(tmp_path: Path) -> None:
    error = ToolchainError(
        "llc failed",
        why="exit status 1",
        command=("/bin/llc", "-O2", "x.bc"),
        stderr="first\nsecond\n",
        kept=tmp_path,
    )
    assert str(error).splitlines() == [
        "llc failed",
        "  why: exit status 1",
        "  command: /bin/llc -O2 x.bc",
        "  stderr:",
        "    first",
        "    second",
        f"  kept: {tmp_path}",
    ]
    assert error.command == ("/bin/llc", "-O2", "x.bc")
    assert (error.stderr, error.kept) == ("first\nsecond\n", tmp_path)


def test_a_missing_tool_has_no_command_to_show() -> None:
    error = ToolchainError("no llc", remedy="install it")
    assert str(error) == "no llc\n  what to do: install it"
    assert (error.command, error.stderr, error.kept) == ((), "", None)


def test_the_wrong_line_and_earlier_ones_are_quoted_before_the_reasons() -> None:
    error = UserError(
        "it is wrong",
        at=Snippet("b.ir:4:1", text="A[i]", columns=(0, 1)),
        earlier=[
            Snippet("b.ir:3", "made here", text="alloc A"),
            Snippet("", "made by nobody"),
            Snippet("b.ir:3", "made here", text="alloc A"),
        ],
        where="here",
        why="because",
    )
    assert str(error).splitlines() == [
        "it is wrong",
        "  --> b.ir:4:1",
        "   |     A[i]",
        "   |     ^",
        "  --> b.ir:3",
        "   |     alloc A",
        "   |     ------- made here",
        "  where: here",
        "  why: because",
    ]


def test_the_users_call_is_quoted_by_the_whole_message() -> None:
    with pytest.raises(UserError) as caught:
        raise UserError("wrong", remedy="r")
    line = caught.value.__traceback__.tb_lineno
    assert caught.value.message() == (
        "wrong\n"
        f"  --> {__file__}:{line}\n"
        '   |     raise UserError("wrong", remedy="r")\n'
        "   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  what to do: r"
    )
    assert str(caught.value) == "wrong\n  what to do: r", "pytest shows the line itself"


def test_a_line_that_is_named_wins_over_the_call() -> None:
    with pytest.raises(UserError) as caught:
        raise UserError("wrong", at=Snippet("x:1", text="y"))
    assert caught.value.message() == "wrong\n  --> x:1\n   |     y\n   |     ^"


def test_an_error_that_was_not_raised_and_a_bug_quote_no_call() -> None:
    assert UserError("wrong").message() == "wrong"
    with pytest.raises(CompilerBug) as caught:
        raise CompilerBug("wrong")
    assert caught.value.message() == "wrong"


def test_a_program_that_prints_an_error_shows_the_very_call(tmp_path: Path) -> None:
    path = tmp_path / "users_program.py"
    path.write_text(
        textwrap.dedent(
            """
            import refcomp as rc
            try:
                types = rc.as_dtype("f32"), rc.as_dtype("f33")
            except rc.UserError as error:
                print(error)
            """
        ).lstrip()
    )
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[:4] == [
        "unknown dtype 'f33'",
        f"  --> {path}:3",
        '   |     types = rc.as_dtype("f32"), rc.as_dtype("f33")',
        "   |                                 ^^^^^^^^^^^^^^^^^^",
    ]
