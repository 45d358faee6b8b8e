"""Instructions in which lanes read each other's registers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.spreads import all_bits, any_undefined
from refcomp.emulator.instructions.tables.integers import bit_count
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.sources import (
    OperandSource,
    scalar_source,
    vector_index,
    vector_source,
)
from refcomp.emulator.machine.waves import Run, Waves

Lanes = npt.NDArray[np.intp]  # numbers of lanes

# Single lanes.


def bind_readlane(instruction: Instruction) -> Run:
    """Bind v_readlane_b32 s0, v1, lane: read any lane, active or not."""
    result, operand, lane = instruction.operands
    source = vector_source(operand, "u32", {}, 0)
    number = scalar_source(lane, "u32")
    return lambda waves: _read_lane(
        waves, result.index, source, _lane_of(waves, number)
    )


def _lane_of(waves: Waves, number: OperandSource) -> Array:
    """Return the lane, [wave], that a scalar operand names."""
    return np.broadcast_to(
        number.value(waves) & np.uint32(waves.lanes - 1), (waves.count(),)
    )


def bind_readfirstlane(instruction: Instruction) -> Run:
    """Bind v_readfirstlane_b32 s0, v1: read the first active lane; lane 0 if none is active."""
    result, operand = instruction.operands
    source = vector_source(operand, "u32", {}, 0)
    return lambda waves: _read_lane(
        waves, result.index, source, waves.mask.argmax(axis=1)
    )


def _read_lane(waves: Waves, result: int, source: OperandSource, lane: Array) -> None:
    place = np.arange(waves.count()), lane
    shadow = None
    if waves.dirty and not waves.dirty.isdisjoint(source.numbers):
        shadow = _by_lane(waves, source.shadow(waves))[place]
    waves.write_scalar(result, "u32", _by_lane(waves, source.value(waves))[place])
    if shadow is None:
        waves.define((result,))
    else:
        waves.set_shadow(result, shadow)


def bind_writelane(instruction: Instruction) -> Run:
    """Bind v_writelane_b32 v0, s1, lane: write any lane, active or not."""
    result, value, lane = instruction.operands[:3]
    index = vector_index(result)
    source = scalar_source(value, "u32")
    number = scalar_source(lane, "u32")

    def run(waves: Waves) -> None:
        place = index, np.arange(waves.waves)[waves.rows], _lane_of(waves, number)
        waves.values.v[place] = source.value(waves)
        if waves.shadow is not None:
            shadow = source.shadow(waves)
            waves.shadow.v[place] = shadow
            if shadow.any():
                waves.dirty.add(FIRST_VECTOR + index)

    return run


# Counting lanes below.


def bind_count_below(instruction: Instruction) -> Run:
    """Bind v_mbcnt_lo_u32_b32 (lanes 0 to 31) or v_mbcnt_hi_u32_b32 (the rest)."""
    is_high = "_hi_" in instruction.mnemonic
    result, operand, addend = instruction.operands
    first = vector_source(operand, "u32", {}, 0)
    second = vector_source(addend, "u32", {}, 1)
    reach = np.clip(np.arange(instruction.lanes) - (32 if is_high else 0), 0, 32)
    below = ((np.uint64(1) << reach.astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
    index = vector_index(result)

    def run(waves: Waves) -> None:
        counted = bit_count(first.value(waves) & below) + second.value(waves)
        undefined = None
        if waves.dirty and not waves.dirty.isdisjoint(first.numbers | second.numbers):
            shadows = [first.shadow(waves) & below, second.shadow(waves)]
            undefined = all_bits("u32", any_undefined(shadows))
        _write(waves, index, counted, undefined)

    return run


def _write(waves: Waves, index: int, values: Array, shadow: Array | None) -> None:
    """Write the active lanes of a vector register; None: all bits are defined."""
    waves.write_vector(index, "u32", values)
    if shadow is None:
        waves.define((FIRST_VECTOR + index,))
    else:
        waves.set_shadow(FIRST_VECTOR + index, shadow)


# Exchange through the hardware of shared memory.


def bind_bpermute(instruction: Instruction, reach: int = 64) -> Run:
    """Bind ds_bpermute_b32 v0, v1, v2: read v2 of the lane that v1 (times 4) names.

    It reads 0 from an inactive lane. Lanes are counted within groups of `reach` lanes.
    """
    start = np.arange(instruction.lanes) // reach * reach
    operands = _Exchange(instruction, reach)
    index = vector_index(instruction.operands[0])

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
        _write(waves, index, np.where(is_on, found, np.uint32(0)), shadow)

    return run


def bind_permute(instruction: Instruction, reach: int = 64) -> Run:
    """Bind ds_permute_b32 v0, v1, v2: write v2 to the lane that v1 (times 4) names.

    Of several writers of a lane the highest one counts; lanes without one become 0. Lanes are
    counted within groups of `reach` lanes.
    """
    operands = _Exchange(instruction, reach)
    index = vector_index(instruction.operands[0])

    def run(waves: Waves) -> None:
        # In ascending order, so that the highest lane is last and its write stays.
        wave, lane = np.nonzero(waves.mask)
        target = wave, lane // reach * reach + operands.chosen(waves)[wave, lane]
        found = np.zeros(waves.mask.shape, np.uint32)
        found[target] = operands.values(waves)[wave, lane]
        shadow = None
        if operands.may_be_undefined(waves):
            sent = operands.shadow(waves) | operands.chooser_shadow(waves)
            shadow = np.zeros(waves.mask.shape, np.uint32)
            shadow[target] = sent[wave, lane]
        _write(waves, index, found, shadow)

    return run


class _Exchange:
    """The operands of an exchange: what each lane gives, and the lane that it names.

    All its results are [wave, lane].
    """

    def __init__(self, instruction: Instruction, reach: int) -> None:
        _, address, data = instruction.operands
        self._chooser = vector_source(address, "u32", {}, 0)
        self._source = vector_source(data, "u32", {}, 1)
        self._offset = np.uint32(int(instruction.modifiers.get("offset", "0"), 0))
        self._last = np.uint32(reach - 1)
        self._numbers = self._source.numbers | self._chooser.numbers

    def chosen(self, waves: Waves) -> Lanes:
        wanted = _by_lane(waves, self._chooser.value(waves) + self._offset)
        return ((wanted >> np.uint32(2)) & self._last).astype(np.intp)

    def values(self, waves: Waves) -> Array:
        return _by_lane(waves, self._source.value(waves))

    def may_be_undefined(self, waves: Waves) -> bool:
        return bool(waves.dirty) and not waves.dirty.isdisjoint(self._numbers)

    def shadow(self, waves: Waves) -> Array:
        return _by_lane(waves, self._source.shadow(waves))

    def chooser_shadow(self, waves: Waves) -> Array:
        return all_bits("u32", self._chooser.shadow(waves) != 0)


def _by_lane(waves: Waves, values: Array) -> Array:
    return np.broadcast_to(values, (waves.count(), waves.lanes))


def bind_swizzle(instruction: Instruction) -> Run:
    """Bind ds_swizzle_b32 v0, v1 offset:...: read a lane that the offset gives; 0 if inactive.

    The offset is taken from the encoding, since it is printed in words.
    """
    result, data = instruction.operands[:2]
    index = vector_index(result)
    source = vector_source(data, "u32", {}, 0)
    origin = _swizzled(int(instruction.encoding.split()[0], 16) & 0xFFFF, instruction)

    def run(waves: Waves) -> None:
        is_on = waves.mask[:, origin]
        found = _by_lane(waves, source.value(waves))[:, origin]
        shadow = None
        if waves.dirty and not waves.dirty.isdisjoint(source.numbers):
            moved = _by_lane(waves, source.shadow(waves))[:, origin]
            shadow = np.where(is_on, moved, np.uint32(0))
        _write(waves, index, np.where(is_on, found, np.uint32(0)), shadow)

    return run


def _swizzled(offset: int, instruction: Instruction) -> Lanes:
    """Return the lane that each lane reads: one of four, or of 32 by masks (and, or, xor)."""
    lane = np.arange(instruction.lanes)
    if offset & 0xE000 == 0x8000:
        return (lane & ~3) + (offset >> 2 * (lane & 3) & 3)
    if offset & 0x8000:
        raise not_emulated("this pattern of ds_swizzle_b32", instruction)
    low = lane & offset & 31 | offset >> 5 & 31
    return (lane & ~31) + (low ^ offset >> 10 & 31)


def bind_swap(instruction: Instruction) -> Run:
    """Bind v_swap_b32 v0, v1."""
    pair = [vector_index(operand) for operand in instruction.operands]

    def run(waves: Waves) -> None:
        values = [np.array(waves.values.vector(n, "u32", waves.rows)) for n in pair]
        for index, value in zip(pair, reversed(values), strict=True):
            waves.write_vector(index, "u32", value)
        if waves.shadow is not None:
            shadows = [
                np.array(waves.shadow.vector(n, "u32", waves.rows)) for n in pair
            ]
            for index, shadow in zip(pair, reversed(shadows), strict=True):
                waves.set_shadow(FIRST_VECTOR + index, shadow)

    return run
