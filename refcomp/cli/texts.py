"""Loop-IR text as functions; a text without any is refused."""

from __future__ import annotations

from refcomp.cli.streams import name_of, read_text
from refcomp.errors import UserError
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_funcs


def read_funcs(path: str) -> list[PrimFunc]:
    """The functions of a loop-IR text; UserError when there is none."""
    return text_to_funcs(read_text(path), path)


def text_to_funcs(text: str, path: str) -> list[PrimFunc]:
    """The functions of `text`, which was read from `path`."""
    funcs = parse_funcs(text, name_of(path))
    if not funcs:
        raise UserError(
            f"{name_of(path)} holds no function",
            remedy="give loop-IR text, such as `refcomp lower` writes",
        )
    return funcs
