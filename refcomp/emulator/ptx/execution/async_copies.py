"""Asynchronous copies from global to shared memory: cp.async.

cp.async.cg.shared.global [%r1], [%rd1], 16;    cp.async.commit_group;    cp.async.wait_group 1;

The bytes are copied at once. They are *in flight* until the thread has waited for them. An access
to bytes in flight is a finding. So a missing wait is found in every order of threads.

Source: NVIDIA, "Parallel Thread Execution ISA", section "cp.async".
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.execution.accesses import (
    Names,
    address_source,
    check_address,
)
from refcomp.emulator.ptx.execution.bulk_copies import bind_bulk_copy
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
from refcomp.emulator.ptx.text.module import Immediate, PtxInstruction
from refcomp.foundation.errors import Unsupported


def bind_async_copy(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Return an instruction of asynchronous copies as a function."""
    modifiers = instruction.modifiers
    if modifiers[0] == "async" and "bulk" in modifiers:
        return bind_bulk_copy(instruction, registers, names)
    if modifiers[:2] == ("async", "mbarrier"):
        return _bind_arrival(instruction, registers, names)
    if modifiers[0] != "async":
        raise Unsupported(
            f"cp.{'.'.join(modifiers)} is not emulated",
            where=f"line {instruction.line}: {instruction.text}",
            remedy="run the kernel on a GPU, or copy by cp.async, and reduce by atomics",
        )
    if "commit_group" in modifiers:
        return lambda threads: threads.pending_copies().commit(threads.numbers())
    if "wait_all" in modifiers:
        return lambda threads: threads.pending_copies().wait(threads.numbers(), -1)
    if "wait_group" in modifiers:
        (count,) = instruction.operands
        assert isinstance(count, Immediate)
        pending = count.bits
        return lambda threads: threads.pending_copies().wait(threads.numbers(), pending)
    return _bind_copy(instruction, registers, names)


def _bind_copy(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    target, origin, count, *rest = instruction.operands
    assert isinstance(count, Immediate)
    size = count.bits
    to = address_source(instruction, target, "shared", registers, names)
    since = address_source(instruction, origin, "global", registers, names)
    sizes = source(instruction, rest[0], "u32", registers) if rest else None

    def copy(threads: BlockThreads) -> None:
        many = threads.size()
        taken = np.full(many, size)
        if sizes is not None:
            check_written(threads, instruction, sizes, "the size of a copy")
            taken = np.broadcast_to(threads.pick(sizes.value(threads)), many).astype(
                np.int64
            )
        addresses = np.broadcast_to(check_address(threads, instruction, since), many)
        data = np.zeros((many, size), np.uint8)
        known = np.full((many, size), 0xFF, np.uint8)
        some = np.flatnonzero(taken > 0)
        if len(some):
            before = threads.at, threads.lanes
            threads.at = threads.lanes = threads.numbers()[some]
            (place,) = threads.places(
                instruction, addresses[some], "global", size, is_load=True
            )
            if threads.around.observers:
                threads.show(
                    instruction, [place], size, is_store=False, is_strong=False
                )
            threads.at, threads.lanes = before
            step = np.arange(size)
            index = place.offsets[:, None] + step
            inside = step < taken[some][:, None]
            data[some] = np.where(inside, place.memory.data[index], 0)
            if place.memory.known is not None:
                known[some] = np.where(inside, place.memory.known[index], 0xFF)
        goal = np.broadcast_to(check_address(threads, instruction, to), many)
        (place,) = threads.places(instruction, goal, "shared", size, is_load=False)
        if threads.around.observers:
            threads.show(instruction, [place], size, is_store=True, is_strong=False)
        _put(place, data, known)
        threads.pending_copies().begin(threads.numbers(), place.offsets, size)

    return copy


def _bind_arrival(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Let a barrier (mbarrier) wait for the copies that threads have begun.

    With .noinc, the arrival is one of those for which the barrier was initialized. Without it, the
    phase expects an additional arrival, which is made at once.
    """
    address = phase_barrier_address(instruction, 0, registers, names)
    counts = "noinc" in instruction.modifiers

    def arrive(threads: BlockThreads) -> None:
        for offset, users in barriers_at(threads, instruction, address):
            barrier = known_barrier(threads, instruction, offset, users)
            if barrier is None:
                continue
            threads.pending_copies().hand_over(
                threads.numbers()[users], offset, barrier.phase
            )
            release_at(threads, offset, barrier.phase, users)
            for _ in users if counts else ():
                barrier.arrive(1)

    return arrive


def _put(place: CheckedPlace, data: Array, known: Array) -> None:
    index = place.offsets[:, None] + np.arange(data.shape[1])
    place.memory.data[index] = data
    if place.memory.known is not None:
        place.memory.known[index] = known
