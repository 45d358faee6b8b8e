"""Code objects as a GPU's loader sees them: what lies where in memory, and where kernels begin.

Needs a whole ELF file for AMD GPUs in `data`. Ensures: what is given was there, within the file.
Refuses, by DamagedCode, what is no such file, is truncated, has no kernels or asks of the loader
what it does not do (relocations to symbols of other objects).
Format: LLVM's "User Guide for AMDGPU Backend", sections on code objects and kernel descriptors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.local_memory import LOCAL_POINTER, POINTER_BYTES
from refcomp.foundation.msgpack import read_msgpack
from refcomp.foundation.unlinked import refuse_unlinked

_METADATA = 32  # type of notes
_DESCRIPTOR_BYTES = 64
_RELATIVE = 13
# Bytes in front of a kernel that finds arguments in registers, for who does not put them there.
_OTHER_ENTRY = 256
LARGEST_BYTES = 1 << 30  # of memory; more is damage, not code
_MOST_COUNTED = 1 << 20  # of an argument's bytes, or a group's threads; more is damage
# What is filled in, in bytes.
_FILLED_SIZES = {
    LOCAL_POINTER: POINTER_BYTES,
    "hidden_grid_dims": 2,
    "hidden_dynamic_lds_size": 4,
    **{f"hidden_block_count_{axis}": 4 for axis in "xyz"},
    **{f"hidden_group_size_{axis}": 2 for axis in "xyz"},
}
# Of the tables of an ELF file; compilers make some dozens.
_SEGMENT_BYTES, _SECTION_BYTES, _MOST_ENTRIES = 56, 64, 1 << 14
_INSTALL = "pip install 'refcomp[emulator]'"


class DamagedCode(UserError):
    """It is no code object, or not a whole one."""


@dataclass(frozen=True, slots=True)
class Argument:
    """`kind` is `global_buffer`, `by_value`, `dynamic_shared_pointer` (shared memory that whoever
    launches gives the size of), or `hidden_...`: what the loader fills in. `alignment` is that of
    what a shared pointer points to, in bytes; `type_name` is that of the source, or empty."""

    name: str
    offset: int
    size: int
    kind: str
    is_read_only: bool = False
    alignment: int = 1
    type_name: str = ""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The 64 bytes that tell a GPU how to begin a kernel."""

    shared_bytes: int
    private_bytes: int
    kernarg_bytes: int
    entry_offset: int
    rsrc3: int
    rsrc1: int
    rsrc2: int
    properties: int
    preload: int

    @property
    def vgpr_granules(self) -> int:
        """Vector registers of a lane, accumulators included, in units of the GPU."""
        return (self.rsrc1 & 63) + 1

    @property
    def first_accumulator(self) -> int:
        """The number of the vector register that `a0` is."""
        return ((self.rsrc3 & 63) + 1) * 4

    @property
    def user_sgprs(self) -> int:
        return self.rsrc2 >> 1 & 31

    @property
    def preloaded(self) -> tuple[int, int]:
        """How many words of the arguments stand in registers when waves begin, and the first."""
        return self.preload & 127, self.preload >> 7

    @property
    def float_mode(self) -> int:
        """Rounding, denormals, DX10_CLAMP and IEEE_MODE, as the MODE register has them."""
        clamp, ieee = self.rsrc1 >> 21 & 1, self.rsrc1 >> 23 & 1
        return self.rsrc1 >> 12 & 0xFF | clamp << 8 | ieee << 9

    @property
    def is_on_pairs(self) -> bool:
        """Whether a group's waves are spread over two compute units with a cache each: RDNA."""
        return bool(self.rsrc1 >> 29 & 1)


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """`entry` is an address, behind what is there for a driver that puts no arguments into
    registers; `block` is the only size of a group that it takes, if it has one."""

    name: str
    entry: int
    descriptor_address: int
    descriptor: Descriptor
    arguments: tuple[Argument, ...]
    most_threads: int
    block: tuple[int, ...]
    has_dynamic_stack: bool


