"""Paths that users give are texts that a file can have."""

from pathlib import Path
from typing import Any

import pytest

from refcomp.foundation.errors import UserError
from refcomp.foundation.paths import checked_path


def test_texts_and_paths_are_paths(tmp_path: Path) -> None:
    assert checked_path("a/b", "a file") == "a/b"
    assert checked_path(tmp_path / "c", "a file") == str(tmp_path / "c")


@pytest.mark.parametrize("path", [3, None, [], 2.5, b"bytes", object])
def test_what_is_not_a_path_is_refused(path: Any) -> None:
    with pytest.raises(UserError, match="is not a path for a file\n  why: a path is a str or a p"):
        checked_path(path, "a file")


@pytest.mark.parametrize("path", ["", "a\0b", "\0"])
def test_texts_that_no_file_can_have_are_refused(path: str) -> None:
    with pytest.raises(UserError, match=r"cannot be the path of a file\n  why: .*no NUL character"):
        checked_path(path, "a file")
