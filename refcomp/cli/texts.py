"""Reads loop-IR text. A text without a function is refused."""

from __future__ import annotations

from refcomp.cli.streams import name_of, read_text
from refcomp.foundation.errors import UserError
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_funcs_with_lines
from refcomp.ir.stmt import Stmt
from refcomp.lowering.entry_conditions import with_entry_conditions


def read_funcs(path: str) -> list[PrimFunc]:
    """Return the functions of the loop-IR text in the file `path`.

    Raise UserError if the file cannot be read or parsed, or has no function.
    """
    return text_to_funcs(read_text(path), path)


def text_to_checked_funcs(text: str, path: str) -> list[PrimFunc]:
    """Return the functions of `text`, each with its entry conditions.

    Raise UserError as `read_funcs` does, and for accesses that are certainly out of range.
    """
    funcs, lines = _parse(text, path)
    return [with_entry_conditions(func, lines) for func in funcs]


def text_to_funcs(text: str, path: str) -> list[PrimFunc]:
    """Return the functions of `text`, which was read from `path`. Raise as `read_funcs` does."""
    return _parse(text, path)[0]


def _parse(text: str, path: str) -> tuple[list[PrimFunc], dict[Stmt, str]]:
    """Return the functions, and for each statement its place in `text`."""
    # The parser accepts an empty text, which is usually the output of a command that failed.
    funcs, lines = parse_funcs_with_lines(text, name_of(path))
    if not funcs:
        raise UserError(
            f"{name_of(path)} holds no function",
            remedy="give loop-IR text, such as `refcomp lower` writes",
        )
    return funcs, lines
