"""Loop-IR text as functions; a text without any is refused."""

from __future__ import annotations

from refcomp.cli.streams import name_of, read_text
from refcomp.foundation.errors import UserError
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_funcs_with_lines
from refcomp.ir.stmt import Stmt
from refcomp.lowering.entry_conditions import with_entry_conditions


def read_funcs(path: str) -> list[PrimFunc]:
    """The functions of a loop-IR text; UserError when there is none."""
    return text_to_funcs(read_text(path), path)


def text_to_checked_funcs(text: str, path: str) -> list[PrimFunc]:
    """The functions of `text`, each with what it requires; UserError for what is out of range."""
    funcs, lines = _parsed(text, path)
    return [with_entry_conditions(func, lines) for func in funcs]


def text_to_funcs(text: str, path: str) -> list[PrimFunc]:
    """The functions of `text`, which was read from `path`."""
    return _parsed(text, path)[0]


def _parsed(text: str, path: str) -> tuple[list[PrimFunc], dict[Stmt, str]]:
    funcs, lines = parse_funcs_with_lines(text, name_of(path))
    if not funcs:
        raise UserError(
            f"{name_of(path)} holds no function",
            remedy="give loop-IR text, such as `refcomp lower` writes",
        )
    return funcs, lines
