"""A reader of ELF files that nobody has checked. pyelftools parses; this file bounds its work.

Ensures: results were in the file. Time and memory are bounded by the file's size and the limits
below. pyelftools is imported when the first file is read, since the import takes 40 ms.
Refuses, with ValueError and the reason: files that are not 64-bit little-endian, files that end too
early, and tables larger than a linker writes.
Format: System V ABI, chapters "Object Files" and "Dynamic Linking".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    # pyelftools carries no types, so mypy takes these for Any.
    from elftools.construct import Container, Struct
    from elftools.elf.sections import Section

_T = TypeVar("_T")
_MAX_HEADERS = 1 << 14  # of segments or sections; linkers write some dozens
_MAX_NOTE_SEGMENTS = 16
_MAX_NOTES = 1 << 14
_MAX_SYMBOLS = 1 << 18  # and relocations
_CUBIN_OF_CUDA_13 = 8  # version in the header of a cubin
# Of all names together. In a damaged file, names may overlap, and be longer than the file.
_MAX_NAME_CHARACTERS = 1 << 26

# pyelftools has no checks of its own in many places, so damage appears as these errors.
_DAMAGE_ERRORS = (
    AssertionError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    struct.error,
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the file that a loader copies into memory."""

    address: int
    memory_size: int  # bytes
    file_offset: int  # bytes
    file_size: int  # bytes; the rest of `memory_size` is zeros


@dataclass(frozen=True, slots=True)
class Relocation:
    """An address in memory whose content a loader computes."""

    kind: int  # as the machine's ABI numbers them
    place: int  # the address
    addend: int


class ElfFile:
    """A 64-bit little-endian ELF file.

    The constructor raises ValueError if `data` does not begin with a header of such a file.
    """

    def __init__(self, data: bytes) -> None:
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415 (slow import)

        self._data = data
        with _damage_refused():
            self._elf = ELFFile(BytesIO(data))
        if self._elf.elfclass != 64 or not self._elf.little_endian:
            raise ValueError("it is not a 64-bit little-endian ELF file")
        # Names such as `EM_AMDGPU` and `ET_DYN`; numbers if pyelftools does not know them.
        # `ET_REL` is the kind of a file that was compiled and not linked.
        self.machine: str | int = self._elf["e_machine"]
        self.kind: str | int = self._elf["e_type"]
        self.abi_version: int = self._elf["e_ident"]["EI_ABIVERSION"]
        self.flags: int = self._elf["e_flags"]

    def loaded_segments(self) -> tuple[Segment, ...]:
        """Return the segments that a loader copies into memory. ValueError."""
        with _damage_refused():
            return tuple(
                Segment(
                    address=header["p_vaddr"],
                    memory_size=header["p_memsz"],
                    file_offset=header["p_offset"],
                    file_size=header["p_filesz"],
                )
                for header in self._segment_headers("PT_LOAD")
            )

    def content(self, segment: Segment) -> bytes:
        """Return the `memory_size` bytes of `segment` after loading. ValueError.

        A damaged file may have any `memory_size`, so the caller checks it first.
        """
        end = segment.file_offset + segment.file_size
        if end > len(self._data):
            raise ValueError("the file ends within a segment")
        if segment.file_size > segment.memory_size:
            raise ValueError("a segment is larger in the file than in memory")
        return self._data[segment.file_offset : end].ljust(segment.memory_size, b"\0")

    def notes(self, name: str, kind: int) -> list[bytes]:
        """Return the contents of all notes of that name and kind. ValueError."""
        from elftools.elf.notes import iter_notes  # noqa: PLC0415 (slow import)

        # pyelftools reads tables of unbounded length from the notes of core dumps.
        if self.kind == "ET_CORE":
            raise ValueError("it is a core dump")
        found = []
        with _damage_refused():
            headers = list(self._segment_headers("PT_NOTE"))
            for header in _at_most(_MAX_NOTE_SEGMENTS, headers, "segments of notes"):
                notes = iter_notes(self._elf, header["p_offset"], header["p_filesz"])
                for note in _at_most(_MAX_NOTES, notes, "notes"):
                    if (note["n_name"], note["n_type"]) == (name, kind):
                        found.append(bytes(note["n_descdata"]))
        return found

    def check_sections(self) -> None:
        """Raise ValueError if a section reaches beyond the file, as in a truncated one."""
        with _damage_refused():
            self._section_headers()

    def symbols(self) -> dict[str, int]:
        """Return the values of the dynamic symbols. ValueError."""
        with _damage_refused():
            section = self._first_section("SHT_DYNSYM")
            if section is None:
                raise ValueError("it has no dynamic symbols")
            symbols = _at_most(_MAX_SYMBOLS, section.iter_symbols(), "symbols")
            values = ((symbol.name, symbol["st_value"]) for symbol in symbols)
            return dict(_bounded(values))

    def relocations(self) -> tuple[Relocation, ...]:
        """Return the relocations that have addends. ValueError."""
        with _damage_refused():
            return tuple(_at_most(_MAX_SYMBOLS, self._relocations(), "relocations"))

    def needed_libraries(self) -> tuple[str, ...]:
        """Return the file names of the libraries that the dynamic loader loads too. ValueError."""
        with _damage_refused():
            section = self._first_section("SHT_DYNAMIC")
            tags = section.iter_tags("DT_NEEDED") if section is not None else ()
            return tuple(
                name for name, _ in _bounded((tag.needed, tag) for tag in tags)
            )

    def _relocations(self) -> Iterator[Relocation]:
        from elftools.elf.relocation import RelocationTable  # noqa: PLC0415 (slow import)

        for _, header in self._section_headers():
            if header["sh_type"] != "SHT_RELA":
                continue
            table = RelocationTable(
                self._elf, header["sh_offset"], header["sh_size"], is_rela=True
            )
            if header["sh_entsize"] != table.entry_size:
                raise ValueError(f"relocations of {header['sh_entsize']} bytes")
            for entry in table.iter_relocations():
                yield Relocation(
                    entry["r_info_type"], entry["r_offset"], entry["r_addend"]
                )

    # pyelftools makes an object for each segment and section, and reads whole tables for some of
    # them. So the methods below parse headers only, and make an object for a requested section.

    def _segment_headers(self, kind: str) -> Iterator[Container]:
        elf = self._elf
        table = self._table("ph", elf.num_segments(), elf.structs.Elf_Phdr)
        return (header for header in table if header["p_type"] == kind)

    def _section_headers(self) -> Iterator[tuple[int, Container]]:
        """Return sections' numbers and headers, after checking sizes."""
        elf = self._elf
        table = self._table("sh", elf.num_sections(), elf.structs.Elf_Shdr)
        for header in table:
            size = header["sh_size"]
            end = header["sh_offset"] + size
            if header["sh_type"] != "SHT_NOBITS" and end > len(self._data):
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

    def _first_section(self, kind: str) -> Section | None:
        for number, header in self._section_headers():
            if header["sh_type"] == kind:
                return self._elf.get_section(number)
        return None

    def _table(self, prefix: str, count: int, form: Struct) -> list[Container]:
        from elftools.common.utils import struct_parse  # noqa: PLC0415 (slow import)

        start = self._elf[f"e_{prefix}off"]
        size = self._elf[f"e_{prefix}entsize"]
        # Entries of size 0 would overlap, and the table could have any number of them.
        if count and size != form.sizeof():
            raise ValueError(f"{prefix}entsize is {size}, not {form.sizeof()}")
        if count > _MAX_HEADERS:
            raise ValueError(f"a table of {count} entries")
        stream = self._elf.stream
        return [
            struct_parse(form, stream, start + number * size) for number in range(count)
        ]


