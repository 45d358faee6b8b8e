"""The status array, to which compiled code reports wrong indices, and the resulting error.

A function built with the option `check_bounds` takes one more array after its parameters: i64 with
a row for each checked access (`Signature.checks`). A row has three words: the smallest wrong index,
the largest wrong index, and the extent of the dimension. Each call has its own array, so that calls
may run at the same time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import STATUS_WORDS, CheckedAccess, Signature
from refcomp.foundation.errors import OutOfBounds

Status = np.ndarray[Any, np.dtype[np.int64]]  # [checks, STATUS_WORDS]

_WORD = np.iinfo(np.int64)
# The row of an access without wrong indices: neutral elements of minimum, maximum and maximum.
_NOTHING_WRONG = (_WORD.max, _WORD.min, _WORD.min)
# Action of an access -> its description, with the name of the buffer.
_ACTIONS = {
    "reads": "reads from {}",
    "writes": "writes to {}",
    "updates": "updates {}",
    "passes": "passes the address of an element of {}",
}


def fresh_status(signature: Signature) -> Status:
    """Return a status without wrong indices."""
    return _nothing_wrong(len(signature.checks)).copy()


@cache
def _nothing_wrong(rows: int) -> Status:
    return np.full((rows, STATUS_WORDS), _NOTHING_WRONG, np.int64)


def require_in_bounds(signature: Signature, status: Status) -> None:
    """Raise OutOfBounds for the first access with a wrong index in `status`."""
    # Comparing bytes is the fastest way for most calls, in which nothing is wrong.
    if status.tobytes() == _nothing_wrong(len(status)).tobytes():
        return
    wrong = np.flatnonzero((status[:, :2] != _NOTHING_WRONG[:2]).any(axis=1)).tolist()
    if wrong:
        words = status[wrong[0]].tolist()
        access = signature.checks[wrong[0]]
        raise _out_of_bounds(signature, access, words, others=len(wrong) - 1)


def _out_of_bounds(
    signature: Signature, access: CheckedAccess, words: list[int], others: int
) -> OutOfBounds:
    # Sorted, since an index that wrapped around may be reported in the wrong order.
    low, high = sorted(words[:2])
    index = low if low < 0 else high
    extent = words[2]
    count = f"{extent} element{'' if extent == 1 else 's'}"
    if access.extent != str(extent):
        count += f" ({access.extent})"
    why = [f"the index is {access.index}"] if access.index != str(index) else []
    if low != high:
        why.append(f"wrong indices are from {low} to {high}")
    if others:
        accesses = "accesses were" if others > 1 else "access was"
        why.append(f"{others} other {accesses} out of bounds, too")
    origin = f" ({access.origin})" if access.origin else ""
    return OutOfBounds(
        f"{signature.name} {_ACTIONS[access.action].format(access.buffer)} out of bounds: "
        f"index {index} in dimension {access.dimension}, which has {count}",
        where=access.statement + origin,
        why="; ".join(why),
        remedy=_remedy(extent),
    )


def _remedy(extent: int) -> str:
    outputs = "the outputs of this call are undefined"
    if extent <= 0:
        return f"pass an array with elements, or guard the access by if_then_else; {outputs}"
    return (
        f"correct the data, the index or the loops, so that the index is from 0 to {extent - 1}, "
        f"or guard the access by if_then_else; {outputs}"
    )
