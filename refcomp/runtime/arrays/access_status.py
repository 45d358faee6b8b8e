"""The array in which compiled code notes wrong indices, and the error that is made of it.

A function that was built with the build option `check_bounds` takes, after its parameters, an i64
array with a row of three words for each checked access (`Signature.checks`): the least wrong index,
the greatest, and the extent of the dimension. Each call has an array of its own, so that calls may
run at once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import STATUS_WORDS, CheckedAccess, Signature
from refcomp.foundation.errors import OutOfBounds

_WORD = np.iinfo(np.int64)
# What a row holds where nothing was wrong: no index can be below the one and above the other.
_NOTHING_WRONG = (_WORD.max, _WORD.min, _WORD.min)
_DONE_TO = {
    "reads": "reads from {}",
    "writes": "writes to {}",
    "updates": "updates {}",
    "passes": "passes the address of an element of {}",
}


def fresh_status(signature: Signature) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a status that says that nothing was wrong."""
    return _nothing_wrong(len(signature.checks)).copy()


@cache
def _nothing_wrong(rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.full((rows, STATUS_WORDS), _NOTHING_WRONG, np.int64)


def require_in_bounds(
    signature: Signature, status: np.ndarray[Any, np.dtype[np.int64]]
) -> None:
    """Raise OutOfBounds for the first access whose row in `status` says that it was wrong."""
    if (
        status.tobytes() == _nothing_wrong(len(status)).tobytes()
    ):  # what most calls need
        return
    wrong = np.flatnonzero((status[:, :2] != _NOTHING_WRONG[:2]).any(axis=1)).tolist()
    if wrong:
        words, others = status[wrong[0]].tolist(), len(wrong) - 1
        raise _out_of_bounds(signature, signature.checks[wrong[0]], words, others)


def _out_of_bounds(
    signature: Signature, access: CheckedAccess, words: list[int], others: int
) -> OutOfBounds:
    low, high = sorted(words[:2])
    index = low if low < 0 else high
    extent = words[2]
    count = f"{extent} element{'' if extent == 1 else 's'}"
    if access.extent != str(extent):
        count += f" ({access.extent})"
    why = [f"the index is {access.index}"] if access.index != str(index) else []
    if low != high:
        why.append(f"wrong indices lie from {low} to {high}")
    if others:
        why.append(
            f"{others} other access{'es were' if others > 1 else ' was'} out of bounds, too"
        )
    origin = f" ({access.origin})" if access.origin else ""
    return OutOfBounds(
        f"{signature.name} {_DONE_TO[access.action].format(access.buffer)} out of bounds: "
        f"index {index} in dimension {access.dimension}, which has {count}",
        where=access.statement + origin,
        why="; ".join(why),
        remedy=_remedy(extent),
    )


def _remedy(extent: int) -> str:
    outputs = "the outputs of this call are undefined"
    if extent <= 0:
        return f"pass an array that has elements, or guard the access by if_then_else; {outputs}"
    return (
        f"correct the data, the index or the loops, so that it lies in 0 to {extent - 1}, or guard "
        f"the access by if_then_else; {outputs}"
    )
