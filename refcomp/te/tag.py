"""tag_scope: a tag, by which schedules may choose, for all operations that are made inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name

_CURRENT: ContextVar[str] = ContextVar("tag", default="")


@contextmanager
def tag_scope(tag: str) -> Iterator[None]:
    """Tag the operations that this thread makes inside. It is also a decorator.

    Raises:
        UserError: another scope encloses this one. An operation has one tag.
    """
    checked_name(tag, "a tag")
    outer = _CURRENT.get()
    if outer:
        raise UserError(
            f"tag_scope({tag!r}) lies inside tag_scope({outer!r})",
            why="an operation has one tag",
            remedy="leave the outer scope first",
        )
    token = _CURRENT.set(tag)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def tag_in_force(tag: str) -> str:
    """Return `tag`, or the tag of the enclosing scope if it is empty."""
    return tag or _CURRENT.get()
