"""The MODE register: read by s_getreg, written by s_setreg.

    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3      keep denormals of f32
    s_getreg_b32 s0, hwreg(HW_REG_MODE, 0, 4)
    s_denorm_mode 15                                    keep denormals of all types

Refuses, by Unsupported, other registers, and changes of anything but rounding, denormals and the
treatment of NaNs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import IEEE_MODE, Instruction
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.machine.arrays import Words
from refcomp.emulator.machine.sources import scalar_source
from refcomp.emulator.machine.waves import Run, Waves

_REGISTER = re.compile(r"hwreg\((\w+)(?:, ?(\d+), ?(\d+))?\)$")
# Instruction that writes four bits of MODE -> the lowest of them.
_PARTS = {"s_round_mode": 0, "s_denorm_mode": 4}
# The bits that can be changed: rounding, denormals, DX10_CLAMP and IEEE_MODE.
_KNOWN = np.uint32(0x3FF)


def writes_mode(instruction: Instruction) -> bool:
    """Return whether the instructions that follow may run in another mode."""
    return instruction.mnemonic.startswith("s_setreg") or instruction.mnemonic in _PARTS


def bind_mode(instruction: Instruction) -> Run | None:
    """Bind an instruction that reads or writes MODE; None for any other."""
    if instruction.mnemonic == "s_getreg_b32":
        return _bind_read(instruction)
    return _bind_write(instruction) if writes_mode(instruction) else None


class _ModeField(NamedTuple):
    """Consecutive bits of MODE."""

    start: np.uint32  # number of the lowest bit
    ones: np.uint32  # as many ones as there are bits, from bit 0 on


def _field(instruction: Instruction, text: str) -> _ModeField:
    """Return the bits that an operand `hwreg(...)` names."""
    match = _REGISTER.match(text)
    if match is None or match[1] != "HW_REG_MODE":
        raise not_emulated(f"the register {text}", instruction)
    width = int(match[3] or 32)
    return _ModeField(np.uint32(int(match[2] or 0)), np.uint32((1 << width) - 1))


def _bind_read(instruction: Instruction) -> Run:
    result, register = instruction.operands
    start, ones = _field(instruction, register.text)

    def run(waves: Waves) -> None:
        waves.write_scalar(result.index, "u32", _modes(waves) >> start & ones)
        waves.define((result.index,))

    return run


def _modes(waves: Waves) -> Words:
    if waves.modes is None:
        return np.full(waves.count(), IEEE_MODE, np.uint32)
    return waves.modes[waves.rows]


def _bind_write(instruction: Instruction) -> Run:
    part = _PARTS.get(instruction.mnemonic)
    if part is None:
        start, ones = _field(instruction, instruction.operands[0].text)
    else:
        start = np.uint32(part)
        ones = np.uint32(15)
    source = scalar_source(instruction.operands[-1], "u32")

    def run(waves: Waves) -> None:
        old = _modes(waves)
        new = old & ~(ones << start) | (source.value(waves) & ones) << start
        if ((new ^ old) & ~_KNOWN).any():
            raise not_emulated("changes of this part of MODE", instruction)
        if not waves.dirty.isdisjoint(source.numbers):
            undefined = source.shadow(waves) != 0
            if undefined.any():
                waves.report_undefined(
                    instruction, "how numbers are rounded", undefined
                )
        waves.set_modes(new & _KNOWN)

    return run
