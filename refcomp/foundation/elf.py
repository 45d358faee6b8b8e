"""ELF files, from bytes that nobody vouches for. pyelftools parses them; this file bounds its work.

Ensures: what is returned was in the file; work and memory are bounded by the file's size and the
limits below. pyelftools is imported when a file is read, not before: that takes 40 ms.
Refuses, by ValueError with the reason: other files than 64-bit little-endian ones, files that end
too early, and tables larger than a linker writes.
Format: System V ABI, chapters "Object Files" and "Dynamic Linking".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any, TypeVar

_T = TypeVar("_T")
_MAX_HEADERS = 1 << 14  # of segments or sections; linkers write some dozens
_MAX_NOTE_SEGMENTS = 16
_MAX_NOTES = 1 << 14
_MAX_SYMBOLS = 1 << 18  # and relocations
_MAX_NAME_CHARACTERS = (
    1 << 26
)  # all names together: in a damaged file they may share their ends


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the file that a loader places at `address`; sizes are in bytes."""

    address: int
    memory_size: int
    file_offset: int
    file_size: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """A place that a loader fills in. The machine's ABI defines the numbers `kind`."""

    kind: int
    place: int
    addend: int


class ElfFile:
    """A 64-bit little-endian ELF file. ValueError if `data` has no header of one.

    Attributes:
        machine: The processor, as `EM_AMDGPU`; a number if pyelftools does not know it.
        kind: As `ET_REL` (compiled, not linked) or `ET_DYN`; a number if it is not known.
        abi_version: The version of the machine's ABI.
    """

    def __init__(self, data: bytes) -> None:
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415 (takes long)

        self._data = data
        with _damage_refused():
            self._elf = ELFFile(BytesIO(data))
        if self._elf.elfclass != 64 or not self._elf.little_endian:
            raise ValueError("it is not a 64-bit little-endian ELF file")
        self.machine: str | int = self._elf["e_machine"]
        self.kind: str | int = self._elf["e_type"]
        self.abi_version: int = self._elf["e_ident"]["EI_ABIVERSION"]

    def loaded_segments(self) -> tuple[Segment, ...]:
        """Return the segments that a loader places in memory. ValueError."""
        with _damage_refused():
            return tuple(
                Segment(
                    one["p_vaddr"], one["p_memsz"], one["p_offset"], one["p_filesz"]
                )
                for one in self._segment_headers("PT_LOAD")
            )

    def content(self, segment: Segment) -> bytes:
        """Return what `segment` is loaded with, `memory_size` bytes. ValueError.

        Check `memory_size` first: a damaged file may ask for any number of bytes.
        """
        end = segment.file_offset + segment.file_size
        if end > len(self._data):
            raise ValueError("the file ends within a segment")
        if segment.file_size > segment.memory_size:
            raise ValueError("a segment is larger in the file than in memory")
        return self._data[segment.file_offset : end].ljust(segment.memory_size, b"\0")

    def note(self, name: str, kind: int) -> bytes | None:
        """Return the content of the first note of that name and kind. ValueError."""
        from elftools.elf.notes import iter_notes  # noqa: PLC0415 (takes long)

        if self.kind == "ET_CORE":  # whose notes hold tables without bounds
            raise ValueError("it is a core dump")
        with _damage_refused():
            headers = list(self._segment_headers("PT_NOTE"))
            for header in _at_most(_MAX_NOTE_SEGMENTS, headers, "segments of notes"):
                notes = iter_notes(self._elf, header["p_offset"], header["p_filesz"])
                for note in _at_most(_MAX_NOTES, notes, "notes"):
                    if (note["n_name"], note["n_type"]) == (name, kind):
                        return bytes(note["n_descdata"])
        return None

    def symbols(self) -> dict[str, int]:
        """Return the values of the dynamic symbols. ValueError."""
        with _damage_refused():
            section = self._first_section("SHT_DYNSYM")
            if section is None:
                raise ValueError("it has no dynamic symbols")
            symbols = _at_most(_MAX_SYMBOLS, section.iter_symbols(), "symbols")
            return dict(_named((symbol.name, symbol["st_value"]) for symbol in symbols))

    def relocations(self) -> tuple[Relocation, ...]:
        """Return the relocations that have addends. ValueError."""
        with _damage_refused():
            return tuple(_at_most(_MAX_SYMBOLS, self._relocations(), "relocations"))

    def needed_libraries(self) -> tuple[str, ...]:
        """Return the file names of the libraries that the dynamic loader wants. ValueError."""
        with _damage_refused():
            section = self._first_section("SHT_DYNAMIC")
            tags = section.iter_tags("DT_NEEDED") if section is not None else ()
            return tuple(name for name, _ in _named((tag.needed, tag) for tag in tags))

    def _relocations(self) -> Iterator[Relocation]:
        from elftools.elf.relocation import RelocationTable  # noqa: PLC0415 (takes long)

        for _, header in self._section_headers():
            if header["sh_type"] != "SHT_RELA":
                continue
            table = RelocationTable(
                self._elf, header["sh_offset"], header["sh_size"], True
            )
            if header["sh_entsize"] != table.entry_size:
                raise ValueError(f"relocations of {header['sh_entsize']} bytes")
            for one in table.iter_relocations():
                yield Relocation(one["r_info_type"], one["r_offset"], one["r_addend"])

    # pyelftools makes an object of each entry of a table, for some kinds after reading another
    # table whole. So only the headers are parsed here, and objects made of what is asked for.

    def _segment_headers(self, kind: str) -> Iterator[Any]:
        elf = self._elf
        table = self._table("ph", elf.num_segments(), elf.structs.Elf_Phdr)
        return (header for header in table if header["p_type"] == kind)

    def _section_headers(self) -> Iterator[tuple[int, Any]]:
        """Return sections' numbers and headers; each section ends within the file."""
        elf = self._elf
        table = self._table("sh", elf.num_sections(), elf.structs.Elf_Shdr)
        for header in table:
            size = header["sh_size"]
            if header["sh_type"] != "SHT_NOBITS" and header["sh_offset"] + size > len(
                self._data
            ):
                raise ValueError(f"a section of {size} bytes ends behind the file")
            if header["sh_type"] in ("SHT_SYMTAB", "SHT_DYNSYM"):
                self._check_symbols(size, header["sh_entsize"])
        return enumerate(table)

    def _check_symbols(self, size: int, entry_size: int) -> None:
        expected = self._elf.structs.Elf_Sym.sizeof()
        if entry_size != expected:
            raise ValueError(
                f"symbols have an entry size of {entry_size}, not {expected}"
            )
        if size % expected:
            raise ValueError(
                f"symbols take {size} bytes, not a multiple of entry size {expected}"
            )

    def _first_section(self, kind: str) -> Any:
        for number, header in self._section_headers():
            if header["sh_type"] == kind:
                return self._elf.get_section(number)
        return None

    def _table(self, prefix: str, count: int, form: Any) -> list[Any]:
        from elftools.common.utils import struct_parse  # noqa: PLC0415 (takes long)

        start, size = self._elf[f"e_{prefix}off"], self._elf[f"e_{prefix}entsize"]
        if (
            count and size != form.sizeof()
        ):  # entries of no length would be read for ever
            raise ValueError(f"{prefix}entsize is {size}, not {form.sizeof()}")
        if count > _MAX_HEADERS:
            raise ValueError(f"a table of {count} entries")
        stream = self._elf.stream
        return [
            struct_parse(form, stream, start + number * size) for number in range(count)
        ]


