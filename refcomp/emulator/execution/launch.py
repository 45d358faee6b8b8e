"""Loads code objects and launches kernels: prepares what lies in memory when waves begin.

Follows the kernel descriptor, as specified in LLVM's "User Guide for AMDGPU Backend", and the
`Generation` of the GPU. Refuses, by UserError, the launches that a driver refuses: code for another
machine, groups that are too large, too few bytes of arguments, and more memory than a GPU has.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

import numpy as np

from refcomp.emulator.code.assembly import read_assembly
from refcomp.emulator.code.code_object import CodeObject, KernelEntry, read_code_object
from refcomp.emulator.code.findings import Finding, Findings
from refcomp.emulator.execution.execute import Execution
from refcomp.emulator.execution.initial_state import Start, begin_waves
from refcomp.emulator.execution.program import DecodedProgram, ExecutedForm
from refcomp.emulator.generations.generation import (
    ARCHITECTURES,
    GENERATIONS,
    Generation,
)
from refcomp.emulator.limits import USUAL_LIMITS, Limits, Watchdog
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.machine.observation import Observer
from refcomp.emulator.machine.waves import Surroundings
from refcomp.emulator.translation.compilation import HostTools
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import ToolchainError, UserError

SHARED_LIMIT = 65536  # bytes of a group
THREADS_LIMIT = 1024  # of a group
# Maxima of a batch of groups that run together.
_BATCH_LANES = 256 * 64
_BATCH_PRIVATE_BYTES = 1 << 30
_DYNAMIC_STACK = 16384  # bytes
_PACKET_BYTES = 64
_MAX_THREADS_ALONG_AXIS = 2**32 - 1  # a dispatch packet has 32 bits for them

Extents = tuple[int, int, int]  # along x, y and z


class ForeignCode(UserError):
    """A code object for another GPU."""


@dataclass(frozen=True, slots=True)
class LoadedCode:
    """A code object in the memory of an emulated GPU."""

    code: CodeObject
    generation: Generation
    programs: Mapping[int, DecodedProgram]  # by the number of lanes of a wave
    base: int  # address of the code object
    arena: Arena

    @property
    def executed(self) -> frozenset[ExecutedForm]:
        """The mnemonics and modifiers of all instructions that ran so far."""
        return frozenset().union(
            *(program.executed for program in self.programs.values())
        )

    def program(self, kernel: KernelEntry) -> DecodedProgram:
        """Return the instructions as waves of `kernel` run them."""
        return self.programs[self.generation.lanes(kernel.descriptor)]

    def kernel(self, name: str) -> KernelEntry:
        """Return the kernel of a name. UserError if there is none."""
        return self.code.kernel(name)


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """A request to launch a kernel."""

    kernel: str
    grid: Extents  # number of groups
    block: Extents  # threads of a group
    arguments: bytes  # packed, without hidden ones
    shared_bytes: int = 0  # of a group, in addition to the kernel's own
    limits: Limits = USUAL_LIMITS
    observers: tuple[Observer, ...] = ()
    # Addresses of allocations that the kernel must not write.
    read_only: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """The outcome of a launch."""

    findings: tuple[Finding, ...]
    steps: int  # instructions that ran, each counted once for each wave


def load_code(
    arena: Arena,
    data: bytes,
    disassemble: Callable[[bytes], str],
    known: Sequence[str] = ARCHITECTURES,
    tools: HostTools | None = None,
) -> LoadedCode:
    """Load a code object.

    Args:
        arena: memory of the GPU.
        data: the code object, an ELF file.
        disassemble: returns the assembly text of a code object.
        known: names of the GPUs to accept.
        tools: translate hot code; None to interpret all of it.

    Raises:
        DamagedCode: `data` is not a code object that can be loaded.
        ForeignCode: it is for another GPU.
        ToolchainError: `disassemble` lacks a tool.
        MemoryError: there is too little memory.
    """
    code = read_code_object(data)
    if code.mcpu not in known:
        raise ForeignCode(
            f"the code object is for {code.mcpu}, the emulated GPU is {' or '.join(known)}",
            remedy=f"compile for it: rocm -mcpu={known[0]}",
        )
    generation = GENERATIONS[code.mcpu]
    text = disassemble(data)
    wanted = {generation.lanes(kernel.descriptor) for kernel in code.kernels.values()}
    programs = {
        lanes: DecodedProgram(
            read_assembly(text, generation.dialect, lanes), generation, tools
        )
        for lanes in sorted(wanted)
    }
    place = arena.allocate(code.size, "the code object")
    if place is None:
        raise MemoryError("no room for the code object")
    arena.write(place.address, bytes(code.size))
    for segment in code.segments:
        arena.write(place.address + segment.address, segment.content)
    for pointer in code.pointers:
        content = struct.pack("<Q", place.address + pointer.target)
        arena.write(place.address + pointer.address, content)
    return LoadedCode(code, generation, programs, place.address, arena)


def launch(loaded: LoadedCode, request: LaunchRequest) -> LaunchReport:
    """Run a kernel to its end, or until a limit is exceeded.

    Raises:
        UserError: a driver would refuse the launch.
        Unsupported: the emulator does not know an instruction of the kernel.
        MemoryError: there is too little memory.
    """
    kernel = loaded.kernel(request.kernel)
    _check(loaded.generation, kernel, request)
    around = _surroundings(loaded, kernel, request)
    arguments = _kernarg_segment(kernel, request)
    contents = (
        _LaunchData(_packet(kernel, request, loaded.base), "the dispatch packet"),
        _LaunchData(arguments, "the arguments"),
    )
    with _placed(loaded.arena, contents) as (packet, kernarg):
        for observer in request.observers:
            observer.launched(loaded, request)
        try:
            steps = _run_batches(
                loaded, request, around, Start(packet, kernarg, arguments)
            )
        except UserError as error:
            # Earlier findings are most often the cause.
            reasons = [error.why, *map(str, around.findings.all())]
            error.why = "\n    ".join(reason for reason in reasons if reason) or None
            raise
    return LaunchReport(around.findings.all(), steps)


def _run_batches(
    loaded: LoadedCode, request: LaunchRequest, around: Surroundings, start: Start
) -> int:
    """Return how many instructions of waves ran."""
    kernel = loaded.kernel(request.kernel)
    steps = 0
    watchdog = Watchdog(request.limits)
    program = loaded.program(kernel)
    entry = program.assembly.number_at(kernel.entry)
    if entry is None:
        raise ToolchainError(
            f"no instruction begins at the entry of {kernel.name}, {kernel.entry:#x}",
            remedy="the code object is damaged: compile it again",
        )
    for groups in _batches(around, request.grid, program.assembly.lanes):
        waves = begin_waves(around, loaded.generation, kernel, groups, start)
        execution = Execution(waves, program, entry, watchdog)
        for observer in around.observers:
            observer.began(waves)
        execution.run()
        steps += execution.steps
        if execution.is_given_up:
            break
        for observer in around.observers:
            observer.ended(waves)
    return steps


@dataclass(frozen=True, slots=True)
class _LaunchData:
    """Bytes that a driver puts into memory for a launch."""

    content: bytes
    label: str  # for messages


@contextmanager
def _placed(arena: Arena, contents: Sequence[_LaunchData]) -> Iterator[list[int]]:
    """Keep `contents` in memory during a launch, and yield their addresses. MemoryError."""
    addresses: list[int] = []
    try:
        for data in contents:
            place = arena.allocate(len(data.content), data.label)
            if place is None:
                raise MemoryError(f"no room for {data.label}")
            arena.write(place.address, data.content)
            addresses.append(place.address)
        yield addresses
    finally:
        for address in addresses:
            arena.free(address)


def _check(generation: Generation, kernel: KernelEntry, request: LaunchRequest) -> None:
    for name, extents in (("grid", request.grid), ("block", request.block)):
        if len(extents) != 3 or not all(
            isinstance(one, (int, np.integer)) for one in extents
        ):
            raise UserError(
                f"{kernel.name} cannot be launched with the {name} {extents!r}",
                why="a grid has groups, and a block threads, along x, y and z",
                remedy="give three whole numbers, 1 for an axis that is not used",
            )
    if min(*request.grid, *request.block) < 1:
        raise UserError(
            f"{kernel.name} is launched with nothing to do",
            where=f"{request.grid} groups of {request.block} threads",
            remedy="give at least one group of one thread, or leave the launch out",
        )
    _check_block(kernel, request)
    _check_shared(kernel, request)
    _check_private(generation, kernel)
    _check_extents(kernel, request)
    _check_arguments(kernel, request)


def _check_block(kernel: KernelEntry, request: LaunchRequest) -> None:
    threads = prod(request.block)
    most = min(kernel.max_threads, THREADS_LIMIT)
    if threads > most:
        raise UserError(
            f"{kernel.name} takes {counted(most, 'thread')} in a group, not {threads}",
            why="no GPU takes more"
            if most == THREADS_LIMIT
            else "it was compiled for so many",
            remedy="launch smaller groups",
        )
    if kernel.block and tuple(kernel.block) != request.block:
        raise UserError(
            f"{kernel.name} takes groups of {kernel.block}, not {request.block}",
            why="it was compiled for these alone",
            remedy="launch such groups, or compile it for others",
        )


def _check_shared(kernel: KernelEntry, request: LaunchRequest) -> None:
    own = kernel.descriptor.shared_bytes
    more = request.shared_bytes
    if more < 0 or own + more > SHARED_LIMIT:
        raise UserError(
            f"{kernel.name} asks for {own + more} bytes of shared memory",
            why=f"{own} are its own; a group has {SHARED_LIMIT} at most",
            remedy=f"ask for 0 to {max(0, SHARED_LIMIT - own)} beyond its own",
        )


def _check_private(generation: Generation, kernel: KernelEntry) -> None:
    lanes = generation.lanes(kernel.descriptor)
    asked = _private_bytes(kernel)
    most = generation.wave_scratch // lanes
    if asked > most:
        raise UserError(
            f"{kernel.name} asks for {asked} bytes of private memory for each thread",
            why=f"a {generation.name} has {most} for each of the {lanes} lanes of a wave",
            remedy="keep large arrays in global memory; or the code object is damaged",
        )


def _private_bytes(kernel: KernelEntry) -> int:
    """Return the bytes of a lane's private memory, with the stack that a driver adds."""
    stack = _DYNAMIC_STACK if kernel.has_dynamic_stack else 0
    return kernel.descriptor.private_bytes + stack


