"""Loads and stores: of the device's memory, of a group's shared memory, of a lane's own (scratch).

Inactive lanes access nothing. An access out of bounds is reported, reads 0 and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias, TypeVar

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand, RegisterRange
from refcomp.emulator.instructions.memory import global_words
from refcomp.emulator.instructions.memory.shared_words import WordSpan, bind_words
from refcomp.emulator.instructions.spreads import any_undefined
from refcomp.emulator.machine.arrays import Array, Mask, Offsets, Words
from refcomp.emulator.machine.memory import BY_WIDTH, Bytes, LoadedBits
from refcomp.emulator.machine.registers import FIRST_VECTOR, File
from refcomp.emulator.machine.sources import OperandSource, vector_index, vector_source
from refcomp.emulator.machine.waves import CheckedOffsets, Run, Waves

# Returns the address of each lane: [wave, lane], or [wave, 1] for the same in all lanes.
Address: TypeAlias = Callable[[Waves], Array]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Transfer:
    """The data that a load or store moves for each lane."""

    is_store: bool
    width: int  # bytes of a piece
    count: int = 1  # number of pieces
    is_signed: bool = False  # whether a piece is sign-extended
    # The half of its register that a piece takes: "low" or "high"; "": all of it.
    place: str = ""


# Suffix of a mnemonic -> number of words.
_SIZES = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4}
_LDS_SIZES = {"b32": 1, "b64": 2, "b96": 3, "b128": 4}
_SMALL = re.compile(r"([usi]?)(byte|short|8|16)(_d16)?(_hi)?$")


@cache
def transfer_of(mnemonic: str) -> Transfer | None:
    """Return the transfer of a load or store of one place; None for another instruction."""
    match = re.match(
        r"(global|scratch|flat|buffer|ds)_(load|store|read|write)_(\w+)$", mnemonic
    )
    if match is None:
        return None
    is_store = match[2] in ("store", "write")
    what = match[3]
    if words := _SIZES.get(what) or _LDS_SIZES.get(what):
        return Transfer(is_store, 4, words)
    if match[1] == "ds" and is_store:
        what = what.removeprefix("b")
    small = _SMALL.match(what)
    if small is None:
        return None
    place = ""
    if small[4]:
        place = "high"
    elif small[3] and not is_store:
        place = "low"
    width = 1 if small[2] in ("byte", "8") else 2
    return Transfer(is_store, width, 1, small[1] in ("s", "i"), place)


# Addresses.


def offset_of(instruction: Instruction, name: str = "offset") -> int:
    """Return the constant that is added to an address."""
    return int(instruction.modifiers.get(name, "0"), 0)


def signed_offset(instruction: Instruction) -> np.uint64:
    """Return the constant, which may be negative, for addresses of 64 bits."""
    return np.int64(offset_of(instruction)).view(np.uint64)


def global_address(
    instruction: Instruction, operand: Operand, base: Operand | None = None
) -> Address:
    """Return the address in two registers, or the sum of a 64-bit base and a 32-bit offset."""
    offset = signed_offset(instruction)
    if base is None or base.text == "off":
        wide = vector_source(operand, "u64", {}, 0)
        return checked(instruction, [wide], lambda waves: wide.value(waves) + offset)
    start = vector_source(base, "u64", {}, 0)
    narrow = vector_source(operand, "u32", {}, 0)

    def add(waves: Waves) -> Array:
        return narrow.value(waves).astype(np.uint64) + (start.value(waves) + offset)

    return checked(instruction, [start, narrow], add)


def shared_address(instruction: Instruction, operand: Operand, offset: int) -> Address:
    """Return the 32-bit address within a group's memory."""
    start = vector_source(operand, "u32", {}, 0)
    wrapped = np.uint32(offset & 0xFFFFFFFF)  # a base may be negative
    return checked(instruction, [start], lambda waves: start.value(waves) + wrapped)


def private_address(
    instruction: Instruction, operand: Operand, base: Operand
) -> Address:
    """Return the offset within a lane's own memory: a vector register, a scalar one, or both."""
    offset = np.int64(offset_of(instruction))
    parts = [vector_source(o, "i32", {}, 0) for o in (operand, base) if o.text != "off"]

    def add(waves: Waves) -> Array:
        total: Array = np.full((1, 1), offset)
        for part in parts:
            total = total + part.value(waves)
        return total

    return checked(instruction, parts, add)


def checked(
    instruction: Instruction,
    sources: Sequence[OperandSource],
    address: Callable[[Waves], _T],
) -> Callable[[Waves], _T]:
    """Return `address`, made of `sources`, which first reports undefined bits of active lanes."""
    watched = frozenset[int]().union(*(source.numbers for source in sources))

    def check(waves: Waves) -> _T:
        if waves.dirty and not waves.dirty.isdisjoint(watched):
            undefined = waves.mask & any_undefined(
                source.shadow(waves) for source in sources
            )
            if undefined.any():
                waves.report_undefined(instruction, "an address", undefined)
        return address(waves)

    return check


