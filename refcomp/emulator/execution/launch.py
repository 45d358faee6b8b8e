"""Code objects loaded and kernels launched: what lies in memory when waves begin.

Follows the kernel descriptor, as LLVM's "User Guide for AMDGPU Backend" has it, and what
generation.py says of the GPU; registers are begun by initial_state.py. Refuses, by UserError, what
a driver would: another machine's code, a group too large, too few bytes of arguments, more memory
than there can be.
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
from refcomp.foundation.errors import ToolchainError, UserError

SHARED_LIMIT, THREADS_LIMIT = 65536, 1024
# Lanes of a batch, and bytes of their private memory.
_LANES_TOGETHER, _PRIVATE_TOGETHER = 256 * 64, 1 << 30
_DYNAMIC_STACK = 16384
_PACKET_BYTES = 64
_MOST_ALONG_AXIS = 2**32 - 1

Extents = tuple[int, int, int]


class ForeignCode(UserError):
    """A code object for another GPU."""


@dataclass(frozen=True, slots=True)
class LoadedCode:
    """A code object in memory, at `base`, and its instructions: by how many lanes the waves have
    that run them."""

    code: CodeObject
    generation: Generation
    programs: Mapping[int, DecodedProgram]
    base: int
    arena: Arena

    @property
    def executed(self) -> frozenset[ExecutedForm]:
        """The mnemonics and modifiers of all that ran so far."""
        return frozenset().union(
            *(program.executed for program in self.programs.values())
        )

    def program(self, kernel: KernelEntry) -> DecodedProgram:
        """The instructions as the kernel's waves run them."""
        return self.programs[self.generation.lanes(kernel.descriptor)]

    def kernel(self, name: str) -> KernelEntry:
        """The kernel of that name. UserError."""
        return self.code.kernel(name)


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """`grid` counts groups, `block` the threads of one, `arguments` is the packed buffer without
    hidden ones, `shared_bytes` what is asked for beyond the kernel's own; `limits` say when
    it is given up, `observers` see it. At the addresses `read_only` begins memory that the kernel
    is not to write."""

    kernel: str
    grid: Extents
    block: Extents
    arguments: bytes
    shared_bytes: int = 0
    limits: Limits = USUAL_LIMITS
    observers: tuple[Observer, ...] = ()
    read_only: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """What was found, and how many instructions of waves ran."""

    findings: tuple[Finding, ...]
    steps: int


def load_code(
    arena: Arena,
    data: bytes,
    disassemble: Callable[[bytes], str],
    known: Sequence[str] = ARCHITECTURES,
) -> LoadedCode:
    """A code object, loaded. DamagedCode; ForeignCode when it is not for a GPU of `known`;
    ToolchainError where a tool is missing that reads it."""
    code = read_code_object(data)
    if code.mcpu not in known:
        raise ForeignCode(
            f"the code object is for {code.mcpu}, the emulated GPU is {' or '.join(known)}",
            remedy=f"compile for it: rocm -mcpu={known[0]}",
        )
    generation = GENERATIONS[code.mcpu]
    programs = _programs(code, generation, disassemble(data))
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


def _programs(
    code: CodeObject, generation: Generation, text: str
) -> dict[int, DecodedProgram]:
    wanted = {generation.lanes(kernel.descriptor) for kernel in code.kernels.values()}
    return {
        lanes: DecodedProgram(
            read_assembly(text, generation.dialect, lanes), generation
        )
        for lanes in sorted(wanted)
    }


def launch(loaded: LoadedCode, request: LaunchRequest) -> LaunchReport:
    """Runs a kernel to its end. UserError for what a driver refuses."""
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
            # What was found before is most often the cause.
            told = [error.why, *map(str, around.findings.all())]
            error.why = "\n    ".join(text for text in told if text) or None
            raise
    return LaunchReport(around.findings.all(), steps)


def _run_batches(
    loaded: LoadedCode, request: LaunchRequest, around: Surroundings, start: Start
) -> int:
    """How many instructions of waves ran."""
    kernel, steps = loaded.kernel(request.kernel), 0
    watchdog = Watchdog(request.limits)
    program = loaded.program(kernel)
    entry = program.assembly.number_at(kernel.entry)
    if entry is None:
        raise ToolchainError(f"no instruction begins where {kernel.name} does")
    for groups in _batches(around, request.grid, program.assembly.lanes):
        waves = begin_waves(around, loaded.generation, kernel, groups, start)
        execution = Execution(waves, program, entry, watchdog)
        _run(execution)
        steps += execution.steps
        if execution.is_given_up:
            break
    return steps


def _run(execution: Execution) -> None:
    waves = execution.waves
    for observer in waves.around.observers:
        observer.began(waves)
    execution.run()
    if execution.is_given_up:
        return
    for observer in waves.around.observers:
        observer.ended(waves)


