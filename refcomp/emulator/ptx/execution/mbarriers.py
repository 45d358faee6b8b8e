"""Barriers in shared memory (mbarrier). Threads arrive at them, and wait for the end of a phase.

mbarrier.init.shared.b64 [%r1], 64;           mbarrier.arrive.shared.b64 %rd1, [%r1];
mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 4096;
mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;

A phase ends when two conditions hold: as many threads have arrived as `init` requires, and all
bytes that `expect_tx` announced have arrived. Copies end at once here, so in fact threads only wait
for arrivals. The events before an arrival happen before the events after a wait for its phase.

Source: NVIDIA, "Parallel Thread Execution ISA", section "mbarrier".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from refcomp.emulator.code.findings import BARRIER
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.execution.accesses import (
    AddressSource,
    Names,
    address_source,
    check_address,
    space_of,
)
from refcomp.emulator.ptx.execution.operands import (
    NumberedRegisters,
    Run,
    SourceOperand,
    check_written,
    result,
    source,
)
from refcomp.emulator.ptx.machine.phases import PhaseBarrier
from refcomp.emulator.ptx.machine.threads import BlockThreads
from refcomp.emulator.ptx.text.module import Immediate, PtxInstruction, Sink
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import Unsupported

_BYTES = 8  # of a barrier
_ONE = Immediate("int", 1)


def bind_phase_barrier(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Return an instruction `mbarrier` as a function."""
    action = instruction.modifiers[0]
    if action == "pending_count":
        return _bind_pending_count(instruction, registers)
    bind = _BINDERS.get(action)
    if bind is None or "cluster" in instruction.modifiers:
        raise Unsupported(
            f"mbarrier.{'.'.join(instruction.modifiers)} is not emulated",
            where=f"line {instruction.line}: {instruction.text}",
            why="blocks are emulated without the others of a cluster",
            remedy="run the kernel on a GPU, or let it wait within its block",
        )
    return bind(instruction, registers, names)


def phase_barrier_address(
    instruction: PtxInstruction,
    number: int,
    registers: NumberedRegisters,
    names: Names,
    space: str | None = None,
) -> AddressSource:
    """Return the operand `number` as the address of a barrier."""
    space = space_of(instruction) if space is None else space
    operand = instruction.operands[number]
    return address_source(instruction, operand, space, registers, names)


def barriers_at(
    threads: BlockThreads,
    instruction: PtxInstruction,
    address: AddressSource,
    space: str | None = None,
    *,
    is_plain: bool = False,
) -> Iterator[tuple[int, Array]]:
    """Yield the offset of each barrier in shared memory, and the threads that use the barrier.

    The threads are indices among those that run. Accesses are checked, and shown to observers:
    initialization as a plain store, and other uses as loads that do not race with each other.
    """
    addresses = np.broadcast_to(
        check_address(threads, instruction, address), threads.size()
    )
    space = space_of(instruction) if space is None else space
    places = threads.places(instruction, addresses, space, _BYTES, is_load=False)
    if threads.around.observers:
        threads.show(
            instruction, places, _BYTES, is_store=is_plain, is_strong=not is_plain
        )
    for place in places:
        if place.memory is not threads.shared:
            what = "uses a barrier outside of shared memory"
            every = np.ones(len(np.atleast_1d(place.offsets)), np.bool_)
            threads.report(BARRIER, instruction, what, every, place.taken)
            continue
        offsets = np.broadcast_to(place.offsets, threads.size())
        for offset in np.unique(offsets):
            users = np.flatnonzero(offsets == offset)
            yield int(offset), users if place.taken is None else place.taken[users]


def known_barrier(
    threads: BlockThreads, instruction: PtxInstruction, offset: int, users: Array
) -> PhaseBarrier | None:
    """Return the barrier at an offset. If none was initialized there, report it and return None."""
    found = threads.phase_barriers.get(offset)
    if found is None:
        what = "uses a barrier (mbarrier) that nothing has initialized"
        threads.report(BARRIER, instruction, what, np.ones(len(users), np.bool_), users)
    return found


def release_at(threads: BlockThreads, offset: int, phase: int, users: Array) -> None:
    """Show observers that threads arrive at the barrier at an offset, in a phase of it."""
    for observer in threads.around.observers:
        observer.released(
            threads, threads.numbers()[users], ("mbarrier", offset, phase)
        )


def _values(
    threads: BlockThreads, instruction: PtxInstruction, one: SourceOperand
) -> Array:
    check_written(threads, instruction, one, "an operand of a barrier (mbarrier)")
    value = threads.pick(np.asarray(one.value(threads)))
    return np.broadcast_to(value, threads.size()).astype(np.int64)


