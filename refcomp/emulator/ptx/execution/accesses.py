"""Loads, stores and addresses.

ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+8]      st.shared.u8 [%r1], %rs1

Source: NVIDIA, "Parallel Thread Execution ISA", section "Data Movement and Conversion
Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from refcomp.emulator.code.findings import UNDEFINED
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import gather
from refcomp.emulator.ptx.execution.operands import (
    NumberedRegisters,
    Read,
    Run,
    SourceOperand,
    flat,
    result,
    source,
)
from refcomp.emulator.ptx.instructions.types import bits_of, unsigned_of
from refcomp.emulator.ptx.machine.spaces import WINDOW_BYTES, WINDOWS
from refcomp.emulator.ptx.machine.threads import BlockThreads, CheckedPlace
from refcomp.emulator.ptx.text.module import (
    Address,
    Operand,
    PtxInstruction,
    Register,
    SymbolAddress,
)
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import Unsupported

_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_ORDERING = frozenset({"acquire", "release", "acq_rel"})
# In a space with addresses of 32 bits, [register + offset] wraps around. Compilers rely on this:
# for tile[i - 1], nvcc prints [%r1 + 15], where %r1 may be i - 16.
_ALL_32_BITS = np.uint64(0xFFFF_FFFF)
_SPACES = ("global", "shared", "local", "const", "param")


@dataclass(frozen=True, slots=True)
class Names:
    """The meaning of names in a function.

    Attributes:
        spaces: variable -> its space. Parameters of a kernel are in "param".
        frame: parameter in the frame of a function -> its offset there.
        local: local variable -> its offset in the function's part of local memory.
        shared: shared variable -> the name under which a launch knows its offset in the memory of a
            block (`LaunchSurroundings.symbols`). It depends on the kernel.
    """

    spaces: Mapping[str, str]
    frame: Mapping[str, int]
    local: Mapping[str, int]
    shared: Mapping[str, str]


class AddressSource(NamedTuple):
    """The operand of an access that is the address."""

    read: Read  # uint64, for the threads `at`
    number: int | None  # the number of the register in it; None without a register


def space_of(instruction: PtxInstruction) -> str:
    """Return the space that an access names; "" for generic addresses."""
    for modifier in instruction.modifiers:
        plain = modifier.partition("::")[0]
        if plain in _SPACES:
            return "global" if plain == "const" else plain
    return ""


def orders(instruction: PtxInstruction) -> bool:
    """Return True for an access that orders other accesses of its thread, as a fence does."""
    return not _ORDERING.isdisjoint(instruction.modifiers)


def show_order(threads: BlockThreads) -> None:
    """Show observers that the threads that run order their accesses."""
    for observer in threads.around.observers:
        observer.fenced(threads, threads.numbers())


def is_strong(instruction: PtxInstruction) -> bool:
    """Return True for a strong access: strong accesses of several threads do not race."""
    return not _STRONG.isdisjoint(instruction.modifiers)


def address_source(
    instruction: PtxInstruction,
    operand: Operand | None,
    space: str,
    registers: NumberedRegisters,
    names: Names,
) -> AddressSource:
    """Return the address of an access, in the addresses of its space."""
    if not isinstance(operand, Address):
        raise _bad_address(instruction, operand)
    base, offset = operand.base, np.uint64(operand.offset & (1 << 64) - 1)
    if isinstance(base, Register) and base.name in registers.numbers:
        one = source(instruction, base, "u64", registers)
        if not offset:
            return AddressSource(one.value, one.number)
        value = one.value
        is_narrow = bits_of(registers.type_of(base.name)) == 32
        if is_narrow and space in WINDOWS:
            return AddressSource(
                lambda threads: (value(threads) + offset) & _ALL_32_BITS, one.number
            )
        return AddressSource(lambda threads: value(threads) + offset, one.number)
    if isinstance(base, SymbolAddress):
        read = symbol_address(base.symbol, operand.offset + base.offset, space, names)
        return AddressSource(read, None)
    if base is None:
        constant = np.asarray(offset)
        return AddressSource(lambda threads: constant, None)
    raise _bad_address(instruction, operand)


def _bad_address(instruction: PtxInstruction, operand: object) -> Unsupported:
    return Unsupported(
        f"{operand} is not an address that is emulated",
        where=f"line {instruction.line}: {instruction.text}",
        remedy="write [register + number] or [variable + number]",
    )


def symbol_address(symbol: str, offset: int, space: str, names: Names) -> Read:
    """Return the address of a variable in its own space; as a generic one if `space` is ""."""
    if symbol in names.shared:
        offset += 0 if space else WINDOWS["shared"]
        symbol = names.shared[symbol]
    if symbol in names.local:
        begin = names.local[symbol] + offset + (0 if space else WINDOWS["local"])

        def in_stack(threads: BlockThreads) -> Array:
            stack = threads.stack if threads.at is None else threads.stack[threads.at]
            return (stack + begin).view(np.uint64)

        return in_stack
    return lambda threads: np.asarray(
        threads.around.symbols[symbol] + offset, np.int64
    ).view(np.uint64)


def check_address(
    threads: BlockThreads, instruction: PtxInstruction, address: AddressSource
) -> Array:
    """Report undefined addresses. Return the addresses of the threads that run."""
    if address.number is not None:
        undefined = threads.read_undefined(address.number)
        if undefined is not None:
            threads.report_undefined(instruction, "an address", undefined)
    return threads.pick(address.read(threads))


class _MovedParts(NamedTuple):
    """The values that an access moves, all of one type."""

    kind: str
    size: int  # bytes of a value
    number: int  # of values


def _parts(instruction: PtxInstruction) -> _MovedParts:
    kind = instruction.modifiers[-1]
    vectors = [m for m in instruction.modifiers if m in ("v2", "v4", "v8")]
    if kind == "b128":
        raise Unsupported(
            "loads and stores of b128 are not emulated",
            where=f"line {instruction.line}: {instruction.text}",
            remedy="use .v2.b64",
        )
    size = max(bits_of(kind) // 8, 1)
    number = int(vectors[0][1:]) if vectors else 1
    values = instruction.operands[0 if instruction.opcode != "st" else 1]
    if len(flat(values)) != number:
        raise Unsupported(
            f"{instruction.opcode} moves {counted(number, 'value')}, but names {len(flat(values))}",
            where=f"line {instruction.line}: {instruction.text}",
            remedy="name a register for each",
        )
    return _MovedParts(kind, size, number)


def bind_load(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Return a load as a function."""
    parts = _parts(instruction)
    targets = flat(instruction.operands[0])
    # Loads move bits. Only a signed number is extended by its sign in a wider register.
    writes = [_lane_result(instruction, one, parts.kind, registers) for one in targets]
    where = instruction.operands[1]
    if _is_in_frame(where, names):
        return _bind_frame_load(where, names, parts, writes)
    space = space_of(instruction)
    is_shown = space != "param"
    if space == "param":
        space = "global"  # the parameters of a kernel lie in the arena
    address = address_source(instruction, where, space, registers, names)
    size, whole = parts.size, parts.size * parts.number
    is_ordered = is_strong(instruction)
    is_acquire = orders(instruction)

    def load(threads: BlockThreads) -> None:
        found = threads.places(
            instruction,
            check_address(threads, instruction, address),
            space,
            whole,
            is_load=True,
        )
        poisoned: Array | None = None
        if is_shown and threads.around.observers:
            poisoned = threads.show(
                instruction, found, whole, is_store=False, is_strong=is_ordered
            )
            if is_acquire:
                show_order(threads)
        for part, write in enumerate(writes):
            value, undefined = gathered(threads, found, part * size, size)
            if poisoned is not None:
                racing = poisoned[:, part * size : (part + 1) * size].any(axis=1)
                value = np.broadcast_to(value, racing.shape).copy()
                nothing: Array = np.zeros((), value.dtype)
                others = nothing if undefined is None else undefined
                undefined = np.where(racing, ~nothing, others)
            write(threads, value, undefined)

    return load