@dataclass(frozen=True, slots=True)
class CodeObject:
    """`segments` are pairs of an address and bytes; `pointers` are pairs of an address where
    a pointer lies and what it points to: both count from where the object is loaded."""

    mcpu: str
    size: int
    segments: tuple[tuple[int, bytes], ...]
    pointers: tuple[tuple[int, int], ...]
    kernels: dict[str, KernelEntry]

    def kernel(self, name: str) -> KernelEntry:
        """Return the kernel of that name. UserError."""
        found = self.kernels.get(name)
        if found is None:
            known = ", ".join(sorted(self.kernels)) or "none"
            remedy = f"name one of: {known}"
            raise UserError(f"the code object has no kernel {name!r}", remedy=remedy)
        return found


def read_code_object(data: bytes) -> CodeObject:
    """What the code object `data` holds. DamagedCode; UserError where it is not linked;
    ToolchainError where nothing reads it."""
    refuse_unlinked(data)
    try:
        from elftools.common.exceptions import ELFError  # noqa: PLC0415 (an optional package)
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415
    except ImportError as error:
        raise ToolchainError("code objects are read by pyelftools", remedy=_INSTALL) from error
    unreadable = ValueError, ArithmeticError, LookupError, TypeError, AttributeError, struct.error
    try:
        return _read(ELFFile(BytesIO(data)), len(data))
    except (ELFError, *unreadable) as error:
        raise DamagedCode(
            "this is no code object for AMD GPUs that can be loaded",
            why=f"{type(error).__name__}: {error}",
            remedy="give a linked code object (.hsaco), whole, as the compiler wrote it",
        ) from error


def _read(elf: Any, file_bytes: int) -> CodeObject:
    if elf["e_machine"] != "EM_AMDGPU" or elf.elfclass != 64:
        raise ValueError(f"it is made for {elf['e_machine']}")
    _check_tables(elf)
    _check_sections(elf, file_bytes)
    loaded = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
    size = _size(loaded)
    segments = tuple((s["p_vaddr"], _content(s)) for s in loaded)
    metadata = read_msgpack(next(_notes(elf)))
    symbols = {s.name: s["st_value"] for s in elf.get_section_by_name(".dynsym").iter_symbols()}
    kernels = [_kernel(item, symbols, segments) for item in metadata["amdhsa.kernels"]]
    return CodeObject(
        mcpu=str(metadata["amdhsa.target"]).rpartition("--")[2].partition(":")[0],
        size=size,
        segments=segments,
        pointers=tuple(_pointers(elf, size)),
        kernels={kernel.name: kernel for kernel in kernels},
    )


def _check_tables(elf: Any) -> None:
    """Entries of no length would be read for ever."""
    for kind, count, size in (
        ("phentsize", elf.num_segments(), _SEGMENT_BYTES),
        ("shentsize", elf.num_sections(), _SECTION_BYTES),
    ):
        if count and elf[f"e_{kind}"] != size:
            raise ValueError(f"{kind} is {elf[f'e_{kind}']}, not {size}")
        if count > _MOST_ENTRIES:
            raise ValueError(f"a table of {count} entries")


def _check_sections(elf: Any, file_bytes: int) -> None:
    """Disassemblers warn without end of symbols that lie behind the file; pyelftools itself sees to
    it that they are whole."""
    for section in elf.iter_sections():
        size = section["sh_size"]
        if section["sh_type"] != "SHT_NOBITS" and section["sh_offset"] + size > file_bytes:
            raise ValueError(f"a section of {size} bytes ends behind the file")


def _size(loaded: list[Any]) -> int:
    """Bytes of memory from where the object is loaded to its end."""
    for segment in loaded:
        if segment["p_memsz"] > LARGEST_BYTES:
            raise ValueError(f"a segment takes {segment['p_memsz']} bytes of memory")
    size: int = max(segment["p_vaddr"] + segment["p_memsz"] for segment in loaded)
    # Segments may lie over each other in a damaged file: all together are bounded, too.
    if max(size, sum(segment["p_memsz"] for segment in loaded)) > LARGEST_BYTES:
        raise ValueError(f"the segments take more than {LARGEST_BYTES} bytes of memory")
    return size


def _content(segment: Any) -> bytes:
    content: bytes = segment.data()
    if len(content) != segment["p_filesz"]:
        raise ValueError("the file ends within a segment")
    return content + bytes(segment["p_memsz"] - segment["p_filesz"])


