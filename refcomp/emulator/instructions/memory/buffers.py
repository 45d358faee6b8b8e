"""Accesses through a descriptor of a buffer: buffer_load..., buffer_store..., buffer_atomic...

    buffer_load_dword v0, v1, s[0:3], s4 offen offset:16

The descriptor, four scalar registers, has an address, a stride, how many records there are, and how
elements are interleaved. What lies behind the records reads 0 and is not written: that is what it
is for, and nothing is told of it. Of several words each is looked at by itself, but for RDNA3's
vector accesses, which are whole in range or not at all. Linear, an element lies at stride * index +
offset; swizzled, `index_stride` indices stand side by side, four bytes of each at a time. Where
private memory is reached through such a descriptor (gfx90a), each wave has the bytes of all its
lanes behind the address `SCRATCH`, swizzled.
Refuses, by Unsupported, elements of formats, swizzled ones of more than four bytes, and where GPUs
have other fields (gfx1100), all but buffers of bytes side by side.
Manuals: MI200 and CDNA3 ISA, section on vector memory buffer instructions; RDNA3 ISA, section on
buffer resources; for RDNA3's check of a whole access, OOB_SELECT as Mesa's drivers have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand, RegisterRange
from refcomp.emulator.instructions.lanes import in_lanes
from refcomp.emulator.instructions.memory.anywhere import Anywhere, bind_anywhere
from refcomp.emulator.instructions.memory.direct_loads import bind_into_shared
from refcomp.emulator.instructions.memory.loads_and_stores import (
    GLOBAL,
    PRIVATE,
    Address,
    Run,
    Space,
    checked,
    offset_of,
    put,
    transfer_of,
)
from refcomp.emulator.instructions.memory.scalar_loads import load_scalars
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.sources import OperandSource, vector_source
from refcomp.emulator.machine.waves import CheckedOffsets, Waves
from refcomp.foundation.errors import Unsupported

_PIECE = 4  # bytes that stay together in a swizzled buffer
_MODIFIERS = {
    "idxen",
    "offen",
    "offset",
    "sc0",
    "sc1",
    "nt",
    "glc",
    "slc",
    "dlc",
    "scc",
    "lds",
}
# Where the private memory of all waves lies for those who reach it through a descriptor.
SCRATCH = 1 << 46
# Swizzled; so many bytes as there may be; the lane is added to the index; 64 lanes side by side.
SCRATCH_DESCRIPTOR = (0, SCRATCH >> 32 | 1 << 31, 0xFFFFFFFF, 1 << 23 | 3 << 21)
_SCRATCH_END = SCRATCH << 1


def wave_bytes(private_bytes: int, lanes: int) -> int:
    """How many bytes of private memory a wave has."""
    return -(-private_bytes // _PIECE) * _PIECE * lanes


@dataclass(frozen=True, slots=True)
class BufferAddresses:
    """Where each lane accesses, and whether that is private memory: `address`, `reach`, from which
    the records are counted, and `number`, that of the record: [wave, lane]; of each wave how many
    `records` there are, and whether its buffer is swizzled: [wave, 1]."""

    address: Array
    reach: Array
    number: Array
    records: Array
    is_swizzled: Array

    def holds(self, size: int) -> Array:
        """Where so many bytes are in range."""
        linear = self.reach + np.uint64(size) <= self.records
        return np.where(self.is_swizzled, self.number < self.records, linear)

    def is_private(self) -> Array:
        """Which addresses are those of private memory."""
        return (self.address >= SCRATCH) & (self.address < _SCRATCH_END)


class _Held:
    """The place of an access, for the time that it takes: it may overwrite its own addresses."""

    place: BufferAddresses

    def address(self, offset: int) -> Address:
        """Its addresses, and some bytes more."""
        return lambda waves: self.place.address + np.uint64(offset)


def bind_buffer(instruction: Instruction, *, is_plain: bool = False) -> Run | None:
    """The instruction, ready to run; None when it is no such access. `is_plain` has it refuse
    descriptors as `_refuse_fields` does, and look at all words together."""
    if not instruction.mnemonic.startswith("buffer_"):
        return None
    if unknown := sorted(set(instruction.modifiers) - _MODIFIERS):
        told = ", ".join(unknown)
        raise Unsupported(
            f"{told} of an access to a buffer is not known", where=str(instruction)
        )
    access, is_direct = _access(instruction), "lds" in instruction.modifiers
    if access is None:
        return None
    place = _place(instruction, is_plain)
    find, held = checked(instruction, place.sources, place.find), _Held()
    whole = _within_range(access, held, 0)
    words = () if is_plain else access.words
    parts = [
        _within_range(word, held, _PIECE * number) for number, word in enumerate(words)
    ]

    def run(waves: Waves) -> None:
        held.place = found = find(waves)
        if access.size > _PIECE and found.is_swizzled.any():
            raise Unsupported(
                "a swizzled access of more than 4 bytes", where=str(instruction)
            )
        rest = waves.mask
        if is_direct and (rest & ~found.holds(access.size)).any():
            raise Unsupported(
                "a load to shared memory out of range", where=str(instruction)
            )
        if parts:
            split = rest & found.holds(_PIECE) & ~found.holds(access.size)
            if split.any():
                for part in parts:
                    part(waves, split)
                rest = rest & ~split
        whole(waves, rest)

    return run


def _access(instruction: Instruction) -> Anywhere | None:
    if "lds" not in instruction.modifiers:
        return bind_anywhere(instruction, instruction.operands[0])
    transfer = transfer_of(instruction.mnemonic)
    size = _PIECE if transfer is None else transfer.width
    return Anywhere(
        lambda space, place: bind_into_shared(instruction, space, place), size, None
    )


def _within_range(
    access: Anywhere, held: _Held, offset: int
) -> Callable[[Any, Array], None]:
    """An access so far behind the place, in those lanes of some where all of it is in range; what
    it fills becomes 0 in the others."""
    address = held.address(offset)
    usual, private = access.make(GLOBAL, address), access.make(_SCRATCH_SPACE, address)

    def run(waves: Waves, lanes: Array) -> None:
        inside = lanes & held.place.holds(offset + access.size)
        outside, is_private = lanes & ~inside, held.place.is_private()
        if access.written is not None and outside.any():
            registers = access.written
            in_lanes(waves, outside, lambda some: _clear(some, registers))
        for mask, one in (
            (inside & is_private, private),
            (inside & ~is_private, usual),
        ):
            if mask.any():
                in_lanes(waves, mask, one)

    return run


def _clear(waves: Waves, registers: RegisterRange) -> None:
    for number in range(registers.count):
        put(
            waves,
            registers.first + number,
            np.zeros(int(waves.mask.sum()), np.uint32),
            None,
        )


@dataclass(frozen=True, slots=True)
class _BufferPlace:
    """How an access finds its place."""

    # All operands that it depends on.
    sources: list[OperandSource]
    # Waves -> addresses of their lanes.
    find: Callable[[Array], BufferAddresses]


def _place(instruction: Instruction, is_plain: bool) -> _BufferPlace:
    vector, descriptor, more = instruction.operands[-3:]
    words = _descriptor(descriptor)
    scalar, constant = (
        vector_source(more, "u32", {}, 0),
        np.uint64(offset_of(instruction)),
    )
    parts = _vector_parts(instruction, vector)
    lane = np.arange(instruction.lanes, dtype=np.uint64)

    def find(waves: Waves) -> BufferAddresses:
        low, high = words.low.value(waves), words.high.value(waves)
        if is_plain:
            _refuse_fields(instruction, low, high)
        by_lane = np.where(
            high >> np.uint64(55) & np.uint64(1) == 1, lane, np.uint64(0)
        )
        number = _wide(parts.index, waves) + by_lane
        within = _wide(parts.offset, waves) + constant
        return _located(low, high, number, within, _wide(scalar, waves))

    vectors = [part for part in (parts.index, parts.offset) if part is not None]
    return _BufferPlace([words.low, words.high, scalar, *vectors], find)


@dataclass(frozen=True, slots=True)
class _VectorParts:
    """What of an address stands in vector registers; None: that part is 0."""

    # Number of the record, by `idxen`.
    index: OperandSource | None
    # Bytes, by `offen`.
    offset: OperandSource | None


def _vector_parts(instruction: Instruction, vector: Operand) -> _VectorParts:
    """The index comes first where both stand in registers."""
    found: list[OperandSource | None] = []
    for name in ("idxen", "offen"):
        if name in instruction.modifiers:
            place = vector.index + sum(part is not None for part in found)
            found.append(
                vector_source(replace(vector, index=place, count=1), "u32", {}, 0)
            )
        else:
            found.append(None)
    return _VectorParts(*found)


_SCALARS = re.compile(r"s_buffer_load_dword(?:x(\d+))?$")


def bind_buffer_scalars(instruction: Instruction) -> Run | None:
    """Loads of scalar registers, ready to run; None for anything else."""
    match = _SCALARS.match(instruction.mnemonic)
    if match is None:
        return None
    count, (result, descriptor, offset) = int(match[1] or 1), instruction.operands
    words = _descriptor(descriptor)
    more, constant = (
        vector_source(offset, "u32", {}, 0),
        np.uint64(offset_of(instruction)),
    )
    ends = np.arange(_PIECE, _PIECE * (count + 1), _PIECE, dtype=np.uint64)

    def run(waves: Waves) -> None:
        low, high, within = (
            _wide(source, waves) for source in (words.low, words.high, more)
        )
        within = (within + constant) & ~np.uint64(3)
        # Records, of a scalar load, are as long as the stride says.
        limit = (high & np.uint64(0xFFFFFFFF)) * np.maximum(_stride(low), np.uint64(1))
        address = (low & np.uint64((1 << 48) - 1)) + within
        address = np.broadcast_to(address, (waves.count(), 1))[:, 0]
        inside = np.broadcast_to(within + ends <= limit, (waves.count(), count))
        if inside.all():
            load_scalars(waves, instruction, result.index, address, count)
            return
        for number in range(count):
            place = address + np.uint64(_PIECE * number)
            _load_word(
                waves, instruction, result.index + number, place, inside[:, number]
            )

    return run


def _load_word(
    waves: Waves, ins: Instruction, result: int, address: Array, inside: Array
) -> None:
    """One scalar register of each wave, 0 where that is out of range."""
    rows = waves.rows
    waves.write_scalar(result, "u32", np.zeros(len(inside), np.uint32))
    waves.define((result,))
    if inside.any():
        waves.select(np.arange(waves.waves)[rows][inside])
        load_scalars(waves, ins, result, address[inside], 1)
        waves.select(rows)


@dataclass(frozen=True, slots=True)
class _DescriptorWords:
    """The four scalar registers of a descriptor, as two numbers of 64 bits."""

    # Bits 0 to 63: address, stride, and whether the buffer is swizzled.
    low: OperandSource
    # Bits 64 to 127: number of records, and how they are laid out.
    high: OperandSource


def _descriptor(operand: Operand) -> _DescriptorWords:
    places = (replace(operand, index=operand.index + n, count=2) for n in (0, 2))
    return _DescriptorWords(*(vector_source(place, "u64", {}, 0) for place in places))


def _stride(low: Array) -> Array:
    return low >> np.uint64(48) & np.uint64(0x3FFF)


def _refuse_fields(instruction: Instruction, low: Array, high: Array) -> None:
    """RDNA3 has other fields for swizzling, strides and bounds: nothing but an address and how
    many bytes there are (OOB_SELECT 3, a raw buffer) means the same there."""
    odd = low >> np.uint64(48) | high >> np.uint64(55) & np.uint64(1)
    if np.any(odd) or np.any(high >> np.uint64(60) & np.uint64(3) != 3):
        raise Unsupported(
            "a buffer with a stride, swizzled, or not checked by bytes",
            where=str(instruction),
        )


def _wide(source: OperandSource | None, waves: Waves) -> Array:
    return (
        np.uint64(0)
        if source is None
        else np.asarray(source.value(waves)).astype(np.uint64)
    )


def _located(
    low: Array, high: Array, number: Array, within: Array, scalar: Array
) -> BufferAddresses:
    """By the fields of the descriptor: an index, an offset, and what is added to all addresses."""
    by_lane = high >> np.uint64(55) & np.uint64(1)
    base, stride = low & np.uint64((1 << 48) - 1), _stride(low)
    stride = stride | (by_lane * (high >> np.uint64(47) & np.uint64(15))) << np.uint64(
        14
    )
    is_swizzled = low >> np.uint64(63) == 1
    together = np.uint64(8) << (high >> np.uint64(53) & np.uint64(3))
    piece = np.uint64(_PIECE)
    linear = within + stride * number
    # The address comes out right, as LLVM counts on, where the sum of offsets does not fit.
    offset = within & np.uint64(0xFFFFFFFF)
    swizzled = (number // together * stride + offset // piece * piece) * together
    swizzled = swizzled + number % together * piece + offset % piece
    reach = np.where(is_swizzled, swizzled, linear) + scalar
    return BufferAddresses(
        base + reach, reach, number, high & np.uint64(0xFFFFFFFF), is_swizzled
    )


def _private_index(
    waves: Waves, address: Array, size: int, ins: Instruction
) -> CheckedOffsets:
    """Of addresses behind `SCRATCH`: where in its own memory each lane accesses."""
    each = wave_bytes(waves.around.private_bytes, waves.lanes)
    wave = np.arange(waves.waves)[waves.rows][:, None]
    within = (address - np.uint64(SCRATCH)).view(np.int64) - wave * each
    lane = within // _PIECE % waves.lanes
    offset = within // (_PIECE * waves.lanes) * _PIECE + within % _PIECE
    # A lane that reaches another's memory is as wrong as one that reaches none.
    mine = np.where(lane == np.arange(waves.lanes), offset, -1)
    found: CheckedOffsets = waves.private_index(mine, size, ins)
    return found


_SCRATCH_SPACE = Space(PRIVATE.bytes_of, _private_index)