def gathered(
    threads: BlockThreads, places: list[CheckedPlace], offset: int, size: int
) -> tuple[Array, Array | None]:
    """Return the item at each place and its undefined bits, for the threads that run."""
    first = places[0]
    if len(places) == 1:
        index = first.offsets + offset
        return first.memory.load(index, size), first.memory.load_undefined(index, size)
    value = np.zeros(threads.size(), f"u{size}")
    undefined = np.zeros_like(value)
    for place in places:
        index = place.offsets + offset
        value[place.taken] = place.memory.load(index, size)
        bits = place.memory.load_undefined(index, size)
        if bits is not None:
            undefined[place.taken] = bits
    return value, undefined if undefined.any() else None


WriteLanes: TypeAlias = Callable[[BlockThreads, Array, Array | None], None]


def _lane_result(
    instruction: PtxInstruction,
    operand: Operand,
    kind: str,
    registers: NumberedRegisters,
) -> WriteLanes:
    """Return a function that sets a result for the threads that run, from unsigned integers."""
    inner = result(instruction, operand, kind, registers)
    signed = np.dtype(f"i{bits_of(kind) // 8}") if kind[0] == "s" else None

    def write(threads: BlockThreads, value: Array, undefined: Array | None) -> None:
        if threads.at is None and threads.lanes is not None:
            value = threads.spread(value)
            undefined = None if undefined is None else threads.spread(undefined)
        value = np.asarray(value)
        inner(threads, value if signed is None else value.view(signed), undefined)

    return write