def _notes(elf: Any) -> Iterator[bytes]:
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_NOTE":
            for note in segment.iter_notes():
                if note["n_name"] == "AMDGPU" and note["n_type"] == _METADATA:
                    yield note["n_descdata"]
    raise ValueError("it has no metadata")


def _pointers(elf: Any, size: int) -> Iterator[tuple[int, int]]:
    for section in elf.iter_sections():
        for entry in section.iter_relocations() if section["sh_type"] == "SHT_RELA" else ():
            if entry["r_info_type"] != _RELATIVE:
                raise ValueError(f"a relocation of type {entry['r_info_type']} is not known")
            if not (entry["r_offset"] <= size - 8 and 0 <= entry["r_addend"] <= size):
                raise ValueError(f"a pointer at {entry['r_offset']:#x} lies or points outside")
            yield entry["r_offset"], entry["r_addend"]


def _kernel(
    item: dict[str, Any], symbols: dict[str, int], segments: tuple[tuple[int, bytes], ...]
) -> KernelEntry:
    address = symbols[item[".symbol"]]
    descriptor = _descriptor(_bytes_at(segments, address, _DESCRIPTOR_BYTES))
    arguments = tuple(_argument(arg) for arg in item.get(".args", ()))
    hidden = [a.offset + a.size for a in arguments if a.kind.startswith("hidden_")]
    if max(hidden, default=0) > descriptor.kernarg_bytes:
        raise ValueError(f"hidden arguments end behind the {descriptor.kernarg_bytes} bytes of all")
    block = item.get(".reqd_workgroup_size", ())
    if len(block) not in (0, 3) or not all(type(size) is int for size in block):
        raise ValueError(f"{block!r} is no size of a group")
    return KernelEntry(
        name=_text(item, ".name"),
        entry=address + descriptor.entry_offset + (_OTHER_ENTRY if descriptor.preload else 0),
        descriptor_address=address,
        descriptor=descriptor,
        arguments=arguments,
        most_threads=_count(item, ".max_flat_workgroup_size"),
        block=tuple(block),
        has_dynamic_stack=bool(item.get(".uses_dynamic_stack", False)),
    )


def _argument(item: dict[str, Any]) -> Argument:
    access = item.get(".actual_access", item.get(".access"))
    is_read_only = access == "read_only" or bool(item.get(".is_const", False))
    name, kind = _text({".name": "", **item}, ".name"), _text(item, ".value_kind")
    offset, size = _count(item, ".offset"), _count(item, ".size")
    if size != _FILLED_SIZES.get(kind, size):
        raise ValueError(f"the argument {kind} has {_FILLED_SIZES[kind]} bytes, not {size}")
    alignment = _count({".pointee_align": 1, **item}, ".pointee_align")
    if alignment & (alignment - 1) or alignment == 0:
        raise ValueError(f"an alignment of {alignment} is not a power of two")
    type_name = _text({".type_name": "", **item}, ".type_name")
    return Argument(name, offset, size, kind, is_read_only, alignment, type_name)


def _text(item: dict[str, Any], key: str) -> str:
    if not isinstance(item[key], str):
        raise ValueError(f"{key} is {item[key]!r}, not a text")
    return str(item[key])


def _count(item: dict[str, Any], key: str) -> int:
    # A bool is an int to Python, but not here.
    if type(item[key]) is not int or not 0 <= item[key] <= _MOST_COUNTED:
        raise ValueError(f"{key} is {item[key]!r}, not from 0 to {_MOST_COUNTED}")
    return int(item[key])


def _bytes_at(segments: tuple[tuple[int, bytes], ...], address: int, size: int) -> bytes:
    for start, content in segments:
        if start <= address <= start + len(content) - size:
            return content[address - start : address - start + size]
    raise ValueError(f"nothing is loaded at {address:#x}")


def _descriptor(data: bytes) -> Descriptor:
    shared, private, kernarg, entry = struct.unpack_from("<III4xq", data)
    if kernarg > _MOST_COUNTED:
        raise ValueError(f"a kernel takes {kernarg} bytes of arguments")
    return Descriptor(shared, private, kernarg, entry, *struct.unpack_from("<IIIHH", data, 44))
