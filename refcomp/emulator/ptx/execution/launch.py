"""Loads PTX into the memory of an emulated GPU, and launches its kernels.

Refuses, by UserError, the launches that NVIDIA's driver refuses: blocks that are too large, too few
bytes of parameters, more shared memory than a block may have.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple, Protocol

import numpy as np

from refcomp.emulator.limits import USUAL_LIMITS, Limits, Watchdog
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.ptx.execution.confirmation import confirmed_findings
from refcomp.emulator.ptx.execution.execute import ThreadExecution
from refcomp.emulator.ptx.execution.program import BoundFunction, BoundProgram
from refcomp.emulator.ptx.execution.runtime_functions import heap_allocations
from refcomp.emulator.ptx.machine.findings import Extents, PtxFinding, PtxFindings
from refcomp.emulator.ptx.machine.observation import PtxObserver
from refcomp.emulator.ptx.machine.spaces import SpaceLayout, lay_out
from refcomp.emulator.ptx.machine.threads import WARP, BlockThreads, LaunchSurroundings
from refcomp.emulator.ptx.text.module import PtxFunction, PtxModule
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.emulator.ptx.text.reach import reached_functions
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise

THREADS_LIMIT = 1024  # of a block
SHARED_LIMIT = 227 << 10  # bytes of a block, on an sm_90
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_BLOCK = (1024, 1024, 64)
_BATCH_THREADS = 1 << 14
_STACK_BYTES = 1 << 10  # local memory of a thread for calls, besides the kernel's own
_RESERVED_BYTES = 1 << 10  # shared memory that CUDA reserves for itself
_PARAMETER_BYTES = 32764  # of a kernel, at most


class RanBlocks(NamedTuple):
    """The outcome of running blocks without the interpreter."""

    blocks: int  # the number of given blocks that have ended: the first ones
    steps: int  # as in `PtxReport`


class BlockRunner(Protocol):
    """Runs blocks without the interpreter."""

    def run(
        self,
        around: LaunchSurroundings,
        kernel: BoundFunction,
        blocks: Array,
        limits: Limits,
        /,
    ) -> RanBlocks:
        """Run the first of some blocks. The others are interpreted."""
        ...

    def interpreted(
        self, kernel: BoundFunction, is_watched: bool, steps: int, /
    ) -> None:
        """Record the `steps` that the interpreter ran."""
        ...


@dataclass(frozen=True, slots=True)
class LoadedPtx:
    """A PTX file in the memory of an emulated GPU.

    Attributes:
        symbols: the address of each variable and of each function.
        runner: runs blocks where it can; None: all blocks are interpreted.
    """

    module: PtxModule
    program: BoundProgram
    arena: Arena
    symbols: Mapping[str, int]
    runner: BlockRunner | None = None

    def kernel(self, name: str) -> BoundFunction:
        """Return the kernel of a name. UserError if there is none."""
        return self.program.functions[find_kernel(self.module, name).name]

    def release(self) -> None:
        """Free the memory of variables. After that, no kernel may be launched."""
        for address in self.symbols.values():
            self.arena.free(address)


def find_kernel(module: PtxModule, name: str) -> PtxFunction:
    """Return the kernel of a name. UserError if there is none."""
    found = module.functions.get(name)
    if found is None or not found.is_entry or found.is_declaration:
        kernels = [
            one.name
            for one in module.functions.values()
            if one.is_entry and not one.is_declaration
        ]
        known = f"name one of: {', '.join(sorted(kernels)) or 'none'}"
        raise UserError(
            f"the PTX has no kernel {name!r}", remedy=advise(name, kernels, known)
        )
    return found


@dataclass(frozen=True, slots=True)
class PtxLaunch:
    """A request to launch a kernel.

    Attributes:
        grid: the number of blocks along x, y and z.
        block: the number of threads of a block along x, y and z.
        parameters: the bytes of all parameters, laid out by `parameter_layout`.
        dynamic_bytes: shared memory of a block, besides the kernel's own.
        read_only: addresses of allocations that the kernel must not write.
    """

    kernel: str
    grid: Extents
    block: Extents
    parameters: bytes
    dynamic_bytes: int = 0
    limits: Limits = USUAL_LIMITS
    observers: tuple[PtxObserver, ...] = ()
    read_only: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PtxReport:
    """The outcome of a launch.

    Attributes:
        findings: the errors of the kernel.
        steps: the instructions that ran, each counted once for each warp.
        printed: what the kernel printed. It went to the standard output, too.
        unfreed: the bytes of each piece of memory that the kernel got by malloc and did not free.
            It is no finding, since another kernel may free it.
    """

    findings: tuple[PtxFinding, ...]
    steps: int
    printed: str = ""
    unfreed: tuple[int, ...] = ()


def load_ptx(arena: Arena, text: str) -> LoadedPtx:
    """Load a PTX file.

    Args:
        arena: memory of the GPU.
        text: the file.

    Raises:
        DamagedPtx: `text` is not PTX.
        Unsupported: `text` is PTX that is not emulated.
        MemoryError: there is too little memory.
    """
    module = read_ptx(text)
    program = BoundProgram(module)
    placed = [one for one in module.variables if one.space in ("global", "const")]
    for function in module.functions.values():
        placed += [
            one for one in function.variables if one.space in ("global", "const")
        ]
    symbols: dict[str, int] = {}
    for variable in placed:
        symbols[variable.name] = _allocate(
            arena, max(variable.bytes, 1), f"the variable {variable.name}"
        )
    for number, name in enumerate(module.functions):
        symbols[name] = number + 1  # only calls take such an address
    for variable in placed:
        data = bytearray(variable.initial.ljust(variable.bytes, b"\0"))
        for one in variable.addresses:
            address = symbols.get(one.symbol, 0) + one.addend
            data[one.place : one.place + one.size] = address.to_bytes(8, "little")[
                : one.size
            ]
        if data:
            arena.write(symbols[variable.name], bytes(data))
    return LoadedPtx(module, program, arena, symbols)


def _allocate(arena: Arena, size: int, label: str) -> int:
    found = arena.allocate(size, label)
    if found is None:
        raise MemoryError(f"no room for {label}")
    return found.address


def parameter_layout(kernel: PtxFunction) -> SpaceLayout:
    """Return the offsets of the parameters of a kernel among their bytes."""
    return lay_out(kernel.parameters)


def launch(loaded: LoadedPtx, request: PtxLaunch) -> PtxReport:
    """Run a kernel, and return the findings.

    Raises:
        UserError: a driver would refuse the launch, or the kernel stopped by a trap.
        Unsupported: an instruction that runs is not emulated.
        MemoryError: there is too little memory.
    """
    printed: list[str] = []
    reports: list[PtxReport] = []
    earlier = {one.address for one in heap_allocations(loaded.arena)}

    def run(observers: tuple[PtxObserver, ...]) -> tuple[PtxFinding, ...]:
        # A second run prints the same again, which is dropped.
        texts: list[str] = [] if reports else printed
        again = replace(request, observers=observers)
        reports.append(_run(loaded, again, texts))
        return reports[-1].findings

    try:
        findings = confirmed_findings(loaded.arena, request.observers, run)
    finally:
        sys.stdout.write("".join(printed))
    unfreed = tuple(
        one.size for one in heap_allocations(loaded.arena) if one.address not in earlier
    )
    return replace(reports[0], findings=findings, unfreed=unfreed)


def _run(loaded: LoadedPtx, request: PtxLaunch, printed: list[str]) -> PtxReport:
    """Run a kernel once, and append what it prints to `printed`."""
    kernel = loaded.kernel(request.kernel)
    layout = parameter_layout(kernel.function)
    shared = loaded.program.shared_of(request.kernel)
    reserved = _reserved_bytes(loaded.module, request.kernel)
    shared_bytes = _shared_bytes(shared, request.dynamic_bytes, reserved)
    _check(request, kernel.function, layout, shared_bytes)
    arena = loaded.arena
    address = _allocate(arena, max(layout.bytes, 1), "the parameters of the kernel")
    try:
        if layout.bytes:
            arena.write(address, request.parameters[: layout.bytes])
        symbols = {**loaded.symbols, **shared.offsets}
        for name, offset in layout.offsets.items():
            symbols[name] = address + offset
        calls = len(loaded.program.functions) > 1
        around = LaunchSurroundings(
            arena=arena,
            kernel=request.kernel,
            grid=request.grid,
            block=request.block,
            shared_bytes=shared_bytes,
            dynamic_bytes=request.dynamic_bytes,
            local_bytes=kernel.local.bytes + calls * _STACK_BYTES,
            symbols=symbols,
            is_watched=arena.bytes.known is not None,
            findings=PtxFindings(),
            observers=request.observers,
            read_only=_extents_of(arena, request.read_only),
            reserved_bytes=reserved,
            printed=printed,
        )
        for observer in request.observers:
            observer.launched(
                loaded.module, request.grid, request.block, arena.extent()
            )
        watchdog = Watchdog(request.limits, "thread of any warp")
        steps = 0
        for blocks in _batches(request):
            if loaded.runner is not None:
                ran = loaded.runner.run(around, kernel, blocks, request.limits)
                steps += ran.steps
                if ran.blocks:
                    watchdog.restart()
                blocks = blocks[ran.blocks :]
                if not len(blocks):
                    continue
            threads = BlockThreads(around, blocks)
            for observer in request.observers:
                observer.began(threads)
            execution = ThreadExecution(threads, loaded.program, kernel, watchdog)
            execution.run()
            steps += execution.steps
            if loaded.runner is not None:
                loaded.runner.interpreted(kernel, around.is_watched, execution.steps)
            if execution.is_given_up:
                break
        return PtxReport(around.findings.all(), steps, "".join(printed))
    finally:
        arena.free(address)


def _shared_bytes(shared: SpaceLayout, dynamic: int, reserved: int) -> int:
    """Return the shared memory of a block, of which the last bytes are reserved."""
    size = max(shared.bytes + dynamic, shared.padded)
    return -(-size // 16) * 16 + reserved if reserved else size


def _reserved_bytes(module: PtxModule, kernel: str) -> int:
    """Return the bytes of shared memory that CUDA reserves, if a kernel uses them, else 0.

    Cooperative groups of several warps do.
    """
    for function in reached_functions(module, kernel):
        for one in function.instructions:
            if any("%reserved_smem" in str(operand) for operand in one.operands):
                return _RESERVED_BYTES
    return 0


def _extents_of(arena: Arena, addresses: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the begin and the end of each allocation that contains one of the addresses."""
    found = [arena.allocation_at(address) for address in addresses]
    return tuple((one.address, one.end) for one in found if one is not None)