def _is_in_frame(where: Operand | None, names: Names) -> bool:
    if not isinstance(where, Address) or not isinstance(where.base, SymbolAddress):
        return False
    return where.base.symbol in names.frame


def _frame_place(where: Operand | None, names: Names) -> int:
    assert isinstance(where, Address) and isinstance(where.base, SymbolAddress)
    return names.frame[where.base.symbol] + where.base.offset + where.offset


def _bind_frame_load(
    where: Operand | None, names: Names, parts: _MovedParts, writes: list[WriteLanes]
) -> Run:
    """Return a load of a parameter of a function, or of the result of a call."""
    begin = _frame_place(where, names)
    size = parts.size

    def load(threads: BlockThreads) -> None:
        frame = threads.frame
        index = threads.numbers() * frame.stride + begin
        for part, write in enumerate(writes):
            at = index + part * size
            write(
                threads,
                frame.parameters.load(at, size),
                frame.parameters.load_undefined(at, size),
            )

    return load


def bind_store(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Return a store as a function."""
    parts = _parts(instruction)
    plain = f"b{8 * parts.size}"
    values = [
        source(instruction, one, plain, registers)
        for one in flat(instruction.operands[1])
    ]
    where = instruction.operands[0]
    size, whole = parts.size, parts.size * parts.number
    if _is_in_frame(where, names):
        begin = _frame_place(where, names)

        def store_parameter(threads: BlockThreads) -> None:
            frame = threads.frame
            index = threads.numbers() * frame.stride + begin
            place = CheckedPlace(frame.parameters, index, None)
            for part, one in enumerate(values):
                _scatter(threads, [place], part * size, size, one)

        return store_parameter
    space = space_of(instruction)
    address = address_source(instruction, where, space, registers, names)
    is_ordered = is_strong(instruction)
    is_release = orders(instruction)

    def store(threads: BlockThreads) -> None:
        if is_release:
            show_order(threads)
        found = threads.places(
            instruction,
            check_address(threads, instruction, address),
            space,
            whole,
            is_load=False,
        )
        if threads.around.observers:
            threads.show(
                instruction,
                found,
                whole,
                is_store=True,
                is_strong=is_ordered,
                values=[threads.pick(one.value(threads)) for one in values],
            )
        for part, one in enumerate(values):
            check_overwrite(threads, instruction, found, part * size, size, one)
            _scatter(threads, found, part * size, size, one)

    return store


def check_overwrite(
    threads: BlockThreads,
    instruction: PtxInstruction,
    places: list[CheckedPlace],
    offset: int,
    size: int,
    one: SourceOperand,
) -> None:
    """Report wholly undefined values that overwrite defined bytes of global memory.

    Other stores of undefined bits are legal: a copy of a structure stores the gaps between its
    fields, and parts of a new array may stay undefined. But bytes that were defined are probably
    read later.
    """
    bits = None if one.number is None else threads.read_undefined(one.number)
    if bits is None:
        return
    picked = np.broadcast_to(threads.pick(bits), threads.size())
    is_nothing = ~picked.astype(f"u{size}") == 0
    for place in places:
        known = place.memory.known
        if place.memory is not threads.around.arena.bytes or known is None:
            continue
        index = np.atleast_1d(place.offsets + offset)
        was_written = ~gather(known, index, size) == 0
        some = is_nothing if place.taken is None else is_nothing[place.taken]
        wrong = some & was_written
        if wrong.any():
            what = "changes memory by a value that nothing wrote"
            threads.report(UNDEFINED, instruction, what, wrong, place.taken)


def _scatter(
    threads: BlockThreads,
    places: list[CheckedPlace],
    offset: int,
    size: int,
    one: SourceOperand,
) -> None:
    """Store an item to each place."""
    value = threads.pick(one.value(threads))
    bits = None if one.number is None else threads.read_undefined(one.number)
    if bits is not None:
        bits = threads.pick(bits).astype(value.dtype)
    for place in places:
        index = np.atleast_1d(place.offsets + offset)
        some, undefined = value, bits
        if place.taken is not None:
            some = value if value.ndim == 0 else value[place.taken]
            if bits is not None:
                undefined = bits if bits.ndim == 0 else bits[place.taken]
        shape = np.broadcast_shapes(index.shape, some.shape)
        place.memory.store(
            np.broadcast_to(index, shape),
            size,
            np.broadcast_to(some, shape),
            None if undefined is None else np.broadcast_to(undefined, shape),
        )


def bind_address_move(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run | None:
    """Return a mov of a variable's address as a function; None if it moves anything else."""
    operand = instruction.operands[1]
    if not isinstance(operand, SymbolAddress):
        return None
    space = names.spaces.get(operand.symbol, "global")
    read = symbol_address(operand.symbol, operand.offset, space, names)
    kind = instruction.modifiers[-1]
    width = unsigned_of(kind)
    write = result(instruction, instruction.operands[0], f"u{bits_of(kind)}", registers)
    return lambda threads: write(threads, read(threads).astype(width), None)


def bind_conversion_of_address(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Return cvta, which converts between generic addresses and those of a space, as a function."""
    kind = f"u{bits_of(instruction.modifiers[-1])}"
    operand = instruction.operands[1]
    space = space_of(instruction)
    window = np.uint64(WINDOWS.get(space, 0))
    is_back = "to" in instruction.modifiers
    step = np.uint64(0) - window if is_back else window
    number = None
    if isinstance(operand, SymbolAddress):
        read = symbol_address(operand.symbol, operand.offset, space or "global", names)
    else:
        one = source(instruction, operand, "u64", registers)
        read, number = one.value, one.number
    write = result(instruction, instruction.operands[0], kind, registers)
    width = unsigned_of(kind)

    def convert(threads: BlockThreads) -> None:
        bits = None if number is None else threads.read_undefined(number)
        value = (read(threads) + step).astype(width)
        write(threads, value, None if bits is None else bits.astype(width))

    return convert


def bind_space_test(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Return isspacep, the test if a generic address lies in a space, as a function."""
    space = space_of(instruction)
    one = source(instruction, instruction.operands[1], "u64", registers)
    write = result(instruction, instruction.operands[0], "pred", registers)
    window = np.uint64(WINDOWS.get(space, 0))

    def test(threads: BlockThreads) -> None:
        bits = None if one.number is None else threads.read_undefined(one.number)
        value = one.value(threads)
        if window:
            found = value - window < np.uint64(WINDOW_BYTES)
        else:
            found = value < np.uint64(min(WINDOWS.values()))
        write(threads, np.asarray(found), None if bits is None else bits != 0)

    return test