def _bind_init(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    address = phase_barrier_address(instruction, 0, registers, names)
    count = source(instruction, instruction.operands[1], "u32", registers)

    def init(threads: BlockThreads) -> None:
        counts = _values(threads, instruction, count)
        for offset, users in barriers_at(threads, instruction, address, is_plain=True):
            threads.phase_barriers[offset] = PhaseBarrier(int(counts[users[-1]]))
            if threads.shared.known is not None:
                threads.shared.known[offset : offset + _BYTES] = 0xFF

    return init


def _bind_inval(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    address = phase_barrier_address(instruction, 0, registers, names)

    def invalidate(threads: BlockThreads) -> None:
        for offset, users in barriers_at(threads, instruction, address, is_plain=True):
            if known_barrier(threads, instruction, offset, users) is not None:
                del threads.phase_barriers[offset]

    return invalidate


def _bind_arrive(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Bind arrive and arrive_drop, with or without expect_tx."""
    modifiers = instruction.modifiers
    target, _, *rest = instruction.operands
    address = phase_barrier_address(instruction, 1, registers, names)
    expects = "expect_tx" in modifiers
    number = source(instruction, rest[0] if rest else _ONE, "u32", registers)
    write = result(instruction, target or Sink(), "b64", registers)
    drops = modifiers[0] == "arrive_drop"

    def arrive(threads: BlockThreads) -> None:
        numbers = _values(threads, instruction, number)
        states = np.zeros(threads.size(), np.uint64)
        for offset, users in barriers_at(threads, instruction, address):
            barrier = known_barrier(threads, instruction, offset, users)
            if barrier is None:
                continue
            arrivals: dict[
                int, list[int]
            ] = {}  # phase -> the threads that arrive in it
            for user in users.tolist():
                arrivals.setdefault(barrier.phase, []).append(user)
                given = int(numbers[user])
                if expects:
                    barrier.expect(given)
                count = 1 if expects else given
                if count > barrier.pending:
                    what = (
                        f"arrives {counted(count, 'time')} at a barrier (mbarrier) that waits for "
                        f"{counted(barrier.pending, 'arrival')} in this phase"
                    )
                    threads.report(BARRIER, instruction, what, np.array([True]), user)
                states[user] = barrier.arrive(count, drops=drops)
            for phase, some in arrivals.items():
                release_at(threads, offset, phase, np.array(some))
        lanes = states
        if threads.at is None and threads.lanes is not None:
            lanes = threads.spread(states)
        write(threads, lanes, None)

    return arrive


def _bind_transaction(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Bind expect_tx and complete_tx."""
    address = phase_barrier_address(instruction, 0, registers, names)
    number = source(instruction, instruction.operands[1], "u32", registers)
    sign = 1 if instruction.modifiers[0] == "expect_tx" else -1

    def transact(threads: BlockThreads) -> None:
        numbers = _values(threads, instruction, number)
        for offset, users in barriers_at(threads, instruction, address):
            barrier = known_barrier(threads, instruction, offset, users)
            if barrier is not None:
                barrier.expect(sign * int(numbers[users].sum()))

    return transact


def _bind_wait(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Bind test_wait and try_wait. Neither of them blocks: a kernel repeats them in a loop.

    The first try of a thread after the end of a phase fails. A GPU may do so, too, because the end
    is not visible to the thread at once. So a kernel without a loop has a finding in every order
    of threads.
    """
    by_parity = "parity" in instruction.modifiers
    address = phase_barrier_address(instruction, 1, registers, names)
    kind = "u32" if by_parity else "b64"
    state = source(instruction, instruction.operands[2], kind, registers)
    write = result(instruction, instruction.operands[0], "pred", registers)

    def wait(threads: BlockThreads) -> None:
        states = _values(threads, instruction, state)
        is_over = np.zeros(threads.size(), np.bool_)
        for offset, users in barriers_at(threads, instruction, address):
            barrier = known_barrier(threads, instruction, offset, users)
            if barrier is None:
                is_over[users] = True
                continue
            over = barrier.has_ended(states[users], by_parity=by_parity)
            over &= barrier.was_tried(threads.numbers()[users], over)
            is_over[users] = over
            if over.any():
                _acquire(threads, offset, barrier, users[over])
        lanes = is_over
        if threads.at is None and threads.lanes is not None:
            lanes = threads.spread(is_over)
        write(threads, lanes, None)

    return wait


def _acquire(
    threads: BlockThreads, offset: int, barrier: PhaseBarrier, users: Array
) -> None:
    """Let threads acquire the phases that have ended, and complete the copies of these phases.

    Earlier phases are acquired, too, because all arrivals are updates of one place in memory.
    """
    threads.pending_copies().end_phases(offset, barrier.phase)
    if not threads.around.observers:
        return
    numbers = threads.numbers()[users]
    for phase in barrier.unseen_phases(numbers):
        for observer in threads.around.observers:
            observer.acquired(threads, numbers, ("mbarrier", offset, phase))


def _bind_pending_count(
    instruction: PtxInstruction, registers: NumberedRegisters
) -> Run:
    state = source(instruction, instruction.operands[1], "b64", registers)
    write = result(instruction, instruction.operands[0], "b32", registers)

    def count(threads: BlockThreads) -> None:
        check_written(threads, instruction, state, "the state of a barrier (mbarrier)")
        value = np.asarray(state.value(threads)) & np.uint64(0xFFFFFFFF)
        write(threads, value.astype(np.uint32), None)

    return count


_BINDERS: dict[str, Callable[[PtxInstruction, NumberedRegisters, Names], Run]] = {
    "init": _bind_init,
    "inval": _bind_inval,
    "arrive": _bind_arrive,
    "arrive_drop": _bind_arrive,
    "expect_tx": _bind_transaction,
    "complete_tx": _bind_transaction,
    "test_wait": _bind_wait,
    "try_wait": _bind_wait,
}
