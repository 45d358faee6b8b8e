"""Tags of operations, by which schedules may choose: a tag of the language, and tag_scope."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name

# Each element is a cheap expression of the inputs. It may be computed where it is read.
INJECTIVE = "injective"

_CURRENT: ContextVar[str] = ContextVar("tag", default="")


@contextmanager
def tag_scope(tag: str) -> Iterator[None]:
    """Tag the operations that this thread makes inside the `with` block. It is also a decorator.

    Schedules may choose by the tag, which is `tensor.op.tag`. A `tag=` of an operation overrides
    it.

    Args:
        tag: a non-empty text.

    Raises:
        UserError: another scope encloses this one, since an operation has one tag; or the tag is
            not a text.

    Source: TVM, te.tag_scope.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> with rc.tag_scope("elemwise"):
        ...     B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> B.op.tag
        'elemwise'
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