def _batches(request: PtxLaunch) -> Iterator[Array]:
    """Yield the numbers of the blocks of each batch, [block, axis]. A batch runs together."""
    per_block = -(-prod(request.block) // WARP) * WARP
    many = max(1, _BATCH_THREADS // per_block)
    x, y, _ = request.grid
    count = prod(request.grid)
    for first in range(0, count, many):
        number = np.arange(first, min(first + many, count))
        yield np.stack([number % x, number // x % y, number // (x * y)], axis=1)


def _check(
    request: PtxLaunch, kernel: PtxFunction, layout: SpaceLayout, shared_bytes: int
) -> None:
    """Refuse a launch that NVIDIA's driver refuses."""
    for what, extents, most in (
        ("grid", request.grid, _MAX_GRID),
        ("block", request.block, _MAX_BLOCK),
    ):
        if len(extents) != 3 or any(
            not 0 < one <= top for one, top in zip(extents, most, strict=True)
        ):
            raise UserError(
                f"a {what} of {extents} cannot be launched",
                why=f"each extent is at least 1, at most {most}",
                remedy="launch fewer along this axis",
            )
    if prod(request.block) > THREADS_LIMIT:
        raise UserError(
            f"a block of {prod(request.block)} threads cannot be launched",
            why=f"a block has at most {THREADS_LIMIT} threads",
            remedy="launch more blocks of fewer threads",
        )
    needed = kernel.limits.get("reqntid")
    if needed and tuple(needed) + (1,) * (3 - len(needed)) != request.block:
        raise UserError(
            f"{kernel.name} cannot be launched with blocks of {request.block} threads",
            why=f"it was compiled for blocks of {needed} threads (.reqntid)",
            remedy="launch it with blocks of that many",
        )
    most_threads = prod(kernel.limits.get("maxntid", (THREADS_LIMIT,)))
    if prod(request.block) > most_threads:
        raise UserError(
            f"{kernel.name} cannot be launched with blocks of {prod(request.block)} threads",
            why=f"it was compiled for at most {most_threads} (.maxntid)",
            remedy="launch smaller blocks, or compile it with larger __launch_bounds__",
        )
    if shared_bytes > SHARED_LIMIT:
        raise UserError(
            f"a block of {kernel.name} needs {shared_bytes} bytes of shared memory",
            why=f"a block has at most {SHARED_LIMIT}",
            remedy="use smaller tiles",
        )
    if len(request.parameters) < layout.bytes:
        raise UserError(
            f"{kernel.name} takes {counted(layout.bytes, 'byte')} of parameters, not "
            f"{len(request.parameters)}",
            remedy="pass all parameters",
        )
