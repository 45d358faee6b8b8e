"""Instructions that the threads of a warp execute together: shuffles, votes, matches, reductions.

shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1        vote.sync.ballot.b32 %r1, %p1, -1

Source: NVIDIA, "Parallel Thread Execution ISA", sections "shfl.sync", "vote.sync", "match.sync",
"redux.sync", "activemask" and "elect.sync".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from refcomp.emulator.code.findings import BARRIER
from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.ptx.execution.operands import (
    NumberedRegisters,
    Run,
    SourceOperand,
    Write,
    check_written,
    flat,
    result,
    source,
)
from refcomp.emulator.ptx.instructions import warps
from refcomp.emulator.ptx.instructions.form import Form
from refcomp.emulator.ptx.instructions.types import unsigned_of
from refcomp.emulator.ptx.machine.threads import WARP, BlockThreads
from refcomp.emulator.ptx.text.module import Immediate, Operand, PtxInstruction

_LANE_BITS = np.uint32(1) << np.arange(WARP, dtype=np.uint32)


def members_of(instruction: PtxInstruction) -> Operand | None:
    """Return the operand that is the member mask; None if the instruction has no such operand."""
    if "aligned" in instruction.modifiers:  # all threads of the warp
        return Immediate("int", (1 << WARP) - 1)
    return instruction.operands[-1] if "sync" in instruction.modifiers else None


def bind_together(instruction: PtxInstruction, registers: NumberedRegisters) -> Run:
    """Return an instruction of whole warps as a function."""
    return _BINDERS[instruction.opcode](Form(instruction), registers)


class RunningWarps:
    """The warps of a batch, as [warp, lane], while some of their threads run.

    Attributes:
        runs: bool [warp, lane], True for the threads that run.
    """

    def __init__(self, threads: BlockThreads) -> None:
        self._threads = threads
        self.runs: Mask = self.spread(np.asarray(True))

    def spread(self, value: Array) -> Array:
        """Return the values of `pick` as [warp, lane]: 0 for the threads that do not run."""
        threads = self._threads
        if threads.lanes is None:
            return np.broadcast_to(value, threads.count).reshape(-1, WARP)
        whole = np.zeros(threads.count, value.dtype)
        whole[threads.lanes] = value
        return whole.reshape(-1, WARP)

    def read(self, one: SourceOperand) -> Array:
        """Return the value of an operand."""
        return self.spread(self._threads.pick(np.asarray(one.value(self._threads))))

    def undefined(self, one: SourceOperand) -> Array | None:
        """Return the undefined bits of an operand; None if there are none."""
        bits = None if one.number is None else self._threads.read_undefined(one.number)
        return None if bits is None else self.spread(self._threads.pick(bits))

    def write(self, write: Write, value: Array, undefined: Array | None = None) -> None:
        """Set a result."""
        threads = self._threads
        flattened = np.ascontiguousarray(value).reshape(-1)
        bits = (
            None if undefined is None else np.ascontiguousarray(undefined).reshape(-1)
        )
        if threads.at is not None:
            flattened = flattened[threads.at]
            bits = None if bits is None else bits[threads.at]
        write(threads, flattened, bits)


def _taking(found: RunningWarps, mask: Array) -> list[Mask]:
    """Return, for each member mask that threads name, the threads that name it.

    Usually all threads of a warp name the same mask.
    """
    shared_mask = np.where(found.runs, mask, np.uint32(0)).max(axis=1)[:, None]
    groups: list[Mask] = []
    rest = found.runs
    while rest.any():
        groups.append(rest & (mask == shared_mask))
        rest = rest & (mask != shared_mask)
        shared_mask = np.where(rest, mask, np.uint32(0)).max(axis=1)[:, None]
    return groups


def _check_members(
    threads: BlockThreads, instruction: PtxInstruction, found: RunningWarps, mask: Array
) -> None:
    """Report threads that run, but are not in their own member mask."""
    outside = found.runs & (mask & _LANE_BITS == 0)
    if outside.any():
        what = "a thread is not among those that its member mask names"
        threads.report(
            BARRIER, instruction, what, outside.reshape(-1)[threads.numbers()]
        )


def _bind_shuffle(form: Form, registers: NumberedRegisters) -> Run:
    form.must_take("sync")
    mode = form.must_take("up", "down", "bfly", "idx")
    form.check_read()
    instruction = form.instruction
    target, *sources = instruction.operands
    writes = [
        result(instruction, one, kind, registers)
        for one, kind in zip(flat(target), ("b32", "pred"), strict=False)
    ]
    value, amount, limits, mask = (
        source(instruction, one, "b32", registers) for one in sources
    )

    def run(threads: BlockThreads) -> None:
        found = RunningWarps(threads)
        members = found.read(mask)
        _check_members(threads, instruction, found, members)
        for one in (amount, limits):
            check_written(threads, instruction, one, "the source of a shuffle")
        moved = warps.shuffle(mode, found.read(amount), found.read(limits))
        absent = warps.absent_sources(moved, found.runs)
        bits = found.undefined(value)
        taken = None if bits is None else warps.taken_from(bits, moved.source)
        if threads.around.is_watched and absent.any():
            nothing = np.zeros((), np.uint32) if taken is None else taken
            taken = np.where(absent, np.uint32(0xFFFFFFFF), nothing)
        if taken is not None and not taken.any():
            taken = None
        found.write(writes[0], warps.taken_from(found.read(value), moved.source), taken)
        for write in writes[1:]:
            found.write(write, moved.in_range)

    return run


# (values, takes) -> one array for each result, [warp, lane].
_Compute: TypeAlias = Callable[[Array, Mask], tuple[Array, ...]]


def _bind_exchange(
    form: Form,
    registers: NumberedRegisters,
    kind: str,
    results: tuple[str, ...],
    compute: _Compute,
) -> Run:
    """Return an instruction with a value and a member mask as a function."""
    instruction = form.instruction
    writes = [
        result(instruction, one, each, registers)
        for one, each in zip(flat(instruction.operands[0]), results, strict=False)
    ]
    value = source(instruction, instruction.operands[1], kind, registers)
    mask = source(instruction, instruction.operands[2], "b32", registers)

    def run(threads: BlockThreads) -> None:
        found = RunningWarps(threads)
        members = found.read(mask)
        _check_members(threads, instruction, found, members)
        values = found.read(value)
        bits = found.undefined(value)
        wholes = [np.zeros(found.runs.shape, unsigned_of(each)) for each in results]
        spoiled = np.zeros(found.runs.shape, np.bool_)
        for takes in _taking(found, members):
            for whole, one in zip(wholes, compute(values, takes), strict=True):
                whole[takes] = (
                    one[takes]
                    if one.dtype == whole.dtype
                    else one.view(whole.dtype)[takes]
                )
            if bits is not None:
                spoiled |= takes & ((bits != 0) & takes).any(axis=1, keepdims=True)
        for write, whole in zip(writes, wholes, strict=False):
            undefined = None
            if spoiled.any():
                nothing: Array = np.zeros((), whole.dtype)
                undefined = np.where(spoiled, np.invert(nothing), nothing)
            found.write(write, whole, undefined)

    return run


def _bind_vote(form: Form, registers: NumberedRegisters) -> Run:
    form.must_take("sync")
    mode = form.must_take("all", "any", "uni", "ballot")
    form.check_read()
    if mode == "ballot":
        return _bind_exchange(
            form,
            registers,
            "pred",
            ("b32",),
            lambda value, takes: (warps.ballot(value, takes),),
        )
    return _bind_exchange(
        form,
        registers,
        "pred",
        ("pred",),
        lambda value, takes: (warps.vote(mode, value, takes),),
    )


def _bind_match(form: Form, registers: NumberedRegisters) -> Run:
    mode = form.must_take("any", "all")
    form.must_take("sync")
    form.check_read()
    if mode == "any":
        return _bind_exchange(
            form,
            registers,
            form.type,
            ("b32",),
            lambda value, takes: (warps.match_any(value, takes),),
        )
    return _bind_exchange(form, registers, form.type, ("b32", "pred"), warps.match_all)


def _bind_reduction(form: Form, registers: NumberedRegisters) -> Run:
    found = warps.reduction_of(form)
    return _bind_exchange(
        form,
        registers,
        found.kind,
        (found.kind,),
        lambda value, takes: (found.compute(value, takes),),
    )


def _bind_active_mask(form: Form, registers: NumberedRegisters) -> Run:
    instruction = form.instruction
    write = result(instruction, instruction.operands[0], "b32", registers)

    def run(threads: BlockThreads) -> None:
        found = RunningWarps(threads)
        found.write(write, warps.ballot(found.runs, found.runs))

    return run


def _bind_election(form: Form, registers: NumberedRegisters) -> Run:
    """Elect the first thread that takes part."""
    form.must_take("sync")
    form.check_read()
    instruction = form.instruction
    writes = [
        result(instruction, one, kind, registers)
        for one, kind in zip(
            flat(instruction.operands[0]), ("b32", "pred"), strict=True
        )
    ]
    mask = source(instruction, instruction.operands[1], "b32", registers)

    def run(threads: BlockThreads) -> None:
        found = RunningWarps(threads)
        members = found.read(mask)
        _check_members(threads, instruction, found, members)
        leader = np.zeros(found.runs.shape, np.uint32)
        for takes in _taking(found, members):
            leader[takes] = np.broadcast_to(takes.argmax(axis=1)[:, None], takes.shape)[
                takes
            ]
        found.write(writes[0], leader)
        found.write(writes[1], leader == np.arange(WARP))

    return run


_BINDERS: dict[str, Callable[[Form, NumberedRegisters], Run]] = {
    "shfl": _bind_shuffle,
    "vote": _bind_vote,
    "match": _bind_match,
    "redux": _bind_reduction,
    "activemask": _bind_active_mask,
    "elect": _bind_election,
}
