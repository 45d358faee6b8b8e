"""Types of memory accesses in a race, and which of them conflict."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class AccessType(StrEnum):
    """The type of an access, which decides what it races with."""

    READ = "read"
    ATOMIC_READ = "atomic read"
    # An update that first compares memory with what an earlier load returned. LLVM makes the
    # updates that a GPU lacks from a plain load and a compare-and-swap.
    COMPARE_SWAP = "compare-and-swap"
    # An atomic read-modify-write. Also an atomic store, where machine code marks these.
    UPDATE = "update"
    WRITE = "write"
    # Atomic only for the waves of one group. Other groups see a plain read or write.
    GROUP_ATOMIC_READ = "atomic read of a group"
    GROUP_UPDATE = "update of a group"


# The types that an access of each type conflicts with.
_CONFLICTING = {
    AccessType.READ: (AccessType.WRITE, AccessType.UPDATE),
    AccessType.ATOMIC_READ: (AccessType.WRITE,),
    AccessType.COMPARE_SWAP: (AccessType.WRITE,),
    AccessType.UPDATE: (AccessType.WRITE, AccessType.READ),
    AccessType.WRITE: (
        AccessType.WRITE,
        AccessType.READ,
        AccessType.UPDATE,
        AccessType.ATOMIC_READ,
        AccessType.COMPARE_SWAP,
    ),
}
# The type of an access as waves of its own group see it, and as other groups see it.
_SEEN_BY_GROUP = {
    AccessType.GROUP_ATOMIC_READ: AccessType.ATOMIC_READ,
    AccessType.GROUP_UPDATE: AccessType.UPDATE,
}
_SEEN_BY_OTHERS = {
    AccessType.GROUP_ATOMIC_READ: AccessType.READ,
    AccessType.GROUP_UPDATE: AccessType.WRITE,
}
# The verbs of messages.
PRESENT_TENSE = {
    AccessType.READ: "reads",
    AccessType.ATOMIC_READ: "reads",
    AccessType.GROUP_ATOMIC_READ: "reads",
    AccessType.WRITE: "writes",
    AccessType.GROUP_UPDATE: "writes",
    AccessType.UPDATE: "updates",
    AccessType.COMPARE_SWAP: "updates",
}
PAST_TENSE = {
    AccessType.READ: "read",
    AccessType.ATOMIC_READ: "read",
    AccessType.GROUP_ATOMIC_READ: "read",
    AccessType.WRITE: "wrote",
    AccessType.GROUP_UPDATE: "wrote",
    AccessType.UPDATE: "updated",
    AccessType.COMPARE_SWAP: "updated",
}


class Conflict(NamedTuple):
    """Accesses with which an access of some type races if nothing orders them."""

    access_type: AccessType
    # True: accesses of the same group do not conflict.
    is_only_between_groups: bool


def _conflicts(access_type: AccessType) -> list[Conflict]:
    by_group = _CONFLICTING[_SEEN_BY_GROUP.get(access_type, access_type)]
    by_others = _CONFLICTING[_SEEN_BY_OTHERS.get(access_type, access_type)]
    found = []
    for other in AccessType:
        if _SEEN_BY_OTHERS.get(other, other) in by_others:
            conflicts_in_group = _SEEN_BY_GROUP.get(other, other) in by_group
            found.append(Conflict(other, not conflicts_in_group))
    return found


CONFLICTS = {access_type: _conflicts(access_type) for access_type in AccessType}
