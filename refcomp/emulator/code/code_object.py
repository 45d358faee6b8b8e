"""Code objects as a GPU's loader sees them: what lies where in memory, and where kernels begin.

Needs a whole ELF file for AMD GPUs in `data`. Ensures: what is given was there, within the file.
Refuses, by DamagedCode, what is no such file, is truncated, has no kernels or asks of the loader
what it does not do (relocations to symbols of other objects).
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
from refcomp.foundation.elf import ElfFile, Relocation, Segment
from refcomp.foundation.errors import UserError
from refcomp.foundation.local_memory import LOCAL_POINTER, POINTER_BYTES
from refcomp.foundation.unlinked import refuse_unlinked

_DESCRIPTOR_BYTES = 64
_RELATIVE = 13
# Bytes in front of a kernel that finds arguments in registers, for who does not put them there.
_OTHER_ENTRY = 256
LARGEST_BYTES = 1 << 30  # of memory; more is damage, not code
# What is filled in, in bytes.
_FILLED_SIZES = {
    LOCAL_POINTER: POINTER_BYTES,
    "hidden_grid_dims": 2,
    "hidden_dynamic_lds_size": 4,
    **{f"hidden_block_count_{axis}": 4 for axis in "xyz"},
    **{f"hidden_group_size_{axis}": 2 for axis in "xyz"},
}


class DamagedCode(UserError):
    """It is no code object, or not a whole one."""


@dataclass(frozen=True, slots=True)
class PreloadedArguments:
    """The words of 4 bytes that a descriptor has put from the arguments into scalar registers."""

    length: int
    # Number of the first word.
    offset: int


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
    def preloaded(self) -> PreloadedArguments:
        """The words of the arguments that stand in registers when waves begin."""
        return PreloadedArguments(length=self.preload & 127, offset=self.preload >> 7)

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
    arguments: tuple[KernelArgument, ...]
    most_threads: int
    block: tuple[int, ...]
    has_dynamic_stack: bool


@dataclass(frozen=True, slots=True)
class LoadedBytes:
    """What a segment of the file puts into memory."""

    # Bytes from where the object is loaded.
    address: int
    # The bytes of the file, then zeros.
    content: bytes


@dataclass(frozen=True, slots=True)
class RelocatedPointer:
    """A pointer in memory that depends on where the object is loaded."""

    # Where the pointer lies, in bytes from where the object is loaded.
    address: int
    # What it points to, counted likewise.
    target: int


@dataclass(frozen=True, slots=True)
class CodeObject:
    """A linked code object: what a loader needs of it."""

    # The GPU that it is made for, such as gfx942.
    mcpu: str
    # Bytes of memory from where it is loaded to its end.
    size: int
    segments: tuple[LoadedBytes, ...]
    pointers: tuple[RelocatedPointer, ...]
    # By name.
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
    """What the code object `data` holds. DamagedCode; UserError where it is not linked."""
    refuse_unlinked(data)
    try:
        return _read(ElfFile(data))
    except ValueError as error:
        raise DamagedCode(
            "this is no code object for AMD GPUs that can be loaded",
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
    """Bytes of memory from where the object is loaded to its end."""
    for segment in loaded:
        if segment.memory_size > LARGEST_BYTES:
            raise ValueError(f"a segment takes {segment.memory_size} bytes of memory")
    size = max((segment.address + segment.memory_size for segment in loaded), default=0)
    # Segments may lie over each other in a damaged file: all together are bounded, too.
    if max(size, sum(segment.memory_size for segment in loaded)) > LARGEST_BYTES:
        raise ValueError(f"the segments take more than {LARGEST_BYTES} bytes of memory")
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
        + (_OTHER_ENTRY if descriptor.preload else 0),
        descriptor_address=address,
        descriptor=descriptor,
        arguments=metadata.arguments,
        most_threads=metadata.most_threads,
        block=metadata.block,
        has_dynamic_stack=metadata.has_dynamic_stack,
    )


def _check_arguments(arguments: Iterable[KernelArgument], kernarg_bytes: int) -> None:
    for one in arguments:
        if one.size != _FILLED_SIZES.get(one.kind, one.size):
            wanted = _FILLED_SIZES[one.kind]
            raise ValueError(
                f"the argument {one.kind} has {wanted} bytes, not {one.size}"
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
