"""The metadata of a code object, which is a file of machine code for AMD GPUs.

A code object is an ELF file whose note `AMDGPU` is a MessagePack map. The map describes the
kernels and their arguments. A linked code object has a note for each object that was linked. Its
kernels are those of all notes, as in AMD's own library (comgr, mergeNoteRecords).

Ensures: all values were in the file, have the format's types, and numbers are in range.
Refuses, with ValueError and the reason, files that are damaged or are not code objects.
Format: LLVM's "User Guide for AMDGPU Backend", code object metadata V3 and later.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from refcomp.foundation.elf import ElfFile
from refcomp.foundation.msgpack import MsgpackValue, read_msgpack

_T = TypeVar("_T", str, list[MsgpackValue], dict[str, MsgpackValue])

_NOTE_NAME = "AMDGPU"
_NOTE_KIND = 32
_KERNELS = "amdhsa.kernels"
# The version of the ABI in the ELF header -> version of the code-object format.
_ABI_TO_VERSION = {1: 3, 2: 4, 3: 5, 4: 6}
_MAX_COUNT = (1 << 32) - 1
# Larger numbers are a sign of damage: no compiler comes near them.
MAX_ARGUMENT_BYTES = 1 << 20  # size or offset of an argument
_MAX_THREADS = 1 << 20  # of a group


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """An argument of a kernel, as a loader lays it out."""

    name: str  # as in the source; empty if the compiler wrote none
    offset: int  # bytes from the beginning of the arguments
    size: int  # bytes
    # `global_buffer`, `by_value`, `dynamic_shared_pointer` (shared memory whose size the
    # launch sets) or `hidden_...` (filled in by the loader).
    kind: str
    is_read_only: bool = False  # the kernel only reads the buffer
    # Of the memory that a shared pointer points to, in bytes: a power of 2.
    alignment: int = 1
    type_name: str = ""  # as in the source; empty if the compiler wrote none
    space: str = ""  # address space of a buffer; empty for other kinds


@dataclass(frozen=True, slots=True)
class KernelMetadata:
    """The interface and the resources of one kernel."""

    name: str
    symbol: str  # of the kernel descriptor in the ELF file
    arguments: tuple[KernelArgument, ...]
    kernarg_bytes: int  # all arguments together
    kernarg_alignment: int  # bytes
    shared_bytes: int  # of a group, without dynamic shared memory
    private_bytes: int  # stack of a lane
    max_threads: int  # of a group
    block: tuple[int, ...]  # the only size of a group; () if the kernel accepts any
    wavefront_size: int  # lanes of a wave
    vgprs: int  # vector registers of a lane, `agprs` included
    sgprs: int  # scalar registers of a wave
    spilled_vgprs: int
    spilled_sgprs: int
    agprs: int = 0  # registers of a lane for matrices
    has_dynamic_stack: bool = False


@dataclass(frozen=True, slots=True)
class CodeObjectMetadata:
    """The metadata of a whole code object."""

    version: int  # of the code-object format
    target: str  # the whole name: amdgcn-amd-amdhsa--gfx90a:xnack-
    kernels: tuple[KernelMetadata, ...]

    @property
    def mcpu(self) -> str:
        """The GPU's name alone, such as `gfx90a`."""
        return self.target.rpartition("--")[2].partition(":")[0]


def read_metadata(elf: ElfFile) -> CodeObjectMetadata:
    """Return the metadata of the code object `elf`. ValueError."""
    metadata = metadata_map(elf)
    version = _ABI_TO_VERSION.get(elf.abi_version)
    if version is None:
        raise ValueError(f"version {elf.abi_version} of the ABI is not known")
    return CodeObjectMetadata(
        version=version,
        target=_entry(str, metadata, "amdhsa.target"),
        kernels=tuple(
            _kernel(_checked(dict, "a kernel", item))
            for item in _entry(list, metadata, _KERNELS)
        ),
    )


def metadata_map(elf: ElfFile) -> dict[str, MsgpackValue]:
    """Return all metadata of the code object `elf`, unchecked. ValueError."""
    if elf.machine != "EM_AMDGPU":
        raise ValueError(f"it is not an ELF file for AMD GPUs, but for {elf.machine}")
    contents = elf.notes(_NOTE_NAME, _NOTE_KIND)
    if not contents:
        raise ValueError("it has no metadata")
    first, *others = (
        _checked(dict, "the metadata", read_msgpack(content)) for content in contents
    )
    for other in others:
        _join(first, other)
    return first


