"""Two vector instructions in one (VOPD): both read before either writes.

v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0        swaps v0 and v1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refcomp.emulator.code.assembly import VCC, Instruction, Operand
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.waves import Run, Waves

_VCC = Operand("vcc_lo", "s", VCC)


def half_of_pair(instruction: Instruction) -> Instruction:
    """The instruction as it would stand alone, where VCC is among the operands of a choice."""
    operands = instruction.operands
    if instruction.mnemonic == "v_cndmask_b32":
        operands = (*operands, _VCC)
    return replace(instruction, operands=operands, second=None)


@dataclass(frozen=True, slots=True)
class BoundInstruction:
    """An instruction together with what runs it."""

    instruction: Instruction
    run: Run


def in_parallel(first: BoundInstruction, second: BoundInstruction) -> Run:
    """Runs both. Each writes one vector register, not the same; they run one after the other where
    the first to run writes nothing that the other reads."""
    if not _reads_result(second.instruction, first.instruction):
        return _in_turn(first.run, second.run)
    if not _reads_result(first.instruction, second.instruction):
        return _in_turn(second.run, first.run)
    return _crossed(first.instruction.operands[0].index, first.run, second.run)


def _reads_result(reader: Instruction, writer: Instruction) -> bool:
    written = writer.operands[0].index
    return any(o.file == "v" and o.index == written for o in reader.operands[1:])


def _in_turn(first: Run, second: Run) -> Run:
    def run(waves: Waves) -> None:
        first(waves)
        second(waves)

    return run


def _crossed(index: int, first: Run, second: Run) -> Run:
    """What the first wrote to register `index` is put there when the second has read it."""

    def run(waves: Waves) -> None:
        old = _saved(waves, index)
        first(waves)
        new = _saved(waves, index)
        _put_back(waves, index, old)
        second(waves)
        _put_back(waves, index, new)

    return run


def _saved(waves: Waves, index: int) -> list[Any]:
    files = [waves.values] if waves.shadow is None else [waves.values, waves.shadow]
    return [np.array(file.vector(index, "u32", waves.rows)) for file in files]


def _put_back(waves: Waves, index: int, saved: list[Any]) -> None:
    waves.write_vector(index, "u32", saved[0])
    if waves.shadow is not None:
        waves.set_shadow(FIRST_VECTOR + index, saved[1])
