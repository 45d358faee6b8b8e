"""Loads and stores: of the device's memory, of a group's shared memory, of a lane's own (scratch).

Lanes that are not active access nothing. What is out of bounds is told, reads 0 and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand, RegisterRange
from refcomp.emulator.instructions.memory import global_words
from refcomp.emulator.instructions.memory.shared_words import WordSpan, bind_words
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import BY_WIDTH, Bytes, LoadedBits
from refcomp.emulator.machine.registers import FIRST_VECTOR, File
from refcomp.emulator.machine.sources import vector_index, vector_source
from refcomp.emulator.machine.waves import CheckedOffsets, Run, Waves

Address = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Transfer:
    """What an instruction moves: `count` pieces of `width` bytes. `is_signed` ones are extended by
    their sign; `place` is `""`, or the half of a register that a piece is (`low`, `high`)."""

    is_store: bool
    width: int
    count: int = 1
    is_signed: bool = False
    place: str = ""


_SIZES = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4}
_LDS_SIZES = {"b32": 1, "b64": 2, "b96": 3, "b128": 4}
_SMALL = re.compile(r"([usi]?)(byte|short|8|16)(_d16)?(_hi)?$")


def transfer_of(mnemonic: str) -> Transfer | None:
    """What a load or store of one piece moves; None for anything else."""
    match = re.match(
        r"(global|scratch|flat|buffer|ds)_(load|store|read|write)_(\w+)$", mnemonic
    )
    if match is None:
        return None
    is_store, what = match[2] in ("store", "write"), match[3]
    if words := _SIZES.get(what) or _LDS_SIZES.get(what):
        return Transfer(is_store, 4, words)
    small = _SMALL.match(
        what.removeprefix("b") if match[1] == "ds" and is_store else what
    )
    if small is None:
        return None
    place = "high" if small[4] else "low" if small[3] and not is_store else ""
    width = 1 if small[2] in ("byte", "8") else 2
    return Transfer(is_store, width, 1, small[1] in ("s", "i"), place)


# Addresses.


def offset_of(instruction: Instruction, name: str = "offset") -> int:
    """The constant that is added to an address."""
    return int(instruction.modifiers.get(name, "0"), 0)


def signed_offset(instruction: Instruction) -> Array:
    """The same, which may be negative, for addresses of 64 bits."""
    return np.int64(offset_of(instruction)).view(np.uint64)


def global_address(
    instruction: Instruction, operand: Operand, base: Operand | None = None
) -> Address:
    """A 64-bit address in two registers, or a 64-bit base and a 32-bit offset."""
    offset = signed_offset(instruction)
    if base is None or base.text == "off":
        wide = vector_source(operand, "u64", {}, 0)
        return checked(instruction, [wide], lambda w: wide.value(w) + offset)
    start, narrow = (
        vector_source(base, "u64", {}, 0),
        vector_source(operand, "u32", {}, 0),
    )

    def sum_up(waves: Waves) -> Array:
        return narrow.value(waves).astype(np.uint64) + (start.value(waves) + offset)

    return checked(instruction, [start, narrow], sum_up)


def shared_address(instruction: Instruction, operand: Operand, offset: int) -> Address:
    """A 32-bit address within a group's memory."""
    start = vector_source(operand, "u32", {}, 0)
    wrapped = np.uint32(offset & 0xFFFFFFFF)  # a base may be negative
    return checked(instruction, [start], lambda w: start.value(w) + wrapped)


def private_address(
    instruction: Instruction, operand: Operand, base: Operand
) -> Address:
    """An offset within a lane's own memory: a register of the lane, of the wave, or both."""
    offset = np.int64(offset_of(instruction))
    parts = [vector_source(o, "i32", {}, 0) for o in (operand, base) if o.text != "off"]

    def sum_up(waves: Waves) -> Array:
        total: Any = np.full((1, 1), offset)
        for part in parts:
            total = total + part.value(waves)
        return total

    return checked(instruction, parts, sum_up)


def checked(instruction: Instruction, sources: list[Any], address: Address) -> Address:
    """Tells of an address that depends on undefined bits."""
    watched = (
        frozenset().union(*(source.numbers for source in sources))
        if sources
        else frozenset()
    )

    def check(waves: Waves) -> Array:
        if waves.dirty and not waves.dirty.isdisjoint(watched):
            wrong = waves.mask
            undefined = np.zeros((1, 1), np.bool_)
            for source in sources:
                undefined = undefined | (source.shadow(waves) != 0)
            if (wrong & undefined).any():
                waves.report_undefined(instruction, "an address", wrong & undefined)
        return address(waves)

    return check