def _join(metadata: dict[str, MsgpackValue], other: dict[str, MsgpackValue]) -> None:
    """Add the kernels of the metadata `other`, whose other entries must be the same. ValueError."""
    kernels = [
        *_entry(list, metadata, _KERNELS, []),
        *_entry(list, other, _KERNELS, []),
    ]
    if {**metadata, _KERNELS: []} != {**other, _KERNELS: []}:
        raise ValueError("its objects were compiled for different GPUs or versions")
    metadata[_KERNELS] = kernels


def _kernel(item: Mapping[str, MsgpackValue]) -> KernelMetadata:
    block = _entry(list, item, ".reqd_workgroup_size", [])
    sizes = tuple(size for size in block if type(size) is int)
    if len(block) not in (0, 3) or len(sizes) != len(block):
        raise ValueError(f"{block!r} is not the size of a group")
    arguments = _entry(list, item, ".args", [])
    return KernelMetadata(
        name=_entry(str, item, ".name"),
        symbol=_entry(str, item, ".symbol"),
        arguments=tuple(
            _argument(_checked(dict, "an argument", arg)) for arg in arguments
        ),
        kernarg_bytes=_count(item, ".kernarg_segment_size"),
        kernarg_alignment=_count(item, ".kernarg_segment_align"),
        shared_bytes=_count(item, ".group_segment_fixed_size"),
        private_bytes=_count(item, ".private_segment_fixed_size"),
        max_threads=_count(item, ".max_flat_workgroup_size", maximum=_MAX_THREADS),
        block=sizes,
        wavefront_size=_count(item, ".wavefront_size"),
        vgprs=_count(item, ".vgpr_count"),
        sgprs=_count(item, ".sgpr_count"),
        spilled_vgprs=_count(item, ".vgpr_spill_count", 0),
        spilled_sgprs=_count(item, ".sgpr_spill_count", 0),
        agprs=_count(item, ".agpr_count", 0),
        has_dynamic_stack=bool(item.get(".uses_dynamic_stack", False)),
    )


def _argument(item: Mapping[str, MsgpackValue]) -> KernelArgument:
    access = item.get(".actual_access", item.get(".access"))
    alignment = _count(item, ".pointee_align", 1, maximum=MAX_ARGUMENT_BYTES)
    if alignment & (alignment - 1) or alignment == 0:
        raise ValueError(f"an alignment of {alignment} is not a power of two")
    return KernelArgument(
        name=_entry(str, item, ".name", ""),
        offset=_count(item, ".offset", maximum=MAX_ARGUMENT_BYTES),
        size=_count(item, ".size", maximum=MAX_ARGUMENT_BYTES),
        kind=_entry(str, item, ".value_kind"),
        is_read_only=access == "read_only" or bool(item.get(".is_const", False)),
        alignment=alignment,
        type_name=_entry(str, item, ".type_name", ""),
        space=_entry(str, item, ".address_space", ""),
    )


_KINDS: dict[type[object], str] = {str: "a text", dict: "a map", list: "a list"}


def _entry(
    kind: type[_T],
    item: Mapping[str, MsgpackValue],
    key: str,
    default: _T | None = None,
) -> _T:
    if default is None and key not in item:
        raise ValueError(f"{key} is missing")
    return _checked(kind, key, item.get(key, default))


def _checked(kind: type[_T], what: str, value: object) -> _T:
    if not isinstance(value, kind):
        raise ValueError(f"{what} is {value!r}, not {_KINDS[kind]}")
    return value


def _count(
    item: Mapping[str, MsgpackValue],
    key: str,
    default: int | None = None,
    maximum: int = _MAX_COUNT,
) -> int:
    if default is None and key not in item:
        raise ValueError(f"{key} is missing")
    value = item.get(key, default)
    # A bool is an int to Python, but not here.
    if type(value) is not int or not 0 <= value <= maximum:
        raise ValueError(f"{key} is {value!r}, not from 0 to {maximum}")
    return value
