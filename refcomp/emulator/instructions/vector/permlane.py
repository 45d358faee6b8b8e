"""Exchange among the lanes of a wave through the vector registers alone, as RDNA has it.

    v_permlanex16_b32 v0, v1, s2, s3 op_sel:[1,0]      from a chosen lane of the other row of 16

The lane to read stands for each lane of a row in four bits of the pair of scalars. Without
op_sel[0], lanes that are not active give nothing; with op_sel[1], 0 instead of the old value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.registers import FIRST_VECTOR, File
from refcomp.emulator.machine.sources import (
    numbers_of,
    scalar_source,
    vector_index,
    vector_source,
)
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.foundation.errors import Unsupported


class _LaneChoice(NamedTuple):
    """Where each lane reads: [wave, lane]. A tuple, since each exchange makes one."""

    # Number of the lane that is read.
    origin: Array
    # That lane gives something.
    is_on: Array


def bind_permlane(instruction: Instruction) -> Run:
    """v_permlane16_b32 and v_permlanex16_b32: from a lane of the own row, or of its neighbour."""
    operands, row = instruction.operands, 16 if "lanex" in instruction.mnemonic else 0
    chosen = [scalar_source(operand, "u32") for operand in operands[2:4]]
    reads_inactive, writes_zero = flags_of(instruction.modifiers, "op_sel", 2)[:2]
    lane = np.arange(instruction.lanes)
    base, shift = (lane & ~15) ^ row, np.uint32(4) * (lane & 7).astype(np.uint32)
    is_high = (lane & 8) != 0

    def choose(waves: Waves) -> _LaneChoice:
        if waves.dirty and not waves.dirty.isdisjoint(
            chosen[0].numbers | chosen[1].numbers
        ):
            _check_choice(waves, instruction, chosen)
        low, high = (np.reshape(source.value(waves), (-1, 1)) for source in chosen)
        place = base + (np.where(is_high, high, low) >> shift & np.uint32(15)).astype(
            np.intp
        )
        place = np.broadcast_to(place, (waves.count(), waves.lanes))
        is_on = np.take_along_axis(waves.mask, place, 1) | reads_inactive
        return _LaneChoice(place, is_on)

    return _exchange(instruction, choose, writes_zero=writes_zero)


def _check_choice(waves: Waves, instruction: Instruction, chosen: list[Any]) -> None:
    undefined = np.zeros(waves.count(), np.bool_)
    for source in chosen:
        undefined = undefined | (source.shadow(waves) != 0)
    if undefined.any():
        waves.report_undefined(instruction, "which lane is read", undefined)


def bind_permlane64(instruction: Instruction) -> Run:
    """v_permlane64_b32: the halves of a wave change places; of 32 lanes, nothing does."""
    lane = np.arange(instruction.lanes)
    origin = (lane + 32) % 64 if instruction.lanes == 64 else lane

    def choose(waves: Waves) -> _LaneChoice:
        shape = waves.count(), waves.lanes
        return _LaneChoice(np.broadcast_to(origin, shape), np.ones(shape, np.bool_))

    return _exchange(instruction, choose, writes_zero=False)


def _exchange(
    instruction: Instruction,
    choose: Callable[[Array], _LaneChoice],
    *,
    writes_zero: bool,
) -> Run:
    index = vector_index(instruction.operands[0])
    source = vector_source(instruction.operands[1], "u32", {}, 0)
    if instruction.operands[1].file != "v":
        raise Unsupported(
            "this exchange among lanes is not known", where=str(instruction)
        )
    watched = source.numbers | numbers_of(instruction.operands[0], "u32")

    def moved(file: File, waves: Waves, place: Array, is_on: Array) -> Array:
        found = np.take_along_axis(source.read(file, waves.rows), place, 1)
        other = np.uint32(0) if writes_zero else file.vector(index, "u32", waves.rows)
        return np.where(is_on, found, other)

    def run(waves: Waves) -> None:
        place, is_on = choose(waves)
        value = moved(waves.values, waves, place, is_on)
        is_clean = not waves.dirty or waves.dirty.isdisjoint(watched)
        shadow = None if is_clean else moved(waves.shadow, waves, place, is_on)
        waves.write_vector(index, "u32", value)
        if shadow is None:
            waves.define((FIRST_VECTOR + index,))
        else:
            waves.set_shadow(FIRST_VECTOR + index, shadow)

    return run
