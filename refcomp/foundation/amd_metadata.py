"""What a code object, the machine code of AMD GPUs, tells of its kernels and their arguments.

A code object is an ELF file whose note `AMDGPU` is a MessagePack map. Ensures: what is returned
was there, has the format's types, and numbers are in bounds.
Refuses, by ValueError with the reason, what is not a code object, or damaged.
Format: LLVM's "User Guide for AMDGPU Backend", code object metadata V3 and later.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from refcomp.foundation.elf import ElfFile
from refcomp.foundation.msgpack import read_msgpack

_NOTE_NAME, _NOTE_KIND = "AMDGPU", 32
_ABI_TO_VERSION = {1: 3, 2: 4, 3: 5, 4: 6}
_MAX_COUNT = (1 << 32) - 1
MAX_ARGUMENT_BYTES = 1 << 20  # of an argument or its offset; more is damage
_MAX_THREADS = 1 << 20  # of a group


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """An argument of a kernel, as a loader lays it out.

    Attributes:
        name: As in the source; empty if the compiler wrote none.
        offset: Bytes from the begin of the arguments.
        size: In bytes.
        kind: `global_buffer`, `by_value`, `dynamic_shared_pointer` (shared memory whose size the
            launch gives) or `hidden_...` (what the loader fills in).
        is_read_only: True if the kernel only reads the buffer.
        alignment: Of what a shared pointer points to, in bytes: a power of two.
        type_name: The type in the source; empty if the compiler wrote none.
        space: The address space of a buffer; empty for other kinds.
    """

    name: str
    offset: int
    size: int
    kind: str
    is_read_only: bool = False
    alignment: int = 1
    type_name: str = ""
    space: str = ""


@dataclass(frozen=True, slots=True)
class KernelMetadata:
    """What is told of a kernel: bytes, threads, and registers of a lane (vgpr, of which `agprs` are
    for matrices) or wave (sgpr). `block` is the only size of a group, () if any is taken."""

    name: str
    symbol: str
    arguments: tuple[KernelArgument, ...]
    kernarg_bytes: int
    kernarg_alignment: int
    shared_bytes: int
    private_bytes: int
    most_threads: int
    block: tuple[int, ...]
    wavefront_size: int
    vgprs: int
    sgprs: int
    spilled_vgprs: int
    spilled_sgprs: int
    agprs: int = 0
    has_dynamic_stack: bool = False


@dataclass(frozen=True, slots=True)
class CodeObjectMetadata:
    """`version` of the format; `target` is the whole name: amdgcn-amd-amdhsa--gfx90a:xnack-."""

    version: int
    target: str
    kernels: tuple[KernelMetadata, ...]

    @property
    def mcpu(self) -> str:
        """The GPU's name alone."""
        return self.target.rpartition("--")[2].partition(":")[0]


def read_metadata(elf: ElfFile) -> CodeObjectMetadata:
    """Read what the code object `elf` tells of itself. ValueError."""
    metadata = metadata_map(elf)
    version = _ABI_TO_VERSION.get(elf.abi_version)
    if version is None:
        raise ValueError(f"version {elf.abi_version} of the ABI is not known")
    kernels = _of(list, metadata, "amdhsa.kernels")
    return CodeObjectMetadata(
        version,
        _of(str, metadata, "amdhsa.target"),
        tuple(_kernel(_checked(dict, "a kernel", item)) for item in kernels),
    )


def metadata_map(elf: ElfFile) -> dict[str, Any]:
    """Return all metadata of the code object `elf`, as they are. ValueError."""
    if elf.machine != "EM_AMDGPU":
        raise ValueError(f"it is no ELF file for AMD GPUs, but for {elf.machine}")
    content = elf.note(_NOTE_NAME, _NOTE_KIND)
    if content is None:
        raise ValueError("it has no metadata")
    found: dict[str, Any] = _checked(dict, "the metadata", read_msgpack(content))
    return found


def _kernel(item: Mapping[str, Any]) -> KernelMetadata:
    block = _of(list, item, ".reqd_workgroup_size", [])
    if len(block) not in (0, 3) or not all(type(size) is int for size in block):
        raise ValueError(f"{block!r} is no size of a group")
    arguments = _of(list, item, ".args", [])
    return KernelMetadata(
        name=_of(str, item, ".name"),
        symbol=_of(str, item, ".symbol"),
        arguments=tuple(
            _argument(_checked(dict, "an argument", arg)) for arg in arguments
        ),
        kernarg_bytes=_count(item, ".kernarg_segment_size"),
        kernarg_alignment=_count(item, ".kernarg_segment_align"),
        shared_bytes=_count(item, ".group_segment_fixed_size"),
        private_bytes=_count(item, ".private_segment_fixed_size"),
        most_threads=_count(item, ".max_flat_workgroup_size", most=_MAX_THREADS),
        block=tuple(block),
        wavefront_size=_count(item, ".wavefront_size"),
        vgprs=_count(item, ".vgpr_count"),
        sgprs=_count(item, ".sgpr_count"),
        spilled_vgprs=_count(item, ".vgpr_spill_count", 0),
        spilled_sgprs=_count(item, ".sgpr_spill_count", 0),
        agprs=_count(item, ".agpr_count", 0),
        has_dynamic_stack=bool(item.get(".uses_dynamic_stack", False)),
    )


def _argument(item: Mapping[str, Any]) -> KernelArgument:
    access = item.get(".actual_access", item.get(".access"))
    alignment = _count(item, ".pointee_align", 1, most=MAX_ARGUMENT_BYTES)
    if alignment & (alignment - 1) or alignment == 0:
        raise ValueError(f"an alignment of {alignment} is not a power of two")
    return KernelArgument(
        name=_of(str, item, ".name", ""),
        offset=_count(item, ".offset", most=MAX_ARGUMENT_BYTES),
        size=_count(item, ".size", most=MAX_ARGUMENT_BYTES),
        kind=_of(str, item, ".value_kind"),
        is_read_only=access == "read_only" or bool(item.get(".is_const", False)),
        alignment=alignment,
        type_name=_of(str, item, ".type_name", ""),
        space=_of(str, item, ".address_space", ""),
    )


_KINDS: dict[type[Any], str] = {str: "a text", dict: "a map", list: "a list"}


def _of(kind: type[Any], item: Mapping[str, Any], key: str, default: Any = None) -> Any:
    if default is None and key not in item:
        raise ValueError(f"{key} is missing")
    return _checked(kind, key, item.get(key, default))


def _checked(kind: type[Any], what: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{what} is {value!r}, not {_KINDS[kind]}")
    return value


def _count(
    item: Mapping[str, Any],
    key: str,
    default: int | None = None,
    most: int = _MAX_COUNT,
) -> int:
    if default is None and key not in item:
        raise ValueError(f"{key} is missing")
    value = item.get(key, default)
    # A bool is an int to Python, but not here.
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{key} is {value!r}, not from 0 to {most}")
    return value
