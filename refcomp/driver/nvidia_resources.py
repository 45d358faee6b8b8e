"""The registers and memory that kernels need on an NVIDIA GPU, how many fit, and what to change.

Requires the report of ptxas and, for advice, its kernels at the device level. Every number is read
from the report, except the occupancy, which follows from the others. A kernel that keeps values in
memory instead of registers causes a warning. `explain_failure` says in terms of the kernel what
ptxas refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from refcomp.codegen.signature import machine_symbol
from refcomp.driver.kernel_resources import (
    KernelResources,
    fewer_elements_advice,
    smaller_shared_advice,
    unrolling_advice,
    warn_of_slow_kernel,
)
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import (
    RefcompError,
    ToolchainError,
    Unsupported,
    UserError,
)
from refcomp.ir.constants import as_ints
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import LaunchKernel
from refcomp.toolchain import (
    BlockOccupancy,
    PtxasRecord,
    block_occupancy,
    read_ptxas_report,
)
from refcomp.toolchain.multiprocessor import WARP

# Each dynamic buffer of a launch begins at a multiple of so many bytes.
_DYNAMIC_ALIGNMENT = 128
# A multiprocessor of which fewer lanes are in use hides little latency.
_FEW_LANES = 0.25
_SHARED = re.compile(
    r"Entry function '([^']+)' uses too much shared data "
    r"\((0x[0-9a-f]{1,12}) bytes, (0x[0-9a-f]{1,12}) max\)"
)
_REGISTERS = re.compile(r"Register allocation failed with register count of '(\d+)'")
_FEATURE = re.compile(r"Feature '([^']+)' requires \.target (sm_\w+) or higher")


# Returns advice on what limits the blocks of a kernel, as far as it is known.
_Advise: TypeAlias = Callable[[BlockOccupancy | None], str]


@dataclass(frozen=True, slots=True)
class NvidiaResources(KernelResources):
    """The resources of an NVIDIA GPU that one kernel takes."""

    arch: str  # for which it was compiled
    registers: int  # of a thread
    spill_store_bytes: int  # that a thread writes for want of registers
    spill_load_bytes: int  # that it reads again
    stack_bytes: int  # memory of a thread, spilled registers included
    shared_bytes: int  # static shared memory of a block
    dynamic_bytes: int | None  # shared memory that the launch adds; None if it varies
    constant_bytes: int
    barriers: int  # of a block
    threads: int  # of a block; 0 if the launch decides
    blocks: int | None  # that a multiprocessor holds; None if that is not known
    warps: int | None  # of these blocks
    limit: str  # what allows no more blocks
    advice: str  # what to change; '' if there is nothing to say


def read_resources(
    report: str,
    kernels: Sequence[PrimFunc],
    dynamic_bytes: Mapping[str, int | None] | None = None,
) -> tuple[NvidiaResources, ...]:
    """Return the resources of `kernels`, for each architecture of ptxas's report.

    Args:
        report: the text that ptxas prints.
        kernels: at the device level.
        dynamic_bytes: name of a kernel -> bytes of shared memory that its launch adds, None if
            they vary. Others add none.

    Raises:
        ToolchainError: the report is damaged, or lacks a kernel.
    """
    by_symbol = {machine_symbol(kernel.name): kernel for kernel in kernels}
    records = read_ptxas_report(report)
    missing = by_symbol.keys() - {record.kernel for record in records}
    if missing:
        raise ToolchainError(
            "the report of ptxas cannot be read",
            why=f"it lacks {', '.join(sorted(missing))}",
            remedy="compile again with an empty cache",
        )
    return tuple(
        _resources(record, by_symbol[record.kernel], dynamic_bytes or {})
        for record in records
        if record.kernel in by_symbol
    )


def warn_of_slow_kernels(
    kernels: Sequence[PrimFunc], found: Sequence[NvidiaResources]
) -> None:
    """Warn of each of `kernels` whose threads keep values in memory, once."""
    by_symbol = {machine_symbol(kernel.name): kernel for kernel in kernels}
    for one in found:
        kernel = by_symbol.get(one.kernel)
        if kernel is not None and one.stack_bytes:
            warn_of_slow_kernel(kernel.name, _values_in_memory(one), one.advice)
            del by_symbol[one.kernel]


def explain_failure(
    error: ToolchainError, kernels: Sequence[PrimFunc], arch: str
) -> RefcompError:
    """Return the error that says in terms of `kernels` what ptxas refused; else `error`."""
    if match := _SHARED.search(error.stderr):
        taken = int(match[2], 16)
        most = int(match[3], 16)
        named = [k for k in kernels if machine_symbol(k.name) == match[1]]
        remedy = smaller_shared_advice(named[0]) if named else "use less of it"
        return UserError(
            f"the kernel {match[1]} declares {taken} bytes of shared memory, and a block can have "
            f"{most}",
            where=f"-arch={arch}",
            why="ptxas refuses more static shared memory on this architecture",
            remedy=remedy,
        )
    if match := _FEATURE.search(error.stderr):
        return Unsupported(
            f"{match[1]} needs {match[2]} or newer, and the target is for {arch}",
            where=error.where,
            why="ptxas refuses this instruction for the older architecture",
            remedy=f"build with -arch={match[2]} or newer, or schedule without it",
        )
    if match := _REGISTERS.search(error.stderr):
        return UserError(
            f"the threads of a kernel do not fit into {match[1]} registers each",
            where=f"-arch={arch}",
            why="all threads of a block share 65536 registers",
            remedy="let a block have fewer threads, or a thread compute fewer elements",
        )
    return error


def launched_shared_bytes(programs: Sequence[Program]) -> dict[str, int | None]:
    """Return for each kernel the dynamic shared memory of its launches, at most."""
    found: dict[str, int | None] = {}
    for program in programs:
        for node in walk(program.host.body):
            if isinstance(node, LaunchKernel):
                sizes = as_ints(node.shared_bytes)
                total = None if sizes is None else sum(map(_aligned, sizes))
                found[node.kernel] = _larger(total, found.get(node.kernel, 0))
    return found


def _larger(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def _aligned(size: int) -> int:
    return -(-size // _DYNAMIC_ALIGNMENT) * _DYNAMIC_ALIGNMENT


def launched_resources(
    record: PtxasRecord,
    threads: int,
    dynamic: int | None,
    advise: _Advise | None = None,
) -> NvidiaResources:
    """Return the resources of a kernel in launches with blocks of so many threads.

    Args:
        record: what ptxas says of the kernel.
        threads: of a block; 0 if they are not known.
        dynamic: bytes of shared memory that the launch adds; None if they are not known.
        advise: returns what could make more blocks fit; it is given what limits them, if known.
    """
    held = None
    if threads and dynamic is not None:
        held = block_occupancy(
            record.arch,
            threads=threads,
            registers=record.registers,
            shared_bytes=record.shared_bytes + dynamic,
            barriers=record.barriers,
        )
    return NvidiaResources(
        kernel=record.kernel,
        arch=record.arch,
        registers=record.registers,
        spill_store_bytes=record.spill_store_bytes,
        spill_load_bytes=record.spill_load_bytes,
        stack_bytes=record.stack_bytes,
        shared_bytes=record.shared_bytes,
        dynamic_bytes=dynamic,
        constant_bytes=record.constant_bytes,
        barriers=record.barriers,
        threads=threads,
        blocks=held.blocks if held else None,
        warps=held.warps if held else None,
        limit=held.limit if held else "",
        advice=advise(held) if advise else "",
    )


def _resources(
    record: PtxasRecord, kernel: PrimFunc, launched: Mapping[str, int | None]
) -> NvidiaResources:
    threads = _threads(kernel)
    return launched_resources(
        record,
        threads,
        launched.get(kernel.name, 0),
        lambda held: _advice(record, kernel, threads, held),
    )


def _threads(kernel: PrimFunc) -> int:
    starts = [*kernels_in(kernel.body)]
    if not starts:
        return 1
    block = as_ints(kernel_nest(starts[0]).block)
    return prod(max(1, extent) for extent in block) if block else 0


def _advice(
    record: PtxasRecord, kernel: PrimFunc, threads: int, held: BlockOccupancy | None
) -> str:
    if record.stack_bytes:
        is_spilled = record.spill_store_bytes or record.spill_load_bytes
        unrolling = "" if is_spilled else unrolling_advice(kernel)
        return unrolling or fewer_elements_advice(kernel)
    if held is None or held.blocks * threads > _FEW_LANES * held.most_warps * WARP:
        return ""
    if held.limit == "registers":
        return fewer_elements_advice(kernel)
    if held.limit == "shared memory":
        return smaller_shared_advice(kernel)
    if held.limit == "blocks":
        return "let a block have more threads: bind larger loops to threadIdx"
    return ""


def _values_in_memory(one: NvidiaResources) -> list[str]:
    if one.spill_store_bytes or one.spill_load_bytes:
        stored = counted(one.spill_store_bytes, "byte")
        return [
            f"spills registers to memory on {one.arch} ({stored} stored and "
            f"{one.spill_load_bytes} loaded by a thread)"
        ]
    return [
        f"keeps {counted(one.stack_bytes, 'byte')} of each thread's local memory out of "
        f"registers on {one.arch}"
    ]
