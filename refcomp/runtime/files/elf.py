"""Reads from a shared object which libraries the dynamic loader will want beside it.

Understands 64-bit little-endian ELF, the format of every host refcomp compiles for; of anything
else nothing is known. Format: System V ABI, chapters "Object Files" and "Dynamic Linking".
"""

import struct
from collections.abc import Iterator

_MAGIC = b"\x7fELF\x02\x01"
_LOADED, _DYNAMIC = 1, 2  # types of program headers
_END, _NEEDED, _STRING_TABLE = 0, 1, 5  # tags of dynamic entries


def needed_libraries(data: bytes) -> tuple[str, ...]:
    """The file names of the needed libraries, in order; () for what cannot be read."""
    try:
        return tuple(_needed(data)) if data.startswith(_MAGIC) else ()
    except (struct.error, ValueError):
        return ()


def _needed(data: bytes) -> Iterator[str]:
    segments = list(_segments(data))
    for kind, offset, _, size in segments:
        if kind != _DYNAMIC:
            continue
        entries = list(_dynamic_entries(data[offset : offset + size]))
        tables = [value for tag, value in entries if tag == _STRING_TABLE]
        strings = data[_file_offset(segments, tables[0]) :] if tables else b""
        for tag, value in entries:
            if tag == _NEEDED:
                yield strings[value : strings.index(b"\0", value)].decode()


def _segments(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Type, offset in the file, address and size of each program header."""
    (start,) = struct.unpack_from("<Q", data, 32)
    entry_size, count = struct.unpack_from("<HH", data, 54)
    for number in range(count):
        fields = struct.unpack_from("<IIQQQQ", data, start + number * entry_size)
        yield fields[0], fields[2], fields[3], fields[5]


def _dynamic_entries(section: bytes) -> Iterator[tuple[int, int]]:
    for tag, value in struct.iter_unpack("<qQ", section):
        if tag == _END:
            return
        yield tag, value


def _file_offset(segments: list[tuple[int, int, int, int]], address: int) -> int:
    for kind, offset, start, size in segments:
        if kind == _LOADED and start <= address < start + size:
            return offset + address - start
    raise ValueError("an address outside all segments")