@dataclass(frozen=True, slots=True)
class Space:
    """A kind of memory."""

    bytes_of: Callable[[Waves], Bytes]
    # Checks the addresses of an access of so many bytes a lane.
    index: Callable[[Waves, Array, int, Instruction], CheckedOffsets]
    is_global: bool = False  # whether undefined bits that are stored to it are reported


GLOBAL = Space(lambda waves: waves.around.arena.bytes, Waves.global_index, True)
SHARED = Space(lambda waves: waves.shared, Waves.shared_index)
PRIVATE = Space(lambda waves: waves.private, Waves.private_index)


# Moving.


def put(waves: Waves, index: int, values: Words, undefined: Array | None) -> None:
    """Write a value for each active lane, flat, to a vector register."""
    active = waves.active()
    waves.write_vector(index, "u32", _spread_out(waves, values, active))
    if undefined is None:
        waves.define((FIRST_VECTOR + index,))
    else:
        shadow = _spread_out(waves, undefined, active)
        waves.set_shadow(FIRST_VECTOR + index, shadow)


def _spread_out(waves: Waves, values: Array, active: Mask | None) -> Array:
    """Return values of active lanes, flat, as [wave, lane], with 0 in the others."""
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
    """Bind a load to the vector registers from number `result` on."""
    size = transfer.width * transfer.count

    def run(waves: Waves) -> None:
        index, wrong = space.index(waves, address(waves), size, instruction)
        loaded = loaded_pieces(space.bytes_of(waves), index, wrong, transfer)
        for number, piece in enumerate(loaded):
            words = as_words(transfer, piece)
            if transfer.place:
                words = _into_half(waves, result + number, transfer.place, words)
            put(waves, result + number, words.values, words.undefined)

    return run


def loaded_pieces(
    memory: Bytes, index: Offsets, wrong: Mask | None, transfer: Transfer
) -> list[LoadedBits]:
    """Return each piece that is loaded, 0 where it is out of bounds."""
    width = transfer.width
    count = transfer.count
    pieces = []
    if width == 4 and count in (1, 2, 4):
        words, unknown = memory.load_words(index, count)
        for number in range(count):
            undefined = None if unknown is None else unknown[:, number]
            pieces.append(LoadedBits(words[:, number], undefined))
    else:
        for number in range(count):
            place = index + width * number
            undefined = memory.load_undefined(place, width)
            pieces.append(LoadedBits(memory.load(place, width), undefined))
    if wrong is not None:
        for values, undefined in pieces:
            values[wrong] = 0
            if undefined is not None:
                undefined[wrong] = 0
    return pieces


def as_words(transfer: Transfer, piece: LoadedBits) -> LoadedBits:
    """Return a piece of any width as 32 bits."""
    if transfer.width == 4:
        return piece
    values, undefined = piece
    if transfer.is_signed:
        values = values.view(f"i{transfer.width}").astype(np.int32).view(np.uint32)
    unknown = None if undefined is None else undefined.astype(np.uint32)
    return LoadedBits(values.astype(np.uint32), unknown)


def _into_half(waves: Waves, index: int, place: str, words: LoadedBits) -> LoadedBits:
    """Return the register with `words` in one half, and its old value in the other."""
    values, shadow = words
    shift = np.uint32(16 if place == "high" else 0)
    kept = np.uint32(0xFFFF if place == "high" else 0xFFFF0000)
    active = waves.active()
    old = waves.pick(waves.values.vector(index, "u32", waves.rows), active)
    joined = (old & kept) | ((values & np.uint32(0xFFFF)) << shift)
    if waves.shadow is None:
        return LoadedBits(joined, None)
    undefined = waves.pick(waves.shadow.vector(index, "u32", waves.rows), active) & kept
    if shadow is not None:
        undefined = undefined | ((shadow & np.uint32(0xFFFF)) << shift)
    return LoadedBits(joined, undefined)


