"""Exchange among the lanes of a wave through the vector registers alone, as RDNA has it.

    v_permlanex16_b32 v0, v1, s2, s3 op_sel:[1,0]      from a chosen lane of the other row of 16

The pair of scalars holds four bits for each lane of a row: the lane to read. Without op_sel[0],
inactive lanes are not read. Lanes without a lane to read keep the old value, or with op_sel[1]
become 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.spreads import any_undefined
from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.machine.registers import FIRST_VECTOR, File, Rows
from refcomp.emulator.machine.sources import (
    numbers_of,
    scalar_source,
    vector_index,
    vector_source,
)
from refcomp.emulator.machine.waves import Run, Waves


class _LaneChoice(NamedTuple):
    """The lane that each lane reads, [wave, lane]. A tuple, since each exchange makes one."""

    origin: npt.NDArray[np.intp]  # number of the lane
    is_read: Mask  # whether it is read at all


def bind_permlane(instruction: Instruction) -> Run:
    """Bind v_permlane16_b32 (a lane of the own row) or v_permlanex16_b32 (of the other row)."""
    operands = instruction.operands
    low, high = (scalar_source(operand, "u32") for operand in operands[2:4])
    reads_inactive, writes_zero = flags_of(instruction.modifiers, "op_sel", 2)[:2]
    lane = np.arange(instruction.lanes)
    row = (lane & ~15) ^ (16 if "lanex" in instruction.mnemonic else 0)
    shift = np.uint32(4) * (lane & 7).astype(np.uint32)
    is_high = (lane & 8) != 0

    def choose(waves: Waves) -> _LaneChoice:
        if waves.dirty and not waves.dirty.isdisjoint(low.numbers | high.numbers):
            undefined = any_undefined([low.shadow(waves), high.shadow(waves)])
            if undefined.any():
                undefined = np.broadcast_to(undefined, (waves.count(),))
                waves.report_undefined(instruction, "which lane is read", undefined)
        words = [np.reshape(source.value(waves), (-1, 1)) for source in (low, high)]
        chosen = np.where(is_high, words[1], words[0]) >> shift & np.uint32(15)
        place = np.broadcast_to(
            row + chosen.astype(np.intp), (waves.count(), waves.lanes)
        )
        is_read = np.take_along_axis(waves.mask, place, 1) | reads_inactive
        return _LaneChoice(place, is_read)

    return _exchange(instruction, choose, writes_zero=writes_zero)


def bind_permlane64(instruction: Instruction) -> Run:
    """Bind v_permlane64_b32, which swaps the halves of a wave of 64 lanes."""
    lane = np.arange(instruction.lanes)
    origin = (lane + 32) % 64 if instruction.lanes == 64 else lane

    def choose(waves: Waves) -> _LaneChoice:
        shape = waves.count(), waves.lanes
        return _LaneChoice(np.broadcast_to(origin, shape), np.ones(shape, np.bool_))

    return _exchange(instruction, choose, writes_zero=False)


def _exchange(
    instruction: Instruction,
    choose: Callable[[Waves], _LaneChoice],
    *,
    writes_zero: bool,
) -> Run:
    result, operand = instruction.operands[:2]
    index = vector_index(result)
    source = vector_source(operand, "u32", {}, 0)
    if operand.file != "v":
        raise not_emulated("such a source of a lane permutation", instruction)
    watched = source.numbers | numbers_of(result, "u32")

    def moved(file: File, rows: Rows, choice: _LaneChoice) -> Array:
        found = np.take_along_axis(source.read(file, rows), choice.origin, 1)
        other = np.uint32(0) if writes_zero else file.vector(index, "u32", rows)
        return np.where(choice.is_read, found, other)

    def run(waves: Waves) -> None:
        choice = choose(waves)
        value = moved(waves.values, waves.rows, choice)
        shadow = None
        if waves.shadow is not None and not waves.dirty.isdisjoint(watched):
            shadow = moved(waves.shadow, waves.rows, choice)
        waves.write_vector(index, "u32", value)
        if shadow is None:
            waves.define((FIRST_VECTOR + index,))
        else:
            waves.set_shadow(FIRST_VECTOR + index, shadow)

    return run
