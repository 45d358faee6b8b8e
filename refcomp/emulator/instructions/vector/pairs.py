"""Two vector instructions in one (VOPD): both read before either writes.

v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0        swaps v0 and v1
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from refcomp.emulator.code.assembly import VCC, Instruction, Operand
from refcomp.emulator.machine.arrays import Words
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.waves import Run, Waves

_VCC = Operand("vcc_lo", "s", VCC)


def half_of_pair(instruction: Instruction) -> Instruction:
    """Return the first instruction as it would stand alone, with the VCC that VOPD implies."""
    operands = instruction.operands
    if instruction.mnemonic == "v_cndmask_b32":
        operands = (*operands, _VCC)
    return replace(instruction, operands=operands, second=None)


@dataclass(frozen=True, slots=True)
class BoundInstruction:
    """An instruction together with the function that runs it."""

    instruction: Instruction
    run: Run


def in_parallel(first: BoundInstruction, second: BoundInstruction) -> Run:
    """Return what runs both instructions, each of which writes one vector register of its own.

    They run one after the other if the first to run writes nothing that the other reads.
    """
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
    """Return what runs both, and hides the first result, register `index`, from the second."""

    def run(waves: Waves) -> None:
        old = _saved(waves, index)
        first(waves)
        result = _saved(waves, index)
        _restore(waves, index, old)
        second(waves)
        _restore(waves, index, result)

    return run


def _saved(waves: Waves, index: int) -> list[Words]:
    files = [waves.values] if waves.shadow is None else [waves.values, waves.shadow]
    return [np.array(file.vector(index, "u32", waves.rows)) for file in files]


def _restore(waves: Waves, index: int, saved: list[Words]) -> None:
    waves.write_vector(index, "u32", saved[0])
    if waves.shadow is not None:
        waves.set_shadow(FIRST_VECTOR + index, saved[1])
