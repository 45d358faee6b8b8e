"""The descriptions of functions in the libraries of this process.

An object that was saved for a target with `-system-lib` describes its functions in a note of ELF
(`templates/llvm/linked_description.j2`). A library that is linked from such objects has all their
notes in memory. No code runs when it is loaded, and the order of loading does not matter.

Ensures: a library with descriptions stays loaded from the first look at it, since functions of
modules point into it. Libraries that `load_shared_object` loaded from memory are left out: their
functions belong to a module already.
Format: System V ABI, chapter "Note Section"; `man dl_iterate_phdr`.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from typing import Any

from refcomp.foundation.records import record

_NAME = b"refcomp\0"
_TYPE = 1
_HEAD = struct.Struct("=III")  # bytes of the name, bytes of the contents, type
_PT_NOTE = 4
# The folder of the files in memory from which `load_shared_object` loads.
_IN_MEMORY = "/proc/self/fd/"


@record
class LinkedObjects:
    """A library with objects that describe their functions."""

    file: str  # the path by which it was loaded
    library: ctypes.CDLL
    descriptions: tuple[bytes, ...]  # of its objects, in the order of linking


class _SegmentHeader(ctypes.Structure):
    """The header of a segment, Elf64_Phdr."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("address", ctypes.c_uint64),  # from the library's base
        ("physical_address", ctypes.c_uint64),
        ("file_size", ctypes.c_uint64),  # bytes
        ("memory_size", ctypes.c_uint64),  # bytes
        ("alignment", ctypes.c_uint64),  # bytes
    )


class _LibraryInfo(ctypes.Structure):
    """The beginning of dl_phdr_info."""

    _fields_ = (
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.POINTER(_SegmentHeader)),
        ("count", ctypes.c_uint16),
    )


_Visit = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(_LibraryInfo), ctypes.c_size_t, ctypes.c_void_p
)


def linked_objects() -> list[LinkedObjects]:
    """Return the libraries that describe functions, in the order of loading.

    A library that another thread unloads at this moment is left out.
    """
    found = []
    for file, notes in _notes_of_libraries():
        descriptions = tuple(text for segment in notes for text in _described(*segment))
        if not descriptions or file.startswith(_IN_MEMORY):
            continue
        try:
            library = _kept_library(file)
        except OSError:
            continue
        found.append(LinkedObjects(file or sys.executable, library, descriptions))
    return found


def _kept_library(file: str) -> ctypes.CDLL:
    """Return a loaded library, which stays from now on. '' is the program itself."""
    return ctypes.CDLL(file or None, mode=os.RTLD_NOW | os.RTLD_NOLOAD)


def _notes_of_libraries() -> list[tuple[str, list[tuple[bytes, int]]]]:
    """Return for each library its path, and its segments of notes with their alignments."""
    found: list[tuple[str, list[tuple[bytes, int]]]] = []

    def visit(pointer: Any, _size: int, _data: object) -> int:
        info = pointer.contents
        headers = [info.headers[place] for place in range(info.count)]
        notes = [
            (
                ctypes.string_at(info.base + header.address, header.memory_size),
                header.alignment,
            )
            for header in headers
            if header.kind == _PT_NOTE
        ]
        found.append((os.fsdecode(info.name or b""), notes))
        return 0

    # The loader holds a lock meanwhile. A thread that waits for the interpreter lock here, while
    # another one has it and waits for the loader's lock, would wait for ever. So keep it.
    iterate = ctypes.PyDLL(None).dl_iterate_phdr
    iterate.argtypes = [_Visit, ctypes.c_void_p]
    iterate(_Visit(visit), None)
    return found


def _described(notes: bytes, alignment: int) -> Iterator[bytes]:
    """Yield the descriptions in a segment of notes, of which some may be damaged."""
    step = 8 if alignment == 8 else 4
    begin = 0
    while begin + _HEAD.size <= len(notes):
        name_size, size, kind = _HEAD.unpack_from(notes, begin)
        name = begin + _HEAD.size
        contents = _rounded_up(name + name_size, step)
        if notes[name : name + name_size] == _NAME and kind == _TYPE:
            yield notes[contents : contents + size]
        begin = _rounded_up(contents + size, step)


def _rounded_up(number: int, step: int) -> int:
    return -(-number // step) * step