def bind_store(
    instruction: Instruction,
    space: Space,
    address: Address,
    transfer: Transfer,
    data: Operand,
) -> Run:
    """Bind a store of the registers of `data`."""
    width = transfer.width
    size = width * transfer.count
    shift = np.uint32(16 if transfer.place == "high" else 0)
    first = vector_index(data)
    registers = range(first, first + transfer.count)
    numbers = frozenset(FIRST_VECTOR + number for number in registers)
    is_item = width == 4 and transfer.count in (2, 4)  # numpy has items of this size

    def piece(waves: Waves, file: File, register: int, active: Mask | None) -> Array:
        whole = waves.pick(file.vector(register, "u32", waves.rows), active)
        return (whole >> shift).astype(f"u{width}")

    def run(waves: Waves) -> None:
        index, wrong = space.index(waves, address(waves), size, instruction)
        memory = space.bytes_of(waves)
        active = waves.active()
        shadow = waves.shadow
        if shadow is not None and waves.dirty.isdisjoint(numbers):
            shadow = None
        if shadow is not None and is_item:
            # The order of lanes that overlap must not depend on what may be undefined.
            undefined_words = [
                piece(waves, shadow, register, active) for register in registers
            ]
            if not any(bits.any() for bits in undefined_words):
                shadow = None
        if shadow is None and wrong is None and is_item:
            words = [
                piece(waves, waves.values, register, active) for register in registers
            ]
            items = np.stack(words, axis=-1).view(BY_WIDTH[size])[:, 0]
            memory.store(index, size, items, None)
            return
        for number, register in enumerate(registers):
            place = index + width * number
            values = piece(waves, waves.values, register, active)
            undefined = None
            if shadow is not None:
                undefined = piece(waves, shadow, register, active)
                if space.is_global:
                    _report_stored(waves, instruction, undefined, active)
                    undefined = None  # so that it is reported once
            if wrong is not None:
                place = place[~wrong]
                values = values[~wrong]
                undefined = None if undefined is None else undefined[~wrong]
            memory.store(place, width, values, undefined)

    return run


def _report_stored(
    waves: Waves, instruction: Instruction, undefined: Array, active: Mask | None
) -> None:
    if undefined.any():
        lanes = _spread_out(waves, undefined != 0, active)
        waves.report_undefined(instruction, "what is stored", lanes)


# Instructions.


def bind_memory(instruction: Instruction) -> Run | None:
    """Bind a load or store of one place; None for any other instruction."""
    transfer = transfer_of(instruction.mnemonic)
    if transfer is None:
        return None
    operands = instruction.operands
    place, data = (0, operands[1]) if transfer.is_store else (1, operands[0])
    offset = offset_of(instruction)
    if instruction.mnemonic.startswith("ds_"):
        space = SHARED
        address = shared_address(instruction, operands[place], offset)
    elif instruction.mnemonic.startswith("global_"):
        space = GLOBAL
        address = global_address(instruction, operands[place], operands[2])
    elif instruction.mnemonic.startswith("scratch_"):
        space = PRIVATE
        address = private_address(instruction, operands[place], operands[2])
    else:
        return None
    if transfer.is_store:
        run = bind_store(instruction, space, address, transfer, data)
    else:
        run = bind_load(instruction, space, address, transfer, vector_index(data))
    if transfer.width != 4:
        return run
    if space is GLOBAL and not transfer.is_store:
        result = RegisterRange(vector_index(data), transfer.count)
        return global_words.bind_words(
            operands[place], operands[2], offset, result, run
        )
    if space is not SHARED:
        return run
    piece = WordSpan(offset, transfer.count, vector_index(data))
    return bind_words(operands[place], [piece], transfer.is_store, run)


_TWO = re.compile(r"ds_(read|write)2(st64)?_b(32|64)$")


def bind_two(instruction: Instruction) -> Run | None:
    """Bind a load or store of two places of shared memory; None for any other instruction."""
    match = _TWO.match(instruction.mnemonic)
    if match is None:
        return None
    words = int(match[3]) // 32
    unit = 4 * words * (64 if match[2] else 1)
    is_store = match[1] == "write"
    transfer = Transfer(is_store, 4, words)
    address_operand = instruction.operands[0 if is_store else 1]
    runs = []
    pieces = []
    for number in range(2):
        offset = offset_of(instruction, f"offset{number}") * unit
        address = shared_address(instruction, address_operand, offset)
        if is_store:
            data = instruction.operands[1 + number]
            result = vector_index(data)
            runs.append(bind_store(instruction, SHARED, address, transfer, data))
        else:
            result = vector_index(instruction.operands[0]) + words * number
            runs.append(bind_load(instruction, SHARED, address, transfer, result))
        pieces.append(WordSpan(offset, words, result))
    return bind_words(address_operand, pieces, is_store, _both(runs, instruction))


def _both(runs: list[Run], instruction: Instruction) -> Run:
    result, address = instruction.operands[:2]
    is_overwritten = result.index <= address.index < result.index + result.count
    if "read" in instruction.mnemonic and is_overwritten:
        # The half that overwrites the address runs last; the places of both do not overlap.
        is_last = address.index >= result.index + result.count // 2
        runs = runs if is_last else runs[::-1]

    def run(waves: Waves) -> None:
        for one in runs:
            one(waves)

    return run