def cubin_arch(data: bytes) -> int:
    """Return the number of the architecture that a cubin is for: 90 for sm_90.

    Raises ValueError if `data` is not a whole cubin.
    """
    file = ElfFile(data)
    if file.machine != "EM_CUDA":
        raise ValueError("it is not machine code for NVIDIA GPUs")
    file.check_sections()
    # CUDA 13 writes version 8 of the format, which has the number one byte further left.
    shift = 8 if file.abi_version >= _CUBIN_OF_CUDA_13 else 0
    return file.flags >> shift & 0xFF


def needed_libraries(data: bytes) -> tuple[str, ...]:
    """Return `ElfFile.needed_libraries`; () if the file is damaged or not an ELF file."""
    try:
        return ElfFile(data).needed_libraries()
    except ValueError:
        return ()


def _at_most(maximum: int, items: Iterable[_T], what: str) -> Iterator[_T]:
    remaining = iter(items)
    yield from islice(remaining, maximum)
    if next(remaining, None) is not None:
        raise ValueError(f"more than {maximum} {what}")


def _bounded(items: Iterable[tuple[str, _T]]) -> Iterator[tuple[str, _T]]:
    """Yield the pairs of a name and a value. ValueError if the names are too long in all."""
    characters = 0
    for name, value in items:
        characters += len(name)
        if characters > _MAX_NAME_CHARACTERS:
            raise ValueError(f"names of more than {_MAX_NAME_CHARACTERS} characters")
        yield name, value


@contextmanager
def _damage_refused() -> Iterator[None]:
    """Turn each exception that pyelftools raises for a damaged file into ValueError."""
    from elftools.common.exceptions import ELFError  # noqa: PLC0415 (slow import)
    from elftools.construct import ConstructError  # noqa: PLC0415

    try:
        yield
    except (ELFError, ConstructError) as error:
        raise ValueError(str(error)) from error
    except _DAMAGE_ERRORS as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
