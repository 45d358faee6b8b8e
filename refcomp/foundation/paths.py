"""Paths as users give them, checked before anything opens them."""

from __future__ import annotations

import os
from typing import Any

from refcomp.foundation.errors import UserError


def checked_path(path: Any, of_what: str) -> str:
    """Return `path`, a text or an os.PathLike, as a text.

    UserError for anything else, for an empty one, and for one that no file can have.
    """
    if not isinstance(path, str | os.PathLike):
        raise UserError(
            f"{path!r} is not a path for {of_what}",
            why=f"a path is a text or a pathlib.Path, and this is a {type(path).__name__}",
            remedy='pass a path such as "model.rc"',
        )
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise UserError(
            f"{text!r} cannot be the path of {of_what}",
            why="a path is a text that is not empty and has no NUL character",
            remedy="check where the path comes from",
        )
    return text
