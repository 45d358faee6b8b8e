"""Instructions in which lanes read each other's registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.instructions.tables.integers import bit_count
from refcomp.emulator.instructions.vector.binding import whole_writer
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.sources import (
    OperandSource,
    scalar_source,
    vector_index,
    vector_source,
)
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.foundation.errors import Unsupported

# Single lanes.


def bind_readlane(instruction: Instruction) -> Run:
    """v_readlane_b32 s0, v1, lane: of any lane, active or not."""
    result, operand, lane = instruction.operands
    source, number = vector_source(operand, "u32", {}, 0), scalar_source(lane, "u32")

    def run(waves: Waves) -> None:
        chosen = np.broadcast_to(
            number.value(waves) & np.uint32(waves.lanes - 1), (waves.count(),)
        )
        _read_lane(waves, result.index, source, chosen)

    return run


def bind_readfirstlane(instruction: Instruction) -> Run:
    """v_readfirstlane_b32 s0, v1: of the first active lane; of lane 0 where none is."""
    result, operand = instruction.operands
    source = vector_source(operand, "u32", {}, 0)
    return lambda waves: _read_lane(
        waves, result.index, source, waves.mask.argmax(axis=1)
    )


def _read_lane(waves: Waves, result: int, source: OperandSource, lane: Array) -> None:
    place = np.arange(waves.count()), lane
    shape = waves.count(), waves.lanes
    is_clean = not waves.dirty or waves.dirty.isdisjoint(source.numbers)
    shadow = None if is_clean else np.broadcast_to(source.shadow(waves), shape)[place]
    waves.write_scalar(
        result, "u32", np.broadcast_to(source.value(waves), shape)[place]
    )
    if shadow is None:
        waves.define((result,))
    else:
        waves.set_shadow(result, shadow)


def bind_writelane(instruction: Instruction) -> Run:
    """v_writelane_b32 v0, s1, lane: of any lane, active or not."""
    index = vector_index(instruction.operands[0])
    source, number = (
        scalar_source(operand, "u32") for operand in instruction.operands[1:3]
    )

    def run(waves: Waves) -> None:
        lane = np.broadcast_to(
            number.value(waves) & np.uint32(waves.lanes - 1), (waves.count(),)
        )
        place = index, np.arange(waves.waves)[waves.rows], lane
        waves.values.v[place] = source.value(waves)
        if waves.shadow is not None:
            waves.shadow.v[place] = source.shadow(waves)
            if source.shadow(waves).any():
                waves.dirty.add(FIRST_VECTOR + index)

    return run


# Counting lanes below.


def bind_count_below(instruction: Instruction) -> Run:
    """v_mbcnt_lo_u32_b32 (lanes 0 to 31) and v_mbcnt_hi_u32_b32 (the rest)."""
    is_high = "_hi_" in instruction.mnemonic
    first, second = (
        vector_source(operand, "u32", {}, position)
        for position, operand in enumerate(instruction.operands[1:])
    )
    reach = np.clip(
        np.arange(instruction.lanes) - (32 if is_high else 0), 0, 32
    ).astype(np.uint64)
    below = ((np.uint64(1) << reach) - np.uint64(1)).astype(np.uint32)
    index = vector_index(instruction.operands[0])
    write = whole_writer(index, "u32")

    def run(waves: Waves) -> None:
        counted = bit_count(first.value(waves) & below) + second.value(waves)
        is_clean = not waves.dirty or waves.dirty.isdisjoint(
            first.numbers | second.numbers
        )
        undefined = (
            None
            if is_clean
            else _any(first.shadow(waves) & below, second.shadow(waves))
        )
        write(waves, counted, undefined)
        if undefined is None:
            waves.define((FIRST_VECTOR + index,))

    return run


def _any(*shadows: Array) -> Array:
    total = np.zeros((1, 1), np.bool_)
    for shadow in shadows:
        total = total | (shadow != 0)
    return np.where(total, np.uint32(0xFFFFFFFF), np.uint32(0))


# Exchange through the hardware of shared memory.


def bind_bpermute(instruction: Instruction, reach: int = 64) -> Run:
    """ds_bpermute_b32 v0, v1, v2: of the lane that v1 says (times 4), its v2; 0 if it is off.
    Lanes are counted among `reach` of them."""
    start = np.arange(instruction.lanes) // reach * reach
    operands, index = (
        _Exchanged(instruction, reach),
        vector_index(instruction.operands[0]),
    )
    write = whole_writer(index, "u32")

    def run(waves: Waves) -> None:
        lane = start + operands.chosen(waves)
        is_on = np.take_along_axis(waves.mask, lane, 1)
        found = np.take_along_axis(operands.values(waves), lane, 1)
        shadow = None
        if operands.may_be_undefined(waves):
            moved = np.take_along_axis(operands.shadow(waves), lane, 1)
            shadow = np.where(is_on, moved, np.uint32(0)) | operands.chooser_shadow(
                waves
            )
        write(waves, np.where(is_on, found, np.uint32(0)), shadow)
        if shadow is None:
            waves.define((FIRST_VECTOR + index,))

    return run


def bind_permute(instruction: Instruction, reach: int = 64) -> Run:
    """ds_permute_b32 v0, v1, v2: to the lane that v1 says (times 4) goes v2; of several the one of
    the highest lane, and 0 where none goes. Lanes are counted among `reach` of them."""
    operands, index = (
        _Exchanged(instruction, reach),
        vector_index(instruction.operands[0]),
    )
    write = whole_writer(index, "u32")

    def run(waves: Waves) -> None:
        wave, lane = np.nonzero(waves.mask)  # the highest lanes last
        goal = wave, lane // reach * reach + operands.chosen(waves)[wave, lane]
        sent = [operands.values(waves)]
        if operands.may_be_undefined(waves):
            sent.append(operands.shadow(waves) | operands.chooser_shadow(waves))
        found = [np.zeros(waves.mask.shape, np.uint32) for _ in sent]
        for there, here in zip(found, sent, strict=True):
            there[goal] = here[wave, lane]
        write(waves, found[0], found[1] if len(found) > 1 else None)
        if len(found) == 1:
            waves.define((FIRST_VECTOR + index,))

    return run


class _Exchanged:
    """What each lane gives away, and which lane of `reach` it names: all are [wave, lane]."""

    def __init__(self, instruction: Instruction, reach: int) -> None:
        _, address, data = instruction.operands
        self._chooser = vector_source(address, "u32", {}, 0)
        self._source = vector_source(data, "u32", {}, 1)
        self._offset = np.uint32(int(instruction.modifiers.get("offset", "0"), 0))
        self._last = np.uint32(reach - 1)
        self._numbers = self._source.numbers | self._chooser.numbers

    def chosen(self, waves: Waves) -> Array:
        wanted = _by_lane(waves, self._chooser.value(waves) + self._offset)
        return ((wanted >> np.uint32(2)) & self._last).astype(np.intp)

    def values(self, waves: Waves) -> Array:
        return _by_lane(waves, self._source.value(waves))

    def may_be_undefined(self, waves: Waves) -> bool:
        return bool(waves.dirty) and not waves.dirty.isdisjoint(self._numbers)

    def shadow(self, waves: Waves) -> Array:
        return _by_lane(waves, self._source.shadow(waves))

    def chooser_shadow(self, waves: Waves) -> Array:
        return _any(self._chooser.shadow(waves))


def _by_lane(waves: Waves, values: Array) -> Array:
    return np.broadcast_to(values, (waves.count(), waves.lanes))


def bind_swizzle(instruction: Instruction) -> Run:
    """ds_swizzle_b32 v0, v1 offset:...: of a lane that follows from the offset; 0 if it is off.

    The offset is read off the encoding, since it is printed in words.
    """
    result, data = instruction.operands[0], instruction.operands[1]
    index, source = vector_index(result), vector_source(data, "u32", {}, 0)
    origin = _swizzled(int(instruction.encoding.split()[0], 16) & 0xFFFF, instruction)
    write = whole_writer(index, "u32")

    def run(waves: Waves) -> None:
        shape = waves.count(), waves.lanes
        is_on, shadow = waves.mask[:, origin], None
        found = np.broadcast_to(source.value(waves), shape)[:, origin]
        if waves.dirty and not waves.dirty.isdisjoint(source.numbers):
            moved = np.broadcast_to(source.shadow(waves), shape)[:, origin]
            shadow = np.where(is_on, moved, np.uint32(0))
        write(waves, np.where(is_on, found, np.uint32(0)), shadow)
        if shadow is None:
            waves.define((FIRST_VECTOR + index,))

    return run


def _swizzled(offset: int, instruction: Instruction) -> Array:
    """Of each lane, the lane that it reads: of four, or of 32 by masks (and, or, xor)."""
    lane = np.arange(instruction.lanes)
    if offset & 0xE000 == 0x8000:
        return (lane & ~3) + (offset >> 2 * (lane & 3) & 3)
    if offset & 0x8000:
        raise Unsupported(
            "this exchange among lanes is not known", where=str(instruction)
        )
    low = lane & offset & 31 | offset >> 5 & 31
    return (lane & ~31) + (low ^ offset >> 10 & 31)


def bind_swap(instruction: Instruction) -> Run:
    """v_swap_b32 v0, v1."""
    pair = [vector_index(operand) for operand in instruction.operands]

    def run(waves: Waves) -> None:
        values = [np.array(waves.values.vector(n, "u32", waves.rows)) for n in pair]
        shadows: Any = (None, None)
        if waves.shadow is not None:
            shadows = [
                np.array(waves.shadow.vector(n, "u32", waves.rows)) for n in pair
            ]
        for n, value, shadow in zip(pair, values[::-1], shadows[::-1], strict=True):
            waves.write_vector(n, "u32", value)
            if shadow is not None:
                waves.set_shadow(FIRST_VECTOR + n, shadow)

    return run
