"""Atomic updates of memory, made by one thread after the other, in the order of their numbers.

atom.global.add.u32 %r1, [%rd1], %r2        red.shared.max.s32 [%r1], %r2

Source: NVIDIA, "Parallel Thread Execution ISA", sections "atom" and "red".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.findings import UNDEFINED
from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import Array, Mask, Offsets
from refcomp.emulator.machine.memory import Bytes
from refcomp.emulator.ptx.execution.accesses import (
    Names,
    address_source,
    check_address,
    check_overwrite,
    orders,
    show_order,
    space_of,
)
from refcomp.emulator.ptx.execution.operands import (
    NumberedRegisters,
    Run,
    SourceOperand,
    result,
    source,
)
from refcomp.emulator.ptx.instructions.floats import with_plain_nan
from refcomp.emulator.ptx.instructions.results import float_of
from refcomp.emulator.ptx.instructions.rounding import exactly
from refcomp.emulator.ptx.instructions.types import bits_of, dtype_of
from refcomp.emulator.ptx.machine.threads import BlockThreads
from refcomp.emulator.ptx.text.module import Operand, PtxInstruction
from refcomp.foundation.errors import Unsupported


def _increment(old: Array, limit: Array) -> Array:
    following: Array = np.where(
        old >= limit, old.dtype.type(0), old + old.dtype.type(1)
    )
    return following


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _exchange_if(old: Array, expected: Array, new: Array) -> Array:
    return np.where(old == expected, new, old)


_WHAT = "updates memory that nothing wrote"

# Name of an update -> the function of the old value and the operands that returns the new value.
_UPDATES: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "cas": _exchange_if,
    "inc": _increment,
    "dec": _decrement,
}


def _plain_sum(old: Array, added: Array) -> Array:
    """Return the sum of f32. A NaN has the bits that GPUs return."""
    return with_plain_nan(np.add(old, added))


def _flushed_sum(old: Array, added: Array) -> Array:
    """Return the sum of f32 in global memory, where denormals become 0."""
    return flushed(_plain_sum(flushed(old), flushed(added)))


def _sum_of_halves(old: Array, added: Array) -> Array:
    """Return the sum of f16, alone or in pairs. A NaN has the bits that GPUs return."""
    first = np.ascontiguousarray(old).view(np.float16)
    second = np.ascontiguousarray(added).view(np.float16)
    total = float_of(exactly(np.add(first, second)), "f16")
    return total.view(np.asarray(old).dtype)


def _sum_of(kind: str, is_global: bool) -> Callable[..., Array]:
    """Return the function that adds numbers of a type in global or other memory."""
    if kind in ("f16", "f16x2"):
        return _sum_of_halves
    if kind == "f32":
        return _flushed_sum if is_global else _plain_sum
    return np.add


def _given_values(
    instruction: PtxInstruction,
    name: str,
    operands: Sequence[Operand | None],
    registers: NumberedRegisters,
) -> list[SourceOperand]:
    """Return the operands of an update. A cache policy behind them is ignored."""
    count = 2 if name == "cas" else 1
    if len(operands) < count:
        raise Unsupported(
            f"{instruction.opcode}.{name} lacks an operand",
            where=f"line {instruction.line}: {instruction.text}",
            remedy="compare the instruction with its syntax in the PTX ISA",
        )
    kind = instruction.modifiers[-1]
    return [source(instruction, one, kind, registers) for one in operands[:count]]


def bind_atomic(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Return an atomic update as a function."""
    kind = instruction.modifiers[-1]
    name = _name_of_update(instruction, kind)
    operands = list(instruction.operands)
    returned = operands.pop(0) if instruction.opcode == "atom" else None
    space = space_of(instruction)
    address = address_source(instruction, operands[0], space, registers, names)
    values = _given_values(instruction, name, operands[1:], registers)
    size = bits_of(kind) // 8
    write = None
    if returned is not None:
        write = result(instruction, returned, f"b{8 * size}", registers)
    is_ordering = orders(instruction)
    replaces = "exch" in instruction.modifiers

    def run(threads: BlockThreads) -> None:
        if is_ordering:
            show_order(threads)
        addresses = check_address(threads, instruction, address)
        addresses = np.broadcast_to(addresses, threads.size())
        given = [
            np.broadcast_to(threads.pick(one.value(threads)), threads.size())
            for one in values
        ]
        places = threads.places(instruction, addresses, space, size, is_load=False)
        if threads.around.observers:
            threads.show(instruction, places, size, is_store=True, is_strong=True)
        for one in values:
            check_overwrite(threads, instruction, places, 0, size, one)
        old = np.zeros(threads.size(), f"u{size}")
        undefined = np.zeros_like(old)
        spoiled = _undefined_operands(threads, values)
        for place in places:
            taken = slice(None) if place.taken is None else place.taken
            bits = place.memory.load_undefined(place.offsets, size)
            if bits is not None:
                undefined[taken] = bits
                if not replaces:
                    threads.report(
                        UNDEFINED, instruction, _WHAT, bits != 0, place.taken
                    )
            own = [value[taken] for value in given]
            update = _UPDATES[name]
            if name == "add":
                update = _sum_of(kind, place.memory is threads.around.arena.bytes)
            old[taken] = _apply(
                _Update(place.memory, place.offsets, size, dtype_of(kind), update, own)
            )
            if spoiled[taken].any():
                _forget(place.memory, place.offsets[spoiled[taken]], size)
        if write is not None:
            bits = undefined if undefined.any() else None
            if threads.at is None and threads.lanes is not None:
                old = threads.spread(old)
                bits = None if bits is None else threads.spread(bits)
            write(threads, old, bits)

    return run


