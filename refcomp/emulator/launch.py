"""Code objects loaded and kernels launched: memory and registers as they are when waves begin.

The initial state follows the kernel descriptor alone, as LLVM's "User Guide for AMDGPU Backend"
has it (initial kernel execution state), and what generation.py says of the GPU. Refuses, by
UserError, what a driver would: another machine's code, a group too large, too few bytes of
arguments. By Unsupported a kernel that wants other NaNs than compilers' usual ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from refcomp.emulator.arrays import Array
from refcomp.emulator.assembly import read_assembly
from refcomp.emulator.buffers import wave_bytes
from refcomp.emulator.code_object import CodeObject, Descriptor, Kernel, read_code_object
from refcomp.emulator.execute import Execution
from refcomp.emulator.findings import Finding, Findings
from refcomp.emulator.generation import ARCHITECTURES, GENERATIONS, Generation
from refcomp.emulator.memory import Arena
from refcomp.emulator.observation import Observer
from refcomp.emulator.program import Program
from refcomp.emulator.registers import FIRST_ACCUMULATOR
from refcomp.emulator.waves import Surroundings, Waves
from refcomp.errors import ToolchainError, Unsupported, UserError

SHARED_LIMIT, THREADS_LIMIT = 65536, 1024
USUAL_STEPS = 2_000_000_000
_LANES_TOGETHER = 256 * 64
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
    programs: Mapping[int, Program]
    base: int
    arena: Arena

    @property
    def executed(self) -> frozenset[tuple[str, frozenset[str]]]:
        """The mnemonics and modifiers of all that ran so far."""
        return frozenset().union(*(program.executed for program in self.programs.values()))

    def program(self, kernel: Kernel) -> Program:
        """The instructions as the kernel's waves run them."""
        return self.programs[self.generation.lanes(kernel.descriptor)]

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name. UserError."""
        found = self.code.kernels.get(name)
        if found is None:
            known = ", ".join(sorted(self.code.kernels)) or "none"
            remedy = f"name one of: {known}"
            raise UserError(f"the code object has no kernel {name!r}", remedy=remedy)
        return found


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """`grid` counts groups, `block` the threads of one, `arguments` is the packed buffer without
    hidden ones, `shared_bytes` what is asked for beyond the kernel's own; `observers` see it. At
    the addresses `read_only` begins memory that the kernel is not to write."""

    kernel: str
    grid: Extents
    block: Extents
    arguments: bytes
    shared_bytes: int = 0
    steps: int = USUAL_STEPS
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
    for address, content in code.segments:
        arena.write(place.address + address, content)
    for address, target in code.pointers:
        arena.write(place.address + address, struct.pack("<Q", place.address + target))
    return LoadedCode(code, generation, programs, place.address, arena)


def _programs(code: CodeObject, generation: Generation, text: str) -> dict[int, Program]:
    wanted = {generation.lanes(kernel.descriptor) for kernel in code.kernels.values()}
    return {
        lanes: Program(read_assembly(text, generation.dialect, lanes), generation)
        for lanes in sorted(wanted)
    }


def launch(loaded: LoadedCode, request: LaunchRequest) -> LaunchReport:
    """Runs a kernel to its end. UserError for what a driver refuses."""
    kernel = loaded.kernel(request.kernel)
    _check(kernel, request)
    addresses = [
        _place(loaded.arena, content, label)
        for content, label in (
            (_packet(kernel, request, loaded.base), "the dispatch packet"),
            (_kernarg_segment(kernel, request), "the arguments"),
        )
    ]
    program = loaded.program(kernel)
    around = _surroundings(loaded, kernel, request)
    for observer in request.observers:
        observer.launched(loaded, request)
    steps = 0
    try:
        for groups in _batches(request, program.assembly.lanes):
            waves = _begin(around, loaded, kernel, request, groups, addresses)
            entry = program.assembly.number_at(kernel.entry)
            if entry is None:
                raise ToolchainError(f"no instruction begins where {kernel.name} does")
            execution = Execution(waves, program, entry, request.steps - steps)
            _run(execution)
            steps += execution.steps
    except UserError as error:
        # What was found before is most often the cause.
        told = [error.why, *map(str, around.findings.all())]
        error.why = "\n    ".join(text for text in told if text) or None
        raise
    finally:
        for address in addresses:
            loaded.arena.free(address)
    return LaunchReport(around.findings.all(), steps)


def _run(execution: Execution) -> None:
    waves = execution.waves
    for observer in waves.around.observers:
        observer.began(waves)
    execution.run()
    for observer in waves.around.observers:
        observer.ended(waves)


def _place(arena: Arena, content: bytes, label: str) -> int:
    place = arena.allocate(len(content), label)
    if place is None:
        raise MemoryError(f"no room for {label}")
    arena.write(place.address, content)
    return place.address


def _check(kernel: Kernel, request: LaunchRequest) -> None:
    if min(*request.grid, *request.block) < 1:
        raise UserError(
            f"{kernel.name} is launched with nothing to do",
            where=f"{request.grid} groups of {request.block} threads",
            remedy="give at least one group of one thread, or leave the launch out",
        )
    _check_block(kernel, request)
    _check_shared(kernel, request)
    _check_extents(kernel, request)
    _check_arguments(kernel, request)
    if not kernel.descriptor.has_usual_nans:
        why = "DX10_CLAMP and IEEE_MODE of its descriptor are not both 1"
        raise Unsupported(f"{kernel.name} wants other NaNs than the usual", why=why)


def _check_block(kernel: Kernel, request: LaunchRequest) -> None:
    threads, most = prod(request.block), min(kernel.most_threads, THREADS_LIMIT)
    if threads > most:
        raise UserError(
            f"{kernel.name} takes {most} threads in a group, not {threads}",
            why="no GPU takes more" if most == THREADS_LIMIT else "it was compiled for so many",
            remedy="launch smaller groups",
        )
    if kernel.block and tuple(kernel.block) != request.block:
        raise UserError(
            f"{kernel.name} takes groups of {kernel.block}, not {request.block}",
            why="it was compiled for these alone",
            remedy="launch such groups, or compile it for others",
        )


def _check_shared(kernel: Kernel, request: LaunchRequest) -> None:
    own, more = kernel.descriptor.shared_bytes, request.shared_bytes
    if more < 0 or own + more > SHARED_LIMIT:
        raise UserError(
            f"{kernel.name} asks for {own + more} bytes of shared memory",
            why=f"{own} are its own; a group has {SHARED_LIMIT} at most",
            remedy=f"ask for 0 to {max(0, SHARED_LIMIT - own)} beyond its own",
        )


def _check_arguments(kernel: Kernel, request: LaunchRequest) -> None:
    explicit = [a for a in kernel.arguments if not a.kind.startswith("hidden")]
    least, given = max((a.offset + a.size for a in explicit), default=0), len(request.arguments)
    if given < least:
        raise UserError(
            f"{kernel.name} takes {least} bytes of arguments, not {given}",
            why="they are " + ", ".join(f"{a.name or '?'} at {a.offset}" for a in explicit),
            remedy="pack a value for each at its offset",
        )


def _check_extents(kernel: Kernel, request: LaunchRequest) -> None:
    """A packet has 32 bits for the threads along each axis."""
    for axis, groups, threads in zip("xyz", request.grid, request.block, strict=True):
        if groups * threads > _MOST_ALONG_AXIS:
            raise UserError(
                f"{kernel.name} is launched with {groups} groups of {threads} threads along {axis}",
                why=f"there can be {_MOST_ALONG_AXIS} threads along an axis",
                remedy="give some of the groups to another axis",
            )


def _surroundings(loaded: LoadedCode, kernel: Kernel, request: LaunchRequest) -> Surroundings:
    descriptor = kernel.descriptor
    stack = _DYNAMIC_STACK if kernel.has_dynamic_stack else 0
    return Surroundings(
        arena=loaded.arena,
        assembly=loaded.program(kernel).assembly,
        base=loaded.base,
        kernel=kernel.name,
        block=request.block,
        shared_bytes=descriptor.shared_bytes + request.shared_bytes,
        private_bytes=descriptor.private_bytes + stack,
        is_watched=loaded.arena.bytes.known is not None,
        findings=Findings(),
        observers=request.observers,
    )


def _batches(request: LaunchRequest, lanes: int) -> Iterator[Array]:
    """Ids of groups, as many together as make a batch."""
    per_group = -(-prod(request.block) // lanes)
    together = max(1, _LANES_TOGETHER // (per_group * lanes))
    x, y, z = request.grid
    for start in range(0, x * y * z, together):
        number = np.arange(start, min(start + together, x * y * z))
        yield np.stack([number % x, number // x % y, number // (x * y)], axis=1)


# Registers as waves find them.


def _begin(
    around: Surroundings,
    loaded: LoadedCode,
    kernel: Kernel,
    request: LaunchRequest,
    groups: Array,
    addresses: Sequence[int],
) -> Waves:
    threads, generation = prod(request.block), loaded.generation
    lanes = generation.lanes(kernel.descriptor)
    per_group = -(-threads // lanes)
    item = np.arange(per_group * lanes).reshape(per_group, lanes)
    existing = np.tile(item < threads, (len(groups), 1))
    vectors = generation.vectors(kernel.descriptor)
    waves = Waves(around, vectors, existing, groups, _unused(kernel.descriptor, vectors))
    waves.initialise_mask(existing)
    waves.set_modes(kernel.descriptor.float_mode)
    x, y, _ = request.block
    packed = item % x | item // x % y << 10 | item // (x * y) << 20
    waves.initialise_vector(0, np.tile(packed.astype(np.uint32), (len(groups), 1)))
    ids = np.repeat(groups, per_group, axis=0).astype(np.uint32)
    for number, value in enumerate(_scalars(generation, kernel, around, ids, addresses)):
        if value is not None:
            waves.initialise_scalar(number, value)
    return waves


def _unused(descriptor: Descriptor, vectors: int) -> slice:
    """The numbers between the kernel's own vector registers and its accumulators, if it has any."""
    own = descriptor.first_accumulator if vectors > FIRST_ACCUMULATOR else 0
    return slice(own, FIRST_ACCUMULATOR if own else 0)


