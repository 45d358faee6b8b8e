"""Loop-IR text becomes functions, and what is wrong with it is told with its place."""

from pathlib import Path

import pytest

from refcomp.cli.texts import read_funcs, text_to_funcs
from refcomp.foundation.errors import UserError


def test_text_may_hold_several_functions_but_not_none(tmp_path: Path, add_text: str) -> None:
    path = tmp_path / "x.txt"
    path.write_text(add_text + add_text.replace("add", "more"))
    assert [func.name for func in read_funcs(str(path))] == ["add", "more"]
    path.write_text("# nothing\n")
    with pytest.raises(UserError, match=r"x\.txt holds no function\n.*refcomp lower"):
        read_funcs(str(path))


def test_a_syntax_error_tells_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("func f(A: f32[1] out) {\n  A[0] = = 1.0f32\n}\n")
    with pytest.raises(UserError, match=r"  --> .*x\.txt:2:10\n   \|     A\[0\] = = 1.0f32\n"):
        read_funcs(str(path))


def test_stdin_has_a_name() -> None:
    with pytest.raises(UserError, match="<stdin> holds no function"):
        text_to_funcs("", "-")
