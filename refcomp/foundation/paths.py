"""Checks of paths that users give, before anything opens them."""

from __future__ import annotations

import os

from refcomp.foundation.errors import UserError


def checked_path(path: object, of_what: str) -> str:
    """Return `path`, a str or an os.PathLike, as a str.

    Raises UserError for anything else, for an empty path, and for a path with a NUL character.
    """
    if not isinstance(path, str | os.PathLike):
        raise UserError(
            f"{path!r} is not a path for {of_what}",
            why=f"a path is a str or a pathlib.Path, but this is a {type(path).__name__}",
            remedy='pass a path such as "model.refcomp"',
        )
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise UserError(
            f"{text!r} cannot be the path of {of_what}",
            why="a path is not empty and has no NUL character",
            remedy="check where the path comes from",
        )
    return text
