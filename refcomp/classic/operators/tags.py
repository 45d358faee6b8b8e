"""The classic tags of operations. refcomp has one tag for all operations without a reduction."""

from __future__ import annotations

from refcomp.foundation.errors import UserError
from refcomp.te.tag import INJECTIVE as _INJECTIVE
from refcomp.topi.tags import REDUCTION

ELEMWISE = _INJECTIVE
BROADCAST = _INJECTIVE
INJECTIVE = _INJECTIVE
COMM_REDUCE = REDUCTION
COMM_REDUCE_IDX = REDUCTION
# The beginnings of the classic tags of injective operations.
_INJECTIVES = ("elemwise", "broadcast", INJECTIVE)


def is_injective(tag: str) -> bool:
    """Return True for the tag of elementwise, broadcast and injective operations.

    The classic texts count, too: a tag that begins with "elemwise", "broadcast" or "injective".

    Raises:
        UserError: `tag` is not a text.

    Example::

        >>> from refcomp.classic import topi
        >>> A = rc.placeholder((2, 3), name="A")
        >>> topi.tag.is_injective(topi.exp(A).op.tag), topi.tag.is_injective(topi.sum(A).op.tag)
        (True, False)
    """
    if not isinstance(tag, str):
        raise UserError(f"{tag!r} is not a tag", remedy="pass the text tensor.op.tag")
    return tag.startswith(_INJECTIVES)