@dataclass(frozen=True, slots=True)
class Space:
    """A kind of memory: its bytes, and where in them an address lies. Undefined bits that reach
    `is_global` memory are told of."""

    bytes_of: Callable[[Array], Bytes]
    index: Callable[[Any, Any, int, Instruction], CheckedOffsets]
    is_global: bool = False


GLOBAL = Space(
    lambda waves: waves.around.arena.bytes,
    lambda w, a, n, i: w.global_index(a, n, i),
    True,
)
SHARED = Space(lambda waves: waves.shared, lambda w, a, n, i: w.shared_index(a, n, i))
PRIVATE = Space(
    lambda waves: waves.private, lambda w, a, n, i: w.private_index(a, n, i)
)


# Moving.


def put(waves: Waves, index: int, values: Array, undefined: Array | None) -> None:
    """Write a value for each active lane, flat, to a vector register."""
    active = waves.active()
    waves.write_vector(index, "u32", _spread_out(waves, values, active))
    if undefined is None:
        waves.define((FIRST_VECTOR + index,))
    else:
        shadow = _spread_out(waves, undefined, active)
        waves.set_shadow(FIRST_VECTOR + index, shadow)


def _spread_out(waves: Waves, values: Array, active: Array | None) -> Array:
    if active is None:
        return values.reshape(-1, waves.lanes)
    whole = np.zeros((waves.count(), waves.lanes), values.dtype)
    whole[active] = values
    return whole


def bind_load(
    instruction: Instruction,
    space: Space,
    address: Address,
    transfer: Transfer,
    result: int,
) -> Run:
    """Loads into the registers from number `result` on."""
    size = transfer.width * transfer.count

    def run(waves: Waves) -> None:
        index, wrong = space.index(waves, address(waves), size, instruction)
        loaded = loaded_pieces(space.bytes_of(waves), index, wrong, transfer)
        for number, piece in enumerate(loaded):
            _put_piece(waves, result + number, transfer, piece)

    return run


def loaded_pieces(
    memory: Bytes, index: Array, wrong: Array | None, transfer: Transfer
) -> list[LoadedBits]:
    """Each piece: of words all at once."""
    width, count = transfer.width, transfer.count
    if width == 4 and count in (1, 2, 4):
        words, unknown = memory.load_words(index, count)
        undefined = [None if unknown is None else unknown[:, n] for n in range(count)]
        pieces = [LoadedBits(*piece) for piece in zip(words.T, undefined, strict=True)]
    else:
        places = [index + width * number for number in range(count)]
        pieces = [
            LoadedBits(memory.load(place, width), memory.load_undefined(place, width))
            for place in places
        ]
    for values, unknown in pieces if wrong is not None else ():
        values[wrong] = 0
        if unknown is not None:
            unknown[wrong] = 0
    return pieces


def _put_piece(waves: Waves, index: int, transfer: Transfer, piece: LoadedBits) -> None:
    words = as_words(transfer, piece)
    if transfer.place:
        words = _into_half(waves, index, transfer.place, words)
    put(waves, index, words.values, words.undefined)


def as_words(transfer: Transfer, piece: LoadedBits) -> LoadedBits:
    """A piece of any width as 32 bits."""
    if transfer.width == 4:
        return piece
    values, undefined = piece
    if transfer.is_signed:
        values = values.view(f"i{transfer.width}").astype(np.int32).view(np.uint32)
    unknown = None if undefined is None else undefined.astype(np.uint32)
    return LoadedBits(values.astype(np.uint32), unknown)


def _into_half(waves: Waves, index: int, place: str, words: LoadedBits) -> LoadedBits:
    """The register's other half stays."""
    values, shadow = words
    shift = np.uint32(16 if place == "high" else 0)
    kept = np.uint32(0xFFFF if place == "high" else 0xFFFF0000)
    active = waves.active()
    old = waves.pick(waves.values.vector(index, "u32", waves.rows), active)
    joined = (old & kept) | ((values & np.uint32(0xFFFF)) << shift)
    if waves.shadow is None:
        return LoadedBits(joined, None)
    old = waves.pick(waves.shadow.vector(index, "u32", waves.rows), active)
    undefined = np.uint32(0) if shadow is None else shadow
    return LoadedBits(joined, (old & kept) | ((undefined & np.uint32(0xFFFF)) << shift))