def _undefined_operands(threads: BlockThreads, values: Sequence[SourceOperand]) -> Mask:
    """Return True for the threads that run and have a value with undefined bits."""
    found = np.zeros(threads.size(), np.bool_)
    for one in values:
        bits = None if one.number is None else threads.read_undefined(one.number)
        if bits is not None:
            found |= threads.pick(bits) != 0
    return found


def _forget(memory: Bytes, offsets: Offsets, size: int) -> None:
    """Make items undefined."""
    values = memory.load(offsets, size)
    memory.store(offsets, size, values, ~np.zeros_like(values))


def _name_of_update(instruction: PtxInstruction, kind: str) -> str:
    names = [one for one in instruction.modifiers if one in _UPDATES]
    is_vector = any(one in ("v2", "v4", "v8") for one in instruction.modifiers)
    if names and not is_vector and kind not in ("bf16", "bf16x2", "b128"):
        return names[0]
    raise Unsupported(
        f"{instruction.opcode}.{'.'.join(instruction.modifiers)} is not emulated",
        where=f"line {instruction.line}: {instruction.text}",
        remedy="run the kernel on a GPU",
    )


class _Update(NamedTuple):
    """An update by some threads."""

    memory: Bytes
    offsets: Offsets
    size: int  # bytes
    dtype: np.dtype[Any]  # of the values
    update: Callable[..., Array]
    values: Sequence[Array]  # of the operands

    def load(self, at: Offsets) -> Array:
        """Return the values at offsets."""
        return self.memory.load(at, self.size).view(self.dtype)

    def store(self, at: Offsets, values: Array) -> None:
        """Set the values at offsets."""
        bits = np.ascontiguousarray(values).view(f"u{self.size}")
        self.memory.store(at, self.size, bits, None)


def _apply(access: _Update) -> Array:
    """Update memory thread by thread, and return the old value that each thread found."""
    order = np.argsort(access.offsets, kind="stable")
    offsets = access.offsets[order]
    starts = np.flatnonzero(np.diff(offsets, prepend=-1))
    lengths = np.diff(starts, append=len(offsets))
    found = np.zeros(len(order), access.dtype)
    if access.update is _exchange_if:
        _exchange(access, order, found)
    elif _is_accumulated(access.update) and len(starts) < lengths.max():
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            _accumulate(access, order[start : start + length], found)
    else:
        for rank in range(int(lengths.max())):
            # For each address, the thread that updates it next.
            turn = order[starts[lengths > rank] + rank]
            at = access.offsets[turn]
            old = access.load(at)
            found[turn] = old
            access.store(
                at, access.update(old, *[value[turn] for value in access.values])
            )
    return found.view(f"u{access.size}")


def _is_accumulated(update: Callable[..., Array]) -> bool:
    return isinstance(update, np.ufunc) or update in (_plain_sum, _flushed_sum)


def _accumulate(access: _Update, turn: Array, found: Array) -> None:
    """Update one place by several threads, one after the other."""
    at = access.offsets[turn[:1]]
    first = access.load(at)
    steps = np.concatenate([first, access.values[0][turn]])
    update = access.update
    if isinstance(update, np.ufunc):
        results = update.accumulate(steps, dtype=access.dtype)
    else:
        given = flushed(steps) if update is _flushed_sum else steps
        results = with_plain_nan(np.add.accumulate(given, dtype=access.dtype))
        is_tiny = (np.abs(results) < np.finfo(np.float32).tiny) & (results != 0)
        if update is _flushed_sum and is_tiny.any():
            # An intermediate sum is flushed to 0, which changes the sums that follow.
            for number, added in enumerate(given[1:], 1):
                results[number] = _flushed_sum(results[number - 1], added)
    found[turn] = np.concatenate([first, results[1:-1]])
    access.store(at, results[-1:])


def _exchange(access: _Update, order: Array, found: Array) -> None:
    """Compare and exchange. A thread that does not find the expected value changes nothing."""
    expected, new = access.values
    waiting = order
    while len(waiting):
        at = access.offsets[waiting]
        old = access.load(at)
        matches = old == expected[waiting]
        # The number of the first thread that matches, for each address in a row of equal ones.
        starts = np.flatnonzero(np.diff(at, prepend=-1))
        number = np.where(matches, np.arange(len(at)), len(at))
        first = np.repeat(
            np.minimum.reduceat(number, starts), np.diff(starts, append=len(at))
        )
        is_done = np.arange(len(at)) <= first
        found[waiting[is_done]] = old[is_done]
        winners = np.unique(first[first < len(at)])
        access.store(at[winners], new[waiting[winners]])
        waiting = waiting[~is_done]