def _scalars(
    generation: Generation,
    kernel: Kernel,
    around: Surroundings,
    ids: Array,
    addresses: Sequence[int],
) -> list[Array | np.uint32 | None]:
    """What stands in the scalar registers from 0 on; None: nothing."""
    properties, descriptor = kernel.descriptor.properties, kernel.descriptor
    packet, kernarg = addresses
    private = around.private_bytes
    user: list[Array | np.uint32 | None] = []
    # Bit of the properties, and what it puts into registers.
    parts: list[tuple[int, list[np.uint32 | None]]] = [
        (0, [None] * 4),
        (1, _halves(packet)),
        (2, [None] * 2),
        (3, _halves(kernarg)),
        (4, _halves(0)),
        (5, [None] * 2),
        (6, [np.uint32(private)]),
    ]
    for bit, values in parts:
        given = [np.uint32(word) for word in generation.start.get(bit, ())]
        user += (given or values) if properties >> bit & 1 else []
    if descriptor.preload:
        raise Unsupported(f"{kernel.name} wants its arguments in registers")
    user += [None] * (descriptor.user_sgprs - len(user))
    system = [ids[:, axis] for axis in range(3) if descriptor.rsrc2 >> (7 + axis) & 1]
    if generation.has_wave_offset and descriptor.rsrc2 & 1:
        each = wave_bytes(private, generation.lanes(descriptor))
        system.append(np.arange(len(ids), dtype=np.uint32) * np.uint32(each))
    return [*user[: descriptor.user_sgprs], *system]


def _halves(address: int) -> list[np.uint32 | None]:
    return [np.uint32(address & 0xFFFFFFFF), np.uint32(address >> 32)]


# What the driver lays out in memory.


def _packet(kernel: Kernel, request: LaunchRequest, base: int) -> bytes:
    """The packet that a queue has of a launch."""
    work = [count * size for count, size in zip(request.grid, request.block, strict=True)]
    descriptor = kernel.descriptor
    return struct.pack(
        "<HH3HHIIIIIQQQQ",
        *(0, 3, *request.block, 0, *work),
        *(descriptor.private_bytes, descriptor.shared_bytes + request.shared_bytes),
        *(base + kernel.descriptor_address, 0, 0, 0),
    )


def _kernarg_segment(kernel: Kernel, request: LaunchRequest) -> bytes:
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
