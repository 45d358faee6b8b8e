"""Bulk copies: one thread copies many bytes, and waits at a barrier or for a group of copies.

cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 4096, [%r2];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 4096;

The bytes are copied at once. In shared memory they are in flight until a thread has waited for the
phase of the barrier. A missing wait for a group of copies out of shared memory is not found.

Source: NVIDIA, "Parallel Thread Execution ISA", section "cp.async.bulk".
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.code.findings import MISALIGNED
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.execution.accesses import (
    AddressSource,
    Names,
    address_source,
    check_address,
)
from refcomp.emulator.ptx.execution.mbarriers import (
    barriers_at,
    known_barrier,
    phase_barrier_address,
    release_at,
)
from refcomp.emulator.ptx.execution.operands import (
    NumberedRegisters,
    Run,
    check_written,
    source,
)
from refcomp.emulator.ptx.machine.threads import BlockThreads, CheckedPlace
from refcomp.emulator.ptx.text.module import PtxInstruction
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import Unsupported

_PIECE = 16  # bytes; sizes and addresses are multiples of it
_REFUSED = ("tensor", "multicast::cluster", "cp_mask")


def bind_bulk_copy(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Return an instruction of bulk copies as a function."""
    modifiers = instruction.modifiers
    if not {"commit_group", "wait_group", "prefetch"}.isdisjoint(modifiers):
        return lambda threads: None  # the bytes of a group have been copied already
    spaces = [one.partition("::")[0] for one in modifiers if _is_space(one)]
    refused = [one for one in _REFUSED if one in modifiers]
    if refused or len(spaces) != 2:
        raise Unsupported(
            f"cp.{'.'.join(modifiers)} is not emulated",
            where=f"line {instruction.line}: {instruction.text}",
            why="tensor maps, masks and blocks of a cluster are not emulated",
            remedy="run the kernel on a GPU, or copy by cp.async or cp.async.bulk of plain bytes "
            "within the block",
        )
    target, origin, count, *rest = instruction.operands
    to = address_source(instruction, target, spaces[0], registers, names)
    since = address_source(instruction, origin, spaces[1], registers, names)
    size = source(instruction, count, "u32", registers)
    barrier = None
    if "mbarrier::complete_tx::bytes" in modifiers and rest:
        barrier = phase_barrier_address(instruction, 3, registers, names, "shared")

    def copy(threads: BlockThreads) -> None:
        check_written(threads, instruction, size, "the size of a copy")
        sizes = np.broadcast_to(
            threads.pick(np.asarray(size.value(threads))), threads.size()
        ).astype(np.int64)
        odd = sizes % _PIECE != 0
        if odd.any():
            copied = counted(int(sizes[odd][0]), "byte")
            what = f"copies {copied}, which is not a multiple of {_PIECE}"
            threads.report(MISALIGNED, instruction, what, odd)
        # Pieces beyond shared memory are out of bounds. Checking the first of them is enough.
        limit = threads.around.shared_bytes // _PIECE + 1
        pieces = np.minimum(sizes // _PIECE, limit)
        if not pieces.any():
            return
        read = _places(threads, instruction, since, spaces[1], pieces, is_load=True)
        written = _places(threads, instruction, to, spaces[0], pieces, is_load=False)
        _copy(read, written)
        if barrier is not None:
            _announce(threads, instruction, barrier, written.offsets, pieces, sizes)

    return copy


def _is_space(modifier: str) -> bool:
    return modifier.partition("::")[0] in ("global", "shared")


def _places(
    threads: BlockThreads,
    instruction: PtxInstruction,
    address: AddressSource,
    space: str,
    pieces: Array,
    *,
    is_load: bool,
) -> CheckedPlace:
    """Check the accesses to the pieces of all threads, and return their places."""
    begins = np.broadcast_to(
        check_address(threads, instruction, address), threads.size()
    )
    firsts = np.cumsum(pieces) - pieces
    steps = np.arange(int(pieces.sum())) - np.repeat(firsts, pieces)
    addresses = np.repeat(begins, pieces) + (steps * _PIECE).astype(np.uint64)
    before = threads.at, threads.lanes
    threads.at = threads.lanes = np.repeat(threads.numbers(), pieces)
    try:
        (place,) = threads.places(
            instruction, addresses, space, _PIECE, is_load=is_load
        )
        if threads.around.observers:
            threads.show(
                instruction, [place], _PIECE, is_store=not is_load, is_strong=False
            )
    finally:
        threads.at, threads.lanes = before
    return place


def _copy(read: CheckedPlace, written: CheckedPlace) -> None:
    step = np.arange(_PIECE)
    index = read.offsets[:, None] + step
    at = written.offsets[:, None] + step
    written.memory.data[at] = read.memory.data[index]
    if written.memory.known is not None and read.memory.known is not None:
        written.memory.known[at] = read.memory.known[index]


def _announce(
    threads: BlockThreads,
    instruction: PtxInstruction,
    address: AddressSource,
    offsets: Array,
    pieces: Array,
    sizes: Array,
) -> None:
    """Record at the barriers of the threads that their bytes are in flight, and have arrived."""
    begins = np.cumsum(pieces) - pieces
    for offset, users in barriers_at(threads, instruction, address, "shared"):
        barrier = known_barrier(threads, instruction, offset, users)
        if barrier is None:
            continue
        release_at(threads, offset, barrier.phase, users)
        for user in users:
            size = int(pieces[user]) * _PIECE
            if size:
                first = int(offsets[begins[user]])
                threads.pending_copies().begin_bulk(first, size, offset, barrier.phase)
            barrier.expect(-int(sizes[user]))
