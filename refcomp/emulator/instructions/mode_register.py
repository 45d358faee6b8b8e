"""The MODE register: read by s_getreg, written by s_setreg.

    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3      keep denormals of f32
    s_getreg_b32 s0, hwreg(HW_REG_MODE, 0, 4)
    s_denorm_mode 15                                    keep denormals of all types

Refuses, by Unsupported, other registers, and to change what is neither rounding,
denormals nor the treatment of NaNs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import IEEE_MODE, Instruction
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.sources import scalar_source
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.foundation.errors import Unsupported

_REGISTER = re.compile(r"hwreg\((\w+)(?:, ?(\d+), ?(\d+))?\)$")
# Instructions that write a part of it: where its four bits begin.
_PARTS = {"s_round_mode": 0, "s_denorm_mode": 4}
# Rounding, denormals, DX10_CLAMP and IEEE_MODE: what can be changed.
_KNOWN = np.uint32(0x3FF)


def writes_mode(instruction: Instruction) -> bool:
    """Whether the instructions that follow may run in another mode."""
    return instruction.mnemonic.startswith("s_setreg") or instruction.mnemonic in _PARTS


def bind_mode(instruction: Instruction) -> Run | None:
    """The instruction, ready to run; None when it is another one."""
    if instruction.mnemonic == "s_getreg_b32":
        return _bind_read(instruction)
    return _bind_write(instruction) if writes_mode(instruction) else None


class _ModeField(NamedTuple):
    """Bits of MODE that follow each other."""

    # Number of the lowest bit.
    start: np.uint32
    # As many ones as there are bits, from bit 0 on.
    ones: np.uint32


def _field(instruction: Instruction, text: str) -> _ModeField:
    """The bits that an operand `hwreg(...)` means."""
    match = _REGISTER.match(text)
    if match is None or match[1] != "HW_REG_MODE":
        raise Unsupported(f"the register {text} is not known", where=str(instruction))
    start, width = int(match[2] or 0), int(match[3] or 32)
    return _ModeField(np.uint32(start), np.uint32((1 << width) - 1))


def _bind_read(instruction: Instruction) -> Run:
    result, register = instruction.operands
    start, ones = _field(instruction, register.text)

    def run(waves: Waves) -> None:
        waves.write_scalar(result.index, "u32", _modes(waves) >> start & ones)
        waves.define((result.index,))

    return run


def _modes(waves: Waves) -> Array:
    if waves.modes is None:
        return np.full(waves.count(), IEEE_MODE, np.uint32)
    return waves.modes[waves.rows]


def _bind_write(instruction: Instruction) -> Run:
    if (part := _PARTS.get(instruction.mnemonic)) is not None:
        start, ones = _ModeField(np.uint32(part), np.uint32(15))
    else:
        start, ones = _field(instruction, instruction.operands[0].text)
    source = scalar_source(instruction.operands[-1], "u32")

    def run(waves: Waves) -> None:
        old = _modes(waves)
        new = old & ~(ones << start) | (source.value(waves) & ones) << start
        if ((new ^ old) & ~_KNOWN).any():
            raise Unsupported(
                "this part of MODE cannot be changed", where=str(instruction)
            )
        if not waves.dirty.isdisjoint(source.numbers) and source.shadow(waves).any():
            waves.report_undefined(
                instruction, "how numbers are rounded", source.shadow(waves) != 0
            )
        waves.set_modes(new & _KNOWN)

    return run
