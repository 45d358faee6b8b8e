"""The members of a module file as one text of bytes, for the cache, which compresses nothing.

The form is a line of JSON with the names and sizes of the members, then their data.
"""

import json
from collections.abc import Mapping

_END = b"\n"


def join_members(members: Mapping[str, bytes]) -> bytes:
    """Return `members` as one sequence of bytes, which `split_members` reads back."""
    index = json.dumps([[name, len(data)] for name, data in members.items()])
    return b"".join([index.encode(), _END, *members.values()])


def split_members(data: bytes) -> dict[str, bytes]:
    """Return the members that `join_members` wrote.

    Raises ValueError if the data are malformed.
    """
    head, end, rest = data.partition(_END)
    members: dict[str, bytes] = {}
    begin = 0
    try:
        for name, size in json.loads(head):
            members[name] = rest[begin : begin + size]
            begin += size
    except (TypeError, RecursionError) as error:
        raise ValueError("malformed index of members") from error
    if not end or begin != len(rest):
        raise ValueError("the members have other sizes than the index says")
    return members