def _check_arguments(kernel: KernelEntry, request: LaunchRequest) -> None:
    explicit = [a for a in kernel.arguments if not a.kind.startswith("hidden")]
    least = max((a.offset + a.size for a in explicit), default=0)
    given = len(request.arguments)
    if given < least:
        raise UserError(
            f"{kernel.name} takes {counted(least, 'byte')} of arguments, not {given}",
            why="they are "
            + ", ".join(f"{a.name or '?'} at {a.offset}" for a in explicit),
            remedy="pack a value for each at its offset",
        )


def _check_extents(kernel: KernelEntry, request: LaunchRequest) -> None:
    for axis, groups, threads in zip("xyz", request.grid, request.block, strict=True):
        if groups * threads > _MAX_THREADS_ALONG_AXIS:
            launched = f"{counted(groups, 'group')} of {counted(threads, 'thread')}"
            raise UserError(
                f"{kernel.name} is launched with {launched} along {axis}",
                why=f"there can be {_MAX_THREADS_ALONG_AXIS} threads along an axis",
                remedy="give some of the groups to another axis",
            )


def _surroundings(
    loaded: LoadedCode, kernel: KernelEntry, request: LaunchRequest
) -> Surroundings:
    return Surroundings(
        arena=loaded.arena,
        assembly=loaded.program(kernel).assembly,
        base=loaded.base,
        kernel=kernel.name,
        block=request.block,
        shared_bytes=kernel.descriptor.shared_bytes + request.shared_bytes,
        private_bytes=_private_bytes(kernel),
        is_watched=loaded.arena.bytes.known is not None,
        findings=Findings(),
        observers=request.observers,
    )