@dataclass(frozen=True, slots=True)
class _LaunchData:
    """Bytes that a driver puts into memory for a launch."""

    content: bytes
    # What messages call them.
    label: str


@contextmanager
def _placed(arena: Arena, contents: Sequence[_LaunchData]) -> Iterator[list[int]]:
    """Where bytes lie for the time of a launch. MemoryError, by the name of what found no room."""
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
                remedy="give three whole numbers, 1 where there is nothing along an axis",
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
    threads, most = prod(request.block), min(kernel.most_threads, THREADS_LIMIT)
    if threads > most:
        raise UserError(
            f"{kernel.name} takes {most} threads in a group, not {threads}",
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
    own, more = kernel.descriptor.shared_bytes, request.shared_bytes
    if more < 0 or own + more > SHARED_LIMIT:
        raise UserError(
            f"{kernel.name} asks for {own + more} bytes of shared memory",
            why=f"{own} are its own; a group has {SHARED_LIMIT} at most",
            remedy=f"ask for 0 to {max(0, SHARED_LIMIT - own)} beyond its own",
        )


def _check_private(generation: Generation, kernel: KernelEntry) -> None:
    lanes, asked = generation.lanes(kernel.descriptor), _private_bytes(kernel)
    most = generation.wave_scratch // lanes
    if asked > most:
        raise UserError(
            f"{kernel.name} asks for {asked} bytes of private memory for each thread",
            why=f"a {generation.name} has {most} for each of the {lanes} lanes of a wave",
            remedy="keep large arrays in global memory; or the code object is damaged",
        )


def _private_bytes(kernel: KernelEntry) -> int:
    """Private memory of a lane, with the stack that a driver adds."""
    stack = _DYNAMIC_STACK if kernel.has_dynamic_stack else 0
    return kernel.descriptor.private_bytes + stack


def _check_arguments(kernel: KernelEntry, request: LaunchRequest) -> None:
    explicit = [a for a in kernel.arguments if not a.kind.startswith("hidden")]
    least, given = (
        max((a.offset + a.size for a in explicit), default=0),
        len(request.arguments),
    )
    if given < least:
        raise UserError(
            f"{kernel.name} takes {least} bytes of arguments, not {given}",
            why="they are "
            + ", ".join(f"{a.name or '?'} at {a.offset}" for a in explicit),
            remedy="pack a value for each at its offset",
        )


def _check_extents(kernel: KernelEntry, request: LaunchRequest) -> None:
    """A packet has 32 bits for the threads along each axis."""
    for axis, groups, threads in zip("xyz", request.grid, request.block, strict=True):
        if groups * threads > _MOST_ALONG_AXIS:
            raise UserError(
                f"{kernel.name} is launched with {groups} groups of {threads} threads along {axis}",
                why=f"there can be {_MOST_ALONG_AXIS} threads along an axis",
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
    """Ids of groups, as many together as make a batch."""
    per_group = -(-prod(around.block) // lanes) * lanes
    most = min(_LANES_TOGETHER, _PRIVATE_TOGETHER // max(1, around.private_bytes))
    together = max(1, most // per_group)
    x, y, z = grid
    for start in range(0, x * y * z, together):
        number = np.arange(start, min(start + together, x * y * z))
        yield np.stack([number % x, number // x % y, number // (x * y)], axis=1)


# What the driver lays out in memory.


def _packet(kernel: KernelEntry, request: LaunchRequest, base: int) -> bytes:
    """The packet that a queue has of a launch."""
    work = [
        count * size for count, size in zip(request.grid, request.block, strict=True)
    ]
    descriptor = kernel.descriptor
    return struct.pack(
        "<HH3HHIIIIIQQQQ",
        *(0, 3, *request.block, 0, *work),
        *(descriptor.private_bytes, descriptor.shared_bytes + request.shared_bytes),
        *(base + kernel.descriptor_address, 0, 0, 0),
    )


def _kernarg_segment(kernel: KernelEntry, request: LaunchRequest) -> bytes:
    """The arguments as given, and the hidden ones."""
    size = max(kernel.descriptor.kernarg_bytes, len(request.arguments), 1)
    segment = bytearray(request.arguments.ljust(size, b"\0"))
    for argument in kernel.arguments:
        if argument.kind.startswith("hidden_"):
            value = _hidden(argument.kind, request)
            end = argument.offset + argument.size
            segment[argument.offset : end] = value.to_bytes(argument.size, "little")
    return bytes(segment)


def _hidden(kind: str, request: LaunchRequest) -> int:
    values = {"hidden_grid_dims": 3, "hidden_dynamic_lds_size": request.shared_bytes}
    for axis, name in enumerate("xyz"):
        values[f"hidden_block_count_{name}"] = request.grid[axis]
        values[f"hidden_group_size_{name}"] = request.block[axis]
    return values.get(kind, 0)
