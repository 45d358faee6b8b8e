"""Each failure says what, where, why and what to do, and all can be caught at once."""

from pathlib import Path

import pytest

from refcomp.foundation.errors import (
    CompilerBug,
    RefcompError,
    ToolchainError,
    Unsupported,
    UserError,
)

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
