"""Accesses through the descriptor of a buffer: buffer_load..., buffer_store..., buffer_atomic...

    buffer_load_dword v0, v1, s[0:3], s4 offen offset:16

The descriptor, four scalar registers, holds an address, a stride, the number of records, and how
elements are interleaved. An access beyond the records reads 0 and writes nothing; that is the
purpose of descriptors, so it is not reported. Each of several words is checked by itself, but a
vector access of RDNA3 is in range as a whole or not at all.

In a linear buffer, an element lies at stride * index + offset. In a swizzled one, `index_stride`
indices stand side by side, four bytes of each at a time. On gfx90a, private memory is a swizzled
buffer at the address `SCRATCH`, where each wave has the bytes of all its lanes.

Refuses, by Unsupported, elements of formats, and swizzled elements of more than four bytes. On GPUs
with other fields of the descriptor (gfx1100), refuses all but buffers of bytes side by side.
Manuals: MI200 and CDNA3 ISA, section on vector memory buffer instructions; RDNA3 ISA, section on
buffer resources; for RDNA3's check of a whole access, OOB_SELECT as Mesa's drivers have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand, RegisterRange
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.lanes import in_lanes
from refcomp.emulator.instructions.memory.anywhere import Anywhere, bind_anywhere
from refcomp.emulator.instructions.memory.direct_loads import bind_into_shared
from refcomp.emulator.instructions.memory.loads_and_stores import (
    GLOBAL,
    PRIVATE,
    Address,
    Space,
    checked,
    offset_of,
    put,
    transfer_of,
)
from refcomp.emulator.instructions.memory.scalar_loads import load_scalars
from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.machine.sources import OperandSource, vector_source
from refcomp.emulator.machine.waves import CheckedOffsets, Run, Waves

_PIECE = 4  # bytes that stay together in a swizzled buffer
# fmt: off
_MODIFIERS = {
    "idxen", "offen", "offset", "sc0", "sc1", "nt", "glc", "slc", "dlc", "scc", "lds",
}
# fmt: on
# The address of the private memory of all waves, for accesses through a descriptor.
SCRATCH = 1 << 46
_SCRATCH_END = SCRATCH << 1
# Swizzled, of the greatest size; the lane is added to the index; 64 lanes side by side.
SCRATCH_DESCRIPTOR = (0, SCRATCH >> 32 | 1 << 31, 0xFFFFFFFF, 1 << 23 | 3 << 21)


def wave_bytes(private_bytes: int, lanes: int) -> int:
    """Return how many bytes of private memory a wave has."""
    return -(-private_bytes // _PIECE) * _PIECE * lanes


@dataclass(frozen=True, slots=True)
class BufferAddresses:
    """The addresses of an access. All fields are u64 but `is_swizzled`."""

    address: Array  # [wave, lane]
    reach: Array  # [wave, lane]: the address less that of the first record
    number: Array  # [wave, lane]: number of the record
    records: Array  # [wave, 1]: how many records there are; of a linear buffer, bytes
    is_swizzled: Mask  # [wave, 1]

    def holds(self, size: int) -> Mask:
        """Return where so many bytes are in range."""
        linear = self.reach + np.uint64(size) <= self.records
        return np.where(self.is_swizzled, self.number < self.records, linear)

    def is_private(self) -> Mask:
        """Return which addresses are those of private memory."""
        return (self.address >= SCRATCH) & (self.address < _SCRATCH_END)


class _HeldAddresses:
    """The addresses of an access while it runs, since it may overwrite the registers of them."""

    place: BufferAddresses

    def address(self, offset: int) -> Address:
        """Return the addresses, `offset` bytes further on."""
        return lambda waves: self.place.address + np.uint64(offset)


def bind_buffer(instruction: Instruction, *, is_plain: bool = False) -> Run | None:
    """Bind an access through a descriptor; None for any other instruction.

    `is_plain` (RDNA3): refuse descriptors as `_refuse_fields` does, and check all words together.
    """
    if not instruction.mnemonic.startswith("buffer_"):
        return None
    if unknown := sorted(set(instruction.modifiers) - _MODIFIERS):
        names = ", ".join(unknown)
        raise not_emulated(f"{names} of an access to a buffer", instruction)
    access = _access(instruction)
    if access is None:
        return None
    is_direct = "lds" in instruction.modifiers
    place = _place(instruction, is_plain)
    find = checked(instruction, place.sources, place.find)
    held = _HeldAddresses()
    whole = _within_range(access, held, 0)
    words = () if is_plain else access.words
    parts = [
        _within_range(word, held, _PIECE * number) for number, word in enumerate(words)
    ]

    def run(waves: Waves) -> None:
        found = find(waves)
        held.place = found
        if access.size > _PIECE and found.is_swizzled.any():
            raise not_emulated("a swizzled access of more than 4 bytes", instruction)
        rest = waves.mask
        if is_direct and (rest & ~found.holds(access.size)).any():
            raise not_emulated("a load to shared memory out of range", instruction)
        if parts:
            partial = rest & found.holds(_PIECE) & ~found.holds(access.size)
            if partial.any():
                for part in parts:
                    part(waves, partial)
                rest = rest & ~partial
        whole(waves, rest)

    return run


def _access(instruction: Instruction) -> Anywhere | None:
    if "lds" not in instruction.modifiers:
        return bind_anywhere(instruction, instruction.operands[0])
    transfer = transfer_of(instruction.mnemonic)
    size = _PIECE if transfer is None else transfer.width
    return Anywhere(
        lambda space, address: bind_into_shared(instruction, space, address), size, None
    )


def _within_range(
    access: Anywhere, held: _HeldAddresses, offset: int
) -> Callable[[Waves, Mask], None]:
    """Return what makes an access, `offset` bytes after the held addresses, in some lanes.

    Lanes of which a part of the access is out of range access nothing; registers that it would
    fill become 0.
    """
    address = held.address(offset)
    usual = access.make(GLOBAL, address)
    private = access.make(_SCRATCH_SPACE, address)
    written = access.written

    def run(waves: Waves, lanes: Mask) -> None:
        inside = lanes & held.place.holds(offset + access.size)
        outside = lanes & ~inside
        is_private = held.place.is_private()
        if written is not None and outside.any():
            registers = written
            in_lanes(waves, outside, lambda waves: _clear(waves, registers))
        if (inside & is_private).any():
            in_lanes(waves, inside & is_private, private)
        if (inside & ~is_private).any():
            in_lanes(waves, inside & ~is_private, usual)

    return run


def _clear(waves: Waves, registers: RegisterRange) -> None:
    zeros = np.zeros(int(waves.mask.sum()), np.uint32)
    for number in range(registers.count):
        put(waves, registers.first + number, zeros, None)


@dataclass(frozen=True, slots=True)
class _BufferPlace:
    """The operands and the computation of an access's addresses."""

    sources: list[OperandSource]  # all operands that they depend on
    find: Callable[[Waves], BufferAddresses]


