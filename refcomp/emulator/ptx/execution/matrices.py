"""Matrix instructions, which all threads of a warp execute together.

mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {..}, {..}, {..}, {..}    ldmatrix    wmma

Source: NVIDIA, "Parallel Thread Execution ISA", section "Warp Level Matrix Multiply-Accumulate
Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array, Mask, Offsets
from refcomp.emulator.machine.memory import Bytes
from refcomp.emulator.ptx.execution.accesses import (
    AddressSource,
    Names,
    address_source,
    check_address,
    gathered,
    space_of,
)
from refcomp.emulator.ptx.execution.operands import (
    NumberedRegisters,
    Run,
    SourceOperand,
    Write,
    flat,
    result,
    source,
)
from refcomp.emulator.ptx.execution.together import RunningWarps
from refcomp.emulator.ptx.instructions import matrix, wmma
from refcomp.emulator.ptx.instructions.form import Form
from refcomp.emulator.ptx.instructions.types import bits_of
from refcomp.emulator.ptx.machine.threads import WARP, BlockThreads, CheckedPlace
from refcomp.emulator.ptx.text.module import Operand, PtxInstruction, Register
from refcomp.foundation.errors import UserError

_ROW_BYTES = 16  # of a row that ldmatrix loads


def bind_matrix(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    """Return a matrix instruction as a function."""
    form = Form(instruction)
    if instruction.opcode == "mma":
        return _bind_product(instruction, registers, matrix.product_of(form))
    if instruction.opcode == "movmatrix":
        return _bind_transposition(form, registers)
    if instruction.opcode == "ldmatrix":
        return _bind_rows(form, registers, names, is_load=True)
    if instruction.opcode == "stmatrix":
        return _bind_rows(form, registers, names, is_load=False)
    if "mma" in instruction.modifiers:
        return _bind_product(instruction, registers, wmma.warp_product_of(form))
    return _bind_moved(form, registers, names)


def _sources(
    instruction: PtxInstruction, operand: Operand | None, registers: NumberedRegisters
) -> list[SourceOperand]:
    """Return the registers of a fragment, each in its own width."""
    return [
        source(instruction, one, _width(one, registers), registers)
        for one in flat(operand)
    ]


def _writes(
    instruction: PtxInstruction, operand: Operand | None, registers: NumberedRegisters
) -> list[Write]:
    return [
        result(instruction, one, _width(one, registers), registers)
        for one in flat(operand)
    ]


def _width(operand: Operand, registers: NumberedRegisters) -> str:
    if isinstance(operand, Register) and operand.name in registers.numbers:
        return f"b{bits_of(registers.type_of(operand.name))}"
    return "b32"


def _fragment(warps: RunningWarps, sources: Sequence[SourceOperand]) -> Array:
    """Return the registers of a fragment as [warp, lane, register]."""
    return np.stack([warps.read(one) for one in sources], axis=-1)


def _undefined_fragment(warps: RunningWarps, sources: Sequence[SourceOperand]) -> Array:
    """Return the undefined bits of a fragment as [warp, lane, register]."""
    found = []
    for one in sources:
        bits = warps.undefined(one)
        found.append(np.zeros_like(warps.read(one)) if bits is None else bits)
    return np.stack(found, axis=-1)


def _is_spoiled(warps: RunningWarps, sources: Sequence[SourceOperand]) -> Array:
    """Return True for the warps that hold undefined bits of a fragment, as [warp, 1]."""
    found = np.zeros((len(warps.runs), 1), np.bool_)
    for one in sources:
        bits = warps.undefined(one)
        if bits is not None:
            found |= (bits != 0).any(axis=1, keepdims=True)
    return found


def _put(
    warps: RunningWarps, writes: Sequence[Write], fragment: Array, spoiled: Array | None
) -> None:
    """Set the registers of a fragment. In spoiled warps, they become undefined."""
    for number, write in enumerate(writes):
        value = fragment[..., number]
        undefined = None
        if spoiled is not None and spoiled.any():
            nothing: Array = np.zeros((), value.dtype)
            undefined = np.broadcast_to(
                np.where(spoiled, np.invert(nothing), nothing), value.shape
            )
        warps.write(write, value, undefined)


def _check_counts(
    instruction: PtxInstruction, given: Sequence[int], wanted: Sequence[int]
) -> None:
    if list(given) != list(wanted):
        raise UserError(
            f"{instruction.opcode} has fragments of {', '.join(map(str, given))} registers",
            where=f"line {instruction.line}: {instruction.text}",
            why=f"this form has {', '.join(map(str, wanted))}",
            remedy="give as many registers as the ISA says for the shape and the types",
        )


def _bind_product(
    instruction: PtxInstruction,
    registers: NumberedRegisters,
    product: matrix.FragmentProduct,
) -> Run:
    target, *factors = instruction.operands
    writes = _writes(instruction, target, registers)
    a, b, c = (_sources(instruction, one, registers) for one in factors)
    in_a, in_b, in_c = product.registers
    given = [len(writes), len(a), len(b), len(c)]
    _check_counts(instruction, given, [in_c, in_a, in_b, in_c])

    def run(threads: BlockThreads) -> None:
        warps = RunningWarps(threads)
        found = product.compute(
            _fragment(warps, a), _fragment(warps, b), _fragment(warps, c)
        )
        _put(warps, writes, found, _is_spoiled(warps, [*a, *b, *c]))

    return run


def _bind_transposition(form: Form, registers: NumberedRegisters) -> Run:
    instruction = form.instruction
    writes = _writes(instruction, instruction.operands[0], registers)
    sources = _sources(instruction, instruction.operands[1], registers)

    def run(threads: BlockThreads) -> None:
        warps = RunningWarps(threads)
        found = matrix.transposed_fragment(_fragment(warps, sources))
        _put(warps, writes, found, _is_spoiled(warps, sources))

    return run


class _AddressedRows(NamedTuple):
    """Rows of 16 bytes. Lane i of a warp holds the address of row i.

    Attributes:
        memory: the memory that holds the rows.
        here: bool [warp, row], True for rows that are addressed.
        places: the offsets of their bytes, as [row that is addressed, byte].
    """

    memory: Bytes
    here: Mask
    places: Offsets


def _rows(
    threads: BlockThreads,
    warps: RunningWarps,
    instruction: PtxInstruction,
    address: AddressSource,
    count: int,
    is_load: bool,
) -> _AddressedRows:
    """Check the accesses of ldmatrix or stmatrix, and return the rows that it moves."""
    addresses = np.broadcast_to(
        check_address(threads, instruction, address), threads.size()
    )
    numbers = threads.numbers()
    taken = numbers % WARP < count
    before = threads.at, threads.lanes
    threads.at = threads.lanes = numbers[taken]
    space = space_of(instruction) or "shared"
    (found,) = threads.places(
        instruction, addresses[taken], space, _ROW_BYTES, is_load=is_load
    )
    if threads.around.observers:
        threads.show(
            instruction, [found], _ROW_BYTES, is_store=not is_load, is_strong=False
        )
    threads.at, threads.lanes = before
    index = found.offsets[:, None] + np.arange(_ROW_BYTES)
    return _AddressedRows(found.memory, warps.runs[:, :count], index)


def _bind_rows(
    form: Form, registers: NumberedRegisters, names: Names, is_load: bool
) -> Run:
    """Return ldmatrix or stmatrix. Each of the first 8, 16 or 32 lanes has the address of a row."""
    instruction = form.instruction
    if "m8n8" not in instruction.modifiers or "b16" not in instruction.modifiers:
        raise form.unsupported(
            f"{instruction.opcode} of other matrices than m8n8 of b16"
        )
    transposed = "trans" in instruction.modifiers
    first, second = instruction.operands
    place, fragment = (second, first) if is_load else (first, second)
    space = space_of(instruction)
    address = address_source(instruction, place, space, registers, names)
    count = 8 * len(flat(fragment))
    if is_load:
        writes = _writes(instruction, fragment, registers)

        def load(threads: BlockThreads) -> None:
            warps = RunningWarps(threads)
            rows = _rows(threads, warps, instruction, address, count, is_load=True)
            _load_rows(warps, rows, writes, transposed)

        return load
    values = _sources(instruction, fragment, registers)

    def store(threads: BlockThreads) -> None:
        warps = RunningWarps(threads)
        rows = _rows(threads, warps, instruction, address, count, is_load=False)
        _store_rows(warps, rows, values, transposed)

    return store


def _load_rows(
    warps: RunningWarps, rows: _AddressedRows, writes: Sequence[Write], transposed: bool
) -> None:
    data = np.zeros((*rows.here.shape, _ROW_BYTES), np.uint8)
    data[rows.here] = rows.memory.data[rows.places]
    unknown = np.zeros_like(data)
    if rows.memory.known is not None:
        unknown[rows.here] = ~rows.memory.known[rows.places]
    loaded = matrix.loaded_fragments(data.view(np.uint16), transposed)
    spoiled = None
    if unknown.any():
        spoiled = matrix.loaded_fragments(unknown.view(np.uint16), transposed)
    for number, write in enumerate(writes):
        bits = None if spoiled is None else spoiled[..., number]
        warps.write(write, loaded[..., number], bits)


def _store_rows(
    warps: RunningWarps,
    rows: _AddressedRows,
    values: Sequence[SourceOperand],
    transposed: bool,
) -> None:
    stored = matrix.stored_rows(_fragment(warps, values), transposed)
    rows.memory.data[rows.places] = stored.view(np.uint8)[rows.here]
    if rows.memory.known is None:
        return
    unknown = matrix.stored_rows(_undefined_fragment(warps, values), transposed)
    rows.memory.known[rows.places] = ~unknown.view(np.uint8)[rows.here]


class _Elements(NamedTuple):
    """The elements in memory that wmma.load and wmma.store move.

    Attributes:
        addresses: uint64 [thread that runs, element].
        size: bytes of an element.
    """

    addresses: Array
    size: int


def _bind_moved(form: Form, registers: NumberedRegisters, names: Names) -> Run:
    """Return wmma.load or wmma.store as a function."""
    instruction = form.instruction
    space = space_of(instruction)
    form.take("global", "shared", "shared::cta")
    moved = wmma.matrix_moved_by(form)
    is_load = "load" in instruction.modifiers
    operands = list(instruction.operands)
    fragment = operands.pop(0 if is_load else 1)
    address = address_source(instruction, operands[0], space, registers, names)
    stride = None
    if len(operands) > 1:
        stride = source(instruction, operands[1], "u32", registers)
    size = bits_of(moved.kind) // 8
    _check_counts(instruction, [len(flat(fragment))], [moved.registers])

    def elements(threads: BlockThreads, warps: RunningWarps) -> _Elements:
        many = threads.size()
        begins = np.broadcast_to(check_address(threads, instruction, address), many)
        steps = np.full(many, moved.stride)
        if stride is not None:
            steps = np.broadcast_to(threads.pick(stride.value(threads)), many)
        offsets = moved.offsets(warps.spread(steps.astype(np.int64))[:, 0])
        own = (offsets * size)[warps.runs].astype(np.uint64)
        return _Elements(begins[:, None] + own, size)

    if is_load:
        writes = _writes(instruction, fragment, registers)

        def load(threads: BlockThreads) -> None:
            warps = RunningWarps(threads)
            found = elements(threads, warps)
            _load_elements(threads, warps, instruction, found, writes)

        return load
    values = _sources(instruction, fragment, registers)

    def store(threads: BlockThreads) -> None:
        warps = RunningWarps(threads)
        found = elements(threads, warps)
        _store_elements(threads, warps, instruction, found, values)

    return store


def _load_elements(
    threads: BlockThreads,
    warps: RunningWarps,
    instruction: PtxInstruction,
    found: _Elements,
    writes: Sequence[Write],
) -> None:
    size, count = found.size, found.addresses.shape[1]
    elements = np.zeros((*warps.runs.shape, count), f"u{size}")
    unknown = np.zeros_like(elements)
    for number in range(count):
        places = _shown_places(threads, instruction, found, number)
        value, undefined = gathered(threads, places, 0, size)
        elements[..., number][warps.runs] = value
        if undefined is not None:
            unknown[..., number][warps.runs] = undefined
    width = f"u{max(4, size)}"
    loaded, spoiled = elements.view(width), unknown.view(width)
    for number, write in enumerate(writes):
        bits = spoiled[..., number]
        warps.write(write, loaded[..., number], bits if bits.any() else None)


def _store_elements(
    threads: BlockThreads,
    warps: RunningWarps,
    instruction: PtxInstruction,
    found: _Elements,
    values: Sequence[SourceOperand],
) -> None:
    size = found.size
    elements = np.ascontiguousarray(_fragment(warps, values)).view(f"u{size}")
    undefined = np.ascontiguousarray(_undefined_fragment(warps, values))
    unknown = undefined.view(f"u{size}")
    for number in range(found.addresses.shape[1]):
        part = elements[..., number][warps.runs]
        bits = unknown[..., number][warps.runs]
        places = _shown_places(threads, instruction, found, number, stored=part)
        for place in places:
            taken = slice(None) if place.taken is None else place.taken
            place.memory.store(place.offsets, size, part[taken], bits[taken])


def _shown_places(
    threads: BlockThreads,
    instruction: PtxInstruction,
    found: _Elements,
    number: int,
    *,
    stored: Array | None = None,
) -> list[CheckedPlace]:
    """Check the access to element `number` of each thread, and show it to observers.

    Return the places of the elements.
    """
    is_store = stored is not None
    places = threads.places(
        instruction,
        found.addresses[:, number],
        space_of(instruction),
        found.size,
        is_load=not is_store,
    )
    if threads.around.observers:
        values = () if stored is None else (stored,)
        threads.show(
            instruction,
            places,
            found.size,
            is_store=is_store,
            is_strong=False,
            values=values,
            part=number,
            parts=found.addresses.shape[1],
        )
    return places


MATRICES: dict[str, Callable[[PtxInstruction, NumberedRegisters, Names], Run]] = (
    dict.fromkeys(("mma", "wmma", "ldmatrix", "stmatrix", "movmatrix"), bind_matrix)
)
