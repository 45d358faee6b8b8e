"""The descriptions of functions in the libraries of this process.

An object that was saved for a target with `-system-lib` describes its functions in a note of ELF
(`templates/llvm/linked_description.j2`). A library that is linked from such objects has all their
notes in memory. No code runs when it is loaded, and the order of loading does not matter.

Ensures: a library with descriptions stays loaded from the first look at it, since functions of
modules point into it. Libraries that `load_shared_object` loaded from memory are left out: their
functions belong to a module already.

`dl_iterate_phdr` is not called, though it lists libraries: it holds the loader's lock while its
callback runs. If the callback is in Python, it may wait there for the interpreter lock, which
another thread keeps while it waits for the loader's lock, as in an import. So the list of the
kernel is read instead, and each library is held while it is looked at.
Format: System V ABI, chapters "Program Header" and "Note Section"; `man dladdr`, `man dlinfo`.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from refcomp.foundation.records import record

_NAME = b"refcomp\0"
_TYPE = 1
_HEAD = struct.Struct("=III")  # bytes of the name, bytes of the contents, type
# The folder of the files in memory from which `load_shared_object` loads.
_IN_MEMORY = "/proc/self/fd/"

_MAPPINGS = Path("/proc/self/maps")
_MAGIC = b"\x7fELF"
# The header of a file, Elf64_Ehdr: the offset, and the number of its segment headers.
_FILE_HEADER = struct.Struct("=32xQ16xH6x")
# Elf64_Phdr: kind, address from the library's base, bytes in memory, alignment.
_SEGMENT_HEADER = struct.Struct("=I12xQ16xQQ")
_PT_LOAD = 1
_PT_NOTE = 4


@record
class LinkedObjects:
    """A library with objects that describe their functions."""

    file: str  # the path by which it was loaded
    library: ctypes.CDLL
    descriptions: tuple[bytes, ...]  # of its objects, in the order of linking


class _AddressInfo(ctypes.Structure):
    """The result of dladdr, Dl_info."""

    _fields_ = (
        ("file", ctypes.c_char_p),  # of the library that has the address
        ("begin", ctypes.c_void_p),  # of the library in memory
        ("symbol", ctypes.c_char_p),
        ("symbol_address", ctypes.c_void_p),
    )


class _LinkMap(ctypes.Structure):
    """The beginning of the loader's record of a library, to which a handle points."""

    _fields_ = (
        ("base", ctypes.c_size_t),  # is added to the addresses in the file
        ("file", ctypes.c_char_p),  # empty for the program itself
        ("dynamic_section", ctypes.c_void_p),
        ("next", ctypes.c_void_p),  # the record of the library that was loaded next
    )


def linked_objects() -> list[LinkedObjects]:
    """Return the libraries that describe functions, in the order of loading.

    A library that another thread loads or unloads at this moment may be left out.
    """
    found = []
    for library in _held_libraries():
        # The name in the record is safe to read while the library is held.
        file = os.fsdecode(_link_map(library).file or b"")
        notes = _notes(library)
        descriptions = tuple(text for segment in notes for text in _described(*segment))
        if descriptions and not file.startswith(_IN_MEMORY):
            found.append(LinkedObjects(file or sys.executable, library, descriptions))
        else:
            _release(library)
    return found


def _held_libraries() -> list[ctypes.CDLL]:
    """Return all libraries in the order of loading. None is unloaded before `_release`."""
    program = ctypes.CDLL(None)
    held = {program._handle: program}
    for file in _loaded_files():
        try:
            library = ctypes.CDLL(file, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        except OSError:  # it is the program, or was unloaded meanwhile
            continue
        if library._handle in held:
            _release(library)
        held.setdefault(library._handle, library)
    in_order = []
    handle = program._handle
    # Records of libraries that are not held may vanish, and so are not read.
    while handle in held:
        in_order.append(held.pop(handle))
        handle = _link_map(in_order[-1]).next
    return [*in_order, *held.values()]


def _loaded_files() -> list[str]:
    """Return the paths by which the libraries were loaded, each once, by address."""
    files: dict[str, None] = {}
    for line in _MAPPINGS.read_bytes().splitlines():
        addresses, _, offset, *_ = line.split()
        info = _address_info(int(addresses.partition(b"-")[0], 16))
        if int(offset, 16) == 0 and info is not None and info.file:
            files[os.fsdecode(info.file)] = None
    return list(files)


def _address_info(address: int) -> _AddressInfo | None:
    """Return the library that has an address; None if no library has it."""
    info = _AddressInfo()
    place = ctypes.c_void_p(address)
    found = ctypes.CDLL(None).dladdr(place, ctypes.byref(info))
    return info if found else None


def _link_map(library: ctypes.CDLL) -> _LinkMap:
    return _LinkMap.from_address(library._handle)


def _release(library: ctypes.CDLL) -> None:
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(library._handle))


def _notes(library: ctypes.CDLL) -> list[tuple[bytes, int]]:
    """Return the segments of notes of a held library with their alignments."""
    loaded = _link_map(library)
    info = _address_info(loaded.dynamic_section or 0)
    if info is None or ctypes.string_at(info.begin, len(_MAGIC)) != _MAGIC:
        return []
    header = ctypes.string_at(info.begin, _FILE_HEADER.size)
    offset, count = _FILE_HEADER.unpack(header)
    table = ctypes.string_at(info.begin + offset, count * _SEGMENT_HEADER.size)
    headers = list(_SEGMENT_HEADER.iter_unpack(table))
    mapped = [
        range(address, address + size + 1)
        for kind, address, size, _ in headers
        if kind == _PT_LOAD
    ]
    return [
        (ctypes.string_at(loaded.base + address, size), alignment)
        for kind, address, size, alignment in headers
        if kind == _PT_NOTE
        and any(address in place and address + size in place for place in mapped)
    ]


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
