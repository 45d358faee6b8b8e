"""A message quotes a line of a source, with a mark below the part that matters."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import pytest

from refcomp.foundation.snippets import Snippet, call_in


def write(folder: Path, *lines: str) -> str:
    path = folder / "users.py"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_line_of_a_file_is_quoted_and_marked_as_a_whole(tmp_path: Path) -> None:
    file = write(tmp_path, "first", "    second(x)  ")
    assert Snippet(f"{file}:2", "declared here").render("-") == [
        f"  --> {file}:2",
        "   |     second(x)",
        "   |     --------- declared here",
    ]


def test_columns_are_marked_within_the_line() -> None:
    assert Snippet("x.ir:1:5", text="A[i] = B", columns=(7, 8)).render("^") == [
        "  --> x.ir:1:5",
        "   |     A[i] = B",
        "   |            ^",
    ]


@pytest.mark.parametrize("place", ["<string>:3", "absent.py:3", "x.py:99999", "x.py", ""])
def test_only_the_place_is_shown_of_a_line_that_cannot_be_read(place: str) -> None:
    assert Snippet(place).render("^") == [f"  --> {place}"]
    assert Snippet(place, "split here").render("-") == [f"  --> {place} (split here)"]


def test_a_mark_beyond_the_end_has_one_column() -> None:
    assert Snippet("x:1", text="func f(", columns=(7, 7)).render("^")[1:] == [
        "   |     func f(",
        "   |            ^",
    ]


def test_a_long_line_is_cut_around_the_mark() -> None:
    text = "a" * 500 + "B" + "c" * 500
    _, quoted, mark = Snippet("x:1", text=text, columns=(500, 501)).render("^")
    assert quoted == "   |     " + "a" * 60 + "B" + "c" * 59
    assert mark == "   |     " + " " * 60 + "^"
    whole = Snippet("x:1", text=text).render("^")
    assert [len(line) for line in whole[1:]] == [129, 129]


def test_wide_and_unprintable_characters_keep_the_mark_in_place() -> None:
    text = "字\x1b\te\u0301z"
    column = text.index("z")
    _, quoted, mark = Snippet("x:1", text=text, columns=(column, column + 1)).render("^")
    assert (quoted, mark) == ("   |     字  e\u0301z", "   |          ^")
    assert Snippet("x:1", text="字").render("-")[2] == "   |     --"


def test_notebooks_are_known_to_linecache() -> None:
    name = "<ipython-input-7>"
    linecache.cache[name] = (8, None, ["s[C].x()\n"], name)
    try:
        assert Snippet(f"{name}:1").render("^")[1] == "   |     s[C].x()"
    finally:
        del linecache.cache[name]


def test_a_file_that_was_changed_is_read_again(tmp_path: Path) -> None:
    file = write(tmp_path, "old")
    assert "   |     old" in Snippet(f"{file}:1").render("^")
    write(tmp_path, "newer")
    assert "   |     newer" in Snippet(f"{file}:1").render("^")


def fail(*_: object) -> None:
    raise ValueError


def caught_in(call: Callable[[], object]) -> list[str]:
    """The message's lines about the innermost frame of `call`."""
    try:
        call()
    except ValueError:
        entry = sys.exc_info()[2].tb_next
        assert entry is not None
        return call_in(entry).render("^")
    raise AssertionError


def test_the_very_call_is_marked() -> None:
    _, quoted, mark = caught_in(lambda: ("字", fail(1), 3))
    assert quoted.rstrip() == '   |     _, quoted, mark = caught_in(lambda: ("字", fail(1), 3))'
    start = quoted.index("fail") + 1  # a Chinese character has two columns
    assert mark == " " * 3 + "|" + " " * (start - 4) + "^" * len("fail(1)")


def test_a_call_of_several_lines_is_marked_to_the_end_of_its_first() -> None:
    _, quoted, mark = caught_in(
        lambda: fail(
            1,
        )
    )
    assert quoted == "   |     lambda: fail("
    assert mark == "   |             ^^^^^"


def test_code_without_source_has_a_place_only() -> None:
    code = compile("\nfail()", "<string>", "exec")
    try:
        FunctionType(code, {"fail": fail})()
    except ValueError:
        entry = sys.exc_info()[2].tb_next
        assert call_in(entry).render("^") == ["  --> <string>:2"]