def _place(instruction: Instruction, is_plain: bool) -> _BufferPlace:
    vector, descriptor, more = instruction.operands[-3:]
    words = _descriptor(descriptor)
    scalar = vector_source(more, "u32", {}, 0)
    constant = np.uint64(offset_of(instruction))
    # The index comes first where both are in vector registers.
    index = offset = None
    if "idxen" in instruction.modifiers:
        index = _vector_word(vector, 0)
    if "offen" in instruction.modifiers:
        offset = _vector_word(vector, 0 if index is None else 1)
    lane = np.arange(instruction.lanes, dtype=np.uint64)

    def find(waves: Waves) -> BufferAddresses:
        low = words.low.value(waves)
        high = words.high.value(waves)
        if is_plain:
            _refuse_fields(instruction, low, high)
        adds_lane = high >> np.uint64(55) & np.uint64(1) == 1
        number = _wide(index, waves) + np.where(adds_lane, lane, np.uint64(0))
        within = _wide(offset, waves) + constant
        return _located(
            low, high, number=number, within=within, scalar=_wide(scalar, waves)
        )

    vectors = [source for source in (index, offset) if source is not None]
    return _BufferPlace([words.low, words.high, scalar, *vectors], find)


def _vector_word(operand: Operand, number: int) -> OperandSource:
    one = replace(operand, index=operand.index + number, count=1)
    return vector_source(one, "u32", {}, 0)