def bind_store(
    instruction: Instruction,
    space: Space,
    address: Address,
    transfer: Transfer,
    data: Operand,
) -> Run:
    """Stores what stands in the registers of `data`."""
    size = transfer.width * transfer.count
    shift = np.uint32(16 if transfer.place == "high" else 0)
    first = vector_index(data)
    registers = range(first, first + transfer.count)
    numbers = frozenset(FIRST_VECTOR + number for number in registers)

    def run(waves: Waves) -> None:
        index, wrong = space.index(waves, address(waves), size, instruction)
        bytes_, active = space.bytes_of(waves), waves.active()
        is_clean = not waves.dirty or waves.dirty.isdisjoint(numbers)
        if (
            is_clean
            and wrong is None
            and transfer.width == 4
            and transfer.count in (2, 4)
        ):
            words = [
                _piece(waves, waves.values, n, active, shift, 4) for n in registers
            ]
            items = np.stack(words, axis=-1).view(BY_WIDTH[size])[:, 0]
            bytes_.store(index, size, items, None)
            return
        for number in range(transfer.count):
            place = index + transfer.width * number
            values = _piece(
                waves, waves.values, first + number, active, shift, transfer.width
            )
            undefined = None
            if not is_clean:
                undefined = _piece(
                    waves, waves.shadow, first + number, active, shift, transfer.width
                )
                if space.is_global:
                    undefined = _told(waves, instruction, undefined, active)
            if wrong is not None:
                place, values = place[~wrong], values[~wrong]
                undefined = None if undefined is None else undefined[~wrong]
            bytes_.store(place, transfer.width, values, undefined)

    return run


def _piece(
    waves: Waves, file: File, index: int, active: Array | None, shift: Array, width: int
) -> Array:
    whole = waves.pick(file.vector(index, "u32", waves.rows), active)
    return (whole >> shift).astype(f"u{width}")


def _told(
    waves: Waves, instruction: Instruction, undefined: Array, active: Array | None
) -> Array | None:
    """Undefined bits that reach memory are told of, and count as written from then on."""
    if not undefined.any():
        return None
    lanes = _spread_out(waves, undefined != 0, active)
    waves.report_undefined(instruction, "what is stored", lanes)
    return None


# Instructions.


def bind_memory(instruction: Instruction) -> Run | None:
    """A load or store of one piece; None for anything else."""
    transfer = transfer_of(instruction.mnemonic)
    if transfer is None:
        return None
    operands = instruction.operands
    place = 0 if transfer.is_store else 1
    if instruction.mnemonic.startswith("ds_"):
        space = SHARED
        address = shared_address(instruction, operands[place], offset_of(instruction))
        data = operands[1]
    elif instruction.mnemonic.startswith(("global_", "scratch_")):
        space = GLOBAL if instruction.mnemonic.startswith("global_") else PRIVATE
        make = global_address if space is GLOBAL else private_address
        data, base = operands[1], operands[2]
        address = make(instruction, operands[place], base)
    else:
        return None
    if transfer.is_store:
        run = bind_store(instruction, space, address, transfer, data)
    else:
        data = operands[0]
        run = bind_load(instruction, space, address, transfer, vector_index(data))
    if transfer.width != 4:
        return run
    if space is GLOBAL and not transfer.is_store:
        result = RegisterRange(vector_index(data), transfer.count)
        offset = offset_of(instruction)
        return global_words.bind_words(
            operands[place], operands[2], offset, result, run
        )
    if space is not SHARED:
        return run
    piece = WordSpan(offset_of(instruction), transfer.count, vector_index(data))
    return bind_words(operands[place], [piece], transfer.is_store, run)


_TWO = re.compile(r"ds_(read|write)2(st64)?_b(32|64)$")


def bind_two(instruction: Instruction) -> Run | None:
    """Two pieces at two places of shared memory; None for anything else."""
    match = _TWO.match(instruction.mnemonic)
    if match is None:
        return None
    words = int(match[3]) // 32
    unit = 4 * words * (64 if match[2] else 1)
    is_store = match[1] == "write"
    runs, pieces = [], []
    for number in range(2):
        offset = offset_of(instruction, f"offset{number}") * unit
        operand = instruction.operands[0 if is_store else 1]
        address = shared_address(instruction, operand, offset)
        transfer = Transfer(is_store, 4, words)
        if is_store:
            data = instruction.operands[1 + number]
            result = vector_index(data)
            runs.append(bind_store(instruction, SHARED, address, transfer, data))
        else:
            result = vector_index(instruction.operands[0]) + words * number
            runs.append(bind_load(instruction, SHARED, address, transfer, result))
        pieces.append(WordSpan(offset, words, result))
    address_operand = instruction.operands[0 if is_store else 1]
    return bind_words(address_operand, pieces, is_store, _both(runs, instruction))


def _both(runs: list[Run], instruction: Instruction) -> Run:
    result, address = instruction.operands[0], instruction.operands[1]
    is_overwritten = result.index <= address.index < result.index + result.count
    if "read" in instruction.mnemonic and is_overwritten:
        # The first half would change the address of the second one; their places do not overlap.
        last = address.index >= result.index + result.count // 2
        runs = runs if last else runs[::-1]

    def run(waves: Waves) -> None:
        for one in runs:
            one(waves)

    return run