def _batches(around: Surroundings, grid: Extents, lanes: int) -> Iterator[Array]:
    """Yield the groups of each batch: their ids, int [groups, 3]."""
    per_group = -(-prod(around.block) // lanes) * lanes
    most = min(_BATCH_LANES, _BATCH_PRIVATE_BYTES // max(1, around.private_bytes))
    together = max(1, most // per_group)
    x, y, z = grid
    for start in range(0, x * y * z, together):
        number = np.arange(start, min(start + together, x * y * z))
        yield np.stack([number % x, number // x % y, number // (x * y)], axis=1)


# What the driver puts into memory.


def _packet(kernel: KernelEntry, request: LaunchRequest, base: int) -> bytes:
    """Return the dispatch packet, hsa_kernel_dispatch_packet_t of HSA's specification."""
    work = [
        count * size for count, size in zip(request.grid, request.block, strict=True)
    ]
    descriptor = kernel.descriptor
    return struct.pack(
        "<HH3HHIIIIIQQQQ",
        0,  # header
        3,  # dimensions
        *request.block,
        0,  # reserved
        *work,
        descriptor.private_bytes,
        descriptor.shared_bytes + request.shared_bytes,
        base + kernel.descriptor_address,
        0,  # address of the arguments, which waves find in registers
        0,  # reserved
        0,  # completion signal
    )


def _kernarg_segment(kernel: KernelEntry, request: LaunchRequest) -> bytes:
    """Return the given arguments followed by hidden ones."""
    # Other hidden arguments, such as offsets of the grid, are 0.
    hidden = {
        "hidden_grid_dims": 3,
        "hidden_dynamic_lds_size": request.shared_bytes,
    }
    for axis, name in enumerate("xyz"):
        hidden[f"hidden_block_count_{name}"] = request.grid[axis]
        hidden[f"hidden_group_size_{name}"] = request.block[axis]
    size = max(kernel.descriptor.kernarg_bytes, len(request.arguments), 1)
    segment = bytearray(request.arguments.ljust(size, b"\0"))
    for argument in kernel.arguments:
        if argument.kind.startswith("hidden_"):
            value = hidden.get(argument.kind, 0)
            end = argument.offset + argument.size
            segment[argument.offset : end] = value.to_bytes(argument.size, "little")
    return bytes(segment)