def needed_libraries(data: bytes) -> tuple[str, ...]:
    """Return `ElfFile.needed_libraries` in order; () for what is not such a file, or damaged."""
    try:
        return ElfFile(data).needed_libraries()
    except ValueError:
        return ()


def _at_most(most: int, items: Iterable[_T], what: str) -> Iterator[_T]:
    remaining = iter(items)
    yield from islice(remaining, most)
    if next(remaining, None) is not None:
        raise ValueError(f"more than {most} {what}")


def _named(items: Iterable[tuple[str, _T]]) -> Iterator[tuple[str, _T]]:
    """Yield the items as long as their names have a bearable length."""
    characters = 0
    for name, value in items:
        characters += len(name)
        if characters > _MAX_NAME_CHARACTERS:
            raise ValueError(f"names of more than {_MAX_NAME_CHARACTERS} characters")
        yield name, value


@contextmanager
def _damage_refused() -> Iterator[None]:
    """Raise ValueError in place of all that pyelftools raises for a damaged file."""
    from elftools.common.exceptions import ELFError  # noqa: PLC0415 (takes long)
    from elftools.construct import ConstructError  # noqa: PLC0415

    programming = (
        AssertionError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
    )
    try:
        yield
    except (ELFError, ConstructError) as error:
        raise ValueError(str(error)) from error
    except (*programming, struct.error) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
