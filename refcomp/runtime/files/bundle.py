"""The members of a module file as one text of bytes.

The form is a line of JSON with the names and sizes of the members, then their data. The cache holds
this form. Objects that describe their functions hold it compressed: linked files with a zip archive
inside would be taken for module files.
"""

import json
import zlib
from collections.abc import Mapping

TOTAL_LIMIT = 512 << 20  # bytes of all members of a module
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


def compress_members(members: Mapping[str, bytes]) -> bytes:
    """Return `members` as one compressed sequence of bytes, which `decompress_members` reads."""
    return zlib.compress(join_members(members), level=9)


def decompress_members(data: bytes) -> dict[str, bytes]:
    """Return the members that `compress_members` wrote.

    Raises ValueError if the data are malformed, or would have more bytes than a module file may.
    """
    unpacker = zlib.decompressobj()
    try:
        joined = unpacker.decompress(data, TOTAL_LIMIT)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof:
        raise ValueError(f"it ends too early, or has more than {TOTAL_LIMIT} bytes")
    return split_members(joined)
