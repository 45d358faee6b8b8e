"""Code objects as a GPU's loader sees them: what lies where in memory, and where kernels begin.

Requires in `data` a whole ELF file for AMD GPUs. Ensures that what it returns was in the file.
Refuses, by DamagedCode, other and truncated files, and files without kernels. It also refuses files
with relocations to symbols of other objects, which it does not support.

Format: LLVM's "User Guide for AMDGPU Backend", sections on code objects and kernel descriptors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from refcomp.foundation.amd_metadata import (
    MAX_ARGUMENT_BYTES,
    KernelArgument,
    KernelMetadata,
    read_metadata,
)
from refcomp.foundation.counted import counted
from refcomp.foundation.elf import ElfFile, Relocation, Segment
from refcomp.foundation.errors import UserError
from refcomp.foundation.local_memory import LOCAL_POINTER, POINTER_BYTES
from refcomp.foundation.near_misses import advise
from refcomp.foundation.unlinked import refuse_unlinked

_DESCRIPTOR_BYTES = 64
_RELATIVE = 13
# A kernel that finds arguments in registers begins with so many bytes of code that load them, for
# drivers that do not put them there.
_PRELOAD_BYTES = 256
MAX_BYTES = 1 << 30  # of memory; more is damage, not code
# Sizes in bytes of the arguments that the driver fills in.
_FILLED_SIZES = {
    LOCAL_POINTER: POINTER_BYTES,
    "hidden_grid_dims": 2,
    "hidden_dynamic_lds_size": 4,
    **{f"hidden_block_count_{axis}": 4 for axis in "xyz"},
    **{f"hidden_group_size_{axis}": 2 for axis in "xyz"},
}


class DamagedCode(UserError):
    """The data is not a code object, or not a complete one."""


@dataclass(frozen=True, slots=True)
class PreloadedArguments:
    """Words of the arguments, of 4 bytes each, that are in scalar registers when waves begin."""

    length: int  # in words
    offset: int  # of the first word, in words


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The kernel descriptor: 64 bytes that describe how a GPU begins a kernel."""

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
        """Vector registers of a lane, with accumulators, in granules of the GPU."""
        return (self.rsrc1 & 63) + 1

    @property
    def first_accumulator(self) -> int:
        """The number of the vector register that `a0` is."""
        return ((self.rsrc3 & 63) + 1) * 4

    @property
    def user_sgprs(self) -> int:
        return self.rsrc2 >> 1 & 31

    @property
    def preloaded(self) -> PreloadedArguments:
        """The words of the arguments that are in registers when waves begin."""
        return PreloadedArguments(length=self.preload & 127, offset=self.preload >> 7)

    @property
    def float_mode(self) -> int:
        """Rounding, denormals, DX10_CLAMP and IEEE_MODE, as the MODE register has them."""
        clamp = self.rsrc1 >> 21 & 1
        ieee = self.rsrc1 >> 23 & 1
        return self.rsrc1 >> 12 & 0xFF | clamp << 8 | ieee << 9

    @property
    def is_on_pairs(self) -> bool:
        """True if a group runs on a pair of compute units, each with a cache (RDNA)."""
        return bool(self.rsrc1 >> 29 & 1)


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A kernel of a code object. Addresses are in bytes from where the object is loaded."""

    name: str
    entry: int  # behind the code that loads arguments into registers
    descriptor_address: int
    descriptor: Descriptor
    arguments: tuple[KernelArgument, ...]
    max_threads: int  # of a group
    block: tuple[int, ...]  # the only size of a group that it takes; () if it takes any
    has_dynamic_stack: bool


@dataclass(frozen=True, slots=True)
class LoadedBytes:
    """The memory of a segment."""

    address: int  # bytes from where the object is loaded
    content: bytes  # the bytes of the file, then zeros


@dataclass(frozen=True, slots=True)
class RelocatedPointer:
    """A pointer in memory that depends on where the object is loaded."""

    address: int  # of the pointer, in bytes from where the object is loaded
    target: int  # what it points to, likewise


@dataclass(frozen=True, slots=True)
class CodeObject:
    """The parts of a linked code object that a loader needs."""

    mcpu: str  # the GPU that it is made for, such as gfx942
    size: int  # bytes of memory from where it is loaded to its end
    segments: tuple[LoadedBytes, ...]
    pointers: tuple[RelocatedPointer, ...]
    kernels: dict[str, KernelEntry]  # by name

    def kernel(self, name: str) -> KernelEntry:
        """Return the kernel of that name. UserError."""
        found = self.kernels.get(name)
        if found is None:
            known = ", ".join(sorted(self.kernels)) or "none"
            remedy = advise(name, self.kernels, f"name one of: {known}")
            raise UserError(f"the code object has no kernel {name!r}", remedy=remedy)
        return found


def read_code_object(data: bytes) -> CodeObject:
    """Return the parts of the code object `data`.

    Raises:
        DamagedCode: `data` is not a code object that can be loaded.
        UserError: the code object is not linked.
    """
    refuse_unlinked(data)
    try:
        return _read(ElfFile(data))
    except ValueError as error:
        raise DamagedCode(
            "this is not a code object for AMD GPUs that can be loaded",
            why=str(error),
            remedy="give a linked code object (.hsaco), whole, as the compiler wrote it",
        ) from error


def _read(elf: ElfFile) -> CodeObject:
    metadata = read_metadata(elf)
    loaded = elf.loaded_segments()
    size = _size(loaded)
    segments = tuple(LoadedBytes(one.address, elf.content(one)) for one in loaded)
    symbols = elf.symbols()
    kernels = [_kernel(kernel, symbols, segments) for kernel in metadata.kernels]
    return CodeObject(
        mcpu=metadata.mcpu,
        size=size,
        segments=segments,
        pointers=tuple(_pointers(elf.relocations(), size)),
        kernels={kernel.name: kernel for kernel in kernels},
    )


def _size(loaded: Sequence[Segment]) -> int:
    """Return the bytes of memory from where the object is loaded to its end. ValueError."""
    for segment in loaded:
        if segment.memory_size > MAX_BYTES:
            raise ValueError(f"a segment takes {segment.memory_size} bytes of memory")
    size = max((segment.address + segment.memory_size for segment in loaded), default=0)
    # Segments of a damaged file may overlap, so bound their sum, too.
    if max(size, sum(segment.memory_size for segment in loaded)) > MAX_BYTES:
        raise ValueError(f"the segments take more than {MAX_BYTES} bytes of memory")
    return size


def _pointers(
    relocations: Iterable[Relocation], size: int
) -> Iterator[RelocatedPointer]:
    for one in relocations:
        if one.kind != _RELATIVE:
            raise ValueError(f"a relocation of type {one.kind} is not known")
        if not (one.place <= size - 8 and 0 <= one.addend <= size):
            raise ValueError(f"a pointer at {one.place:#x} lies or points outside")
        yield RelocatedPointer(one.place, one.addend)


def _kernel(
    metadata: KernelMetadata, symbols: dict[str, int], segments: tuple[LoadedBytes, ...]
) -> KernelEntry:
    address = symbols.get(metadata.symbol)
    if address is None:
        raise ValueError(f"it has no symbol {metadata.symbol}")
    descriptor = _descriptor(_bytes_at(segments, address, _DESCRIPTOR_BYTES))
    _check_arguments(metadata.arguments, descriptor.kernarg_bytes)
    return KernelEntry(
        name=metadata.name,
        entry=address
        + descriptor.entry_offset
        + (_PRELOAD_BYTES if descriptor.preload else 0),
        descriptor_address=address,
        descriptor=descriptor,
        arguments=metadata.arguments,
        max_threads=metadata.max_threads,
        block=metadata.block,
        has_dynamic_stack=metadata.has_dynamic_stack,
    )


def _check_arguments(arguments: Iterable[KernelArgument], kernarg_bytes: int) -> None:
    for one in arguments:
        if one.size != _FILLED_SIZES.get(one.kind, one.size):
            wanted = _FILLED_SIZES[one.kind]
            raise ValueError(
                f"the argument {one.kind} has {counted(wanted, 'byte')}, not {one.size}"
            )
        if one.kind.startswith("hidden_") and one.offset + one.size > kernarg_bytes:
            raise ValueError(
                f"hidden arguments end behind the {kernarg_bytes} bytes of all"
            )


def _bytes_at(segments: tuple[LoadedBytes, ...], address: int, size: int) -> bytes:
    for segment in segments:
        start = address - segment.address
        if 0 <= start <= len(segment.content) - size:
            return segment.content[start : start + size]
    raise ValueError(f"nothing is loaded at {address:#x}")


def _descriptor(data: bytes) -> Descriptor:
    shared, private, kernarg, entry = struct.unpack_from("<III4xq", data)
    if kernarg > MAX_ARGUMENT_BYTES:
        raise ValueError(f"a kernel takes {kernarg} bytes of arguments")
    return Descriptor(
        shared, private, kernarg, entry, *struct.unpack_from("<IIIHH", data, 44)
    )