_SCALARS = re.compile(r"s_buffer_load_dword(?:x(\d+))?$")


def bind_buffer_scalars(instruction: Instruction) -> Run | None:
    """Bind a load of scalar registers through a descriptor; None for any other instruction."""
    match = _SCALARS.match(instruction.mnemonic)
    if match is None:
        return None
    count = int(match[1] or 1)
    result, descriptor, offset = instruction.operands
    words = _descriptor(descriptor)
    more = vector_source(offset, "u32", {}, 0)
    constant = np.uint64(offset_of(instruction))
    ends = np.arange(_PIECE, _PIECE * (count + 1), _PIECE, dtype=np.uint64)

    def run(waves: Waves) -> None:
        low = _wide(words.low, waves)
        high = _wide(words.high, waves)
        within = (_wide(more, waves) + constant) & ~np.uint64(3)
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
    waves: Waves, ins: Instruction, result: int, address: Array, inside: Mask
) -> None:
    """Load one scalar register of each wave, or 0 where that is out of range."""
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

    low: OperandSource  # bits 0 to 63: address, stride, and whether the buffer is swizzled
    high: OperandSource  # bits 64 to 127: number of records, and how they are laid out


def _descriptor(operand: Operand) -> _DescriptorWords:
    places = (replace(operand, index=operand.index + n, count=2) for n in (0, 2))
    return _DescriptorWords(*(vector_source(place, "u64", {}, 0) for place in places))


def _stride(low: Array) -> Array:
    return low >> np.uint64(48) & np.uint64(0x3FFF)


def _refuse_fields(instruction: Instruction, low: Array, high: Array) -> None:
    """Raise Unsupported for fields that mean something else on RDNA3.

    Those are swizzling, strides and bounds. An address with a number of bytes (OOB_SELECT 3, a raw
    buffer) means the same.
    """
    odd = low >> np.uint64(48) | high >> np.uint64(55) & np.uint64(1)
    if np.any(odd) or np.any(high >> np.uint64(60) & np.uint64(3) != 3):
        raise not_emulated(
            "a buffer with a stride, swizzled, or not checked by bytes", instruction
        )


def _wide(source: OperandSource | None, waves: Waves) -> Array:
    """Return the value as u64; None: 0."""
    if source is None:
        return np.zeros((), np.uint64)
    return np.asarray(source.value(waves)).astype(np.uint64)


def _located(
    low: Array,
    high: Array,
    *,
    number: Array,  # of the record
    within: Array,  # offset in bytes
    scalar: Array,  # bytes that are added to all addresses
) -> BufferAddresses:
    """Return the addresses by the fields of the descriptor, bits `low` and `high`."""
    adds_lane = high >> np.uint64(55) & np.uint64(1)
    base = low & np.uint64((1 << 48) - 1)
    # With the lane added, the stride has four more bits.
    stride = _stride(low) | (
        adds_lane * (high >> np.uint64(47) & np.uint64(15))
    ) << np.uint64(14)
    is_swizzled = low >> np.uint64(63) == 1
    together = np.uint64(8) << (high >> np.uint64(53) & np.uint64(3))
    piece = np.uint64(_PIECE)
    linear = within + stride * number
    # LLVM relies on offsets that are added modulo 2**32.
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
    """Check addresses from `SCRATCH` on, and return offsets in each lane's own memory."""
    each = wave_bytes(waves.around.private_bytes, waves.lanes)
    wave = np.arange(waves.waves)[waves.rows][:, None]
    within = (address - np.uint64(SCRATCH)).view(np.int64) - wave * each
    lane = within // _PIECE % waves.lanes
    offset = within // (_PIECE * waves.lanes) * _PIECE + within % _PIECE
    # A lane that reaches another's memory is as wrong as one that reaches none.
    mine = np.where(lane == np.arange(waves.lanes), offset, -1)
    return waves.private_index(mine, size, ins)


_SCRATCH_SPACE = Space(PRIVATE.bytes_of, _private_index)
