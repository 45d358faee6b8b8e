"""Indirect registers: an operand's number is M0 more than the one that is printed.

    s_set_gpr_idx_on s0, gpr_idx(SRC0)      from here on, v1 as first source means v[1 + s0] ...
    v_mov_b32_e32 v18, v1
    s_set_gpr_idx_off                       ... to here
    s_movrels_b32 s0, s1                    s0 = s[1 + M0]
    v_movreld_b32 v0, v1                    v[0 + M0] = v1

Waves with the same index run together. Refuses a jump while registers are indexed, by Unsupported,
and an index beyond the registers of the kernel, by UserError.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from refcomp.emulator.code.assembly import NAMED, Instruction, RegisterFile
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.machine.sources import OperandSource, scalar_source
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.foundation.errors import UserError

Bind: TypeAlias = Callable[[Instruction], Run | None]

# Name of a part of `gpr_idx(...)` -> the position of the operand, and its bit of M0.
_POSITIONS = {"DST": 0, "SRC0": 1, "SRC1": 2, "SRC2": 3}
_BITS = {"SRC0": 1 << 12, "SRC1": 1 << 13, "SRC2": 1 << 14, "DST": 1 << 15}
M0 = NAMED["m0"].first
_INDEX = np.uint32(0xFF)
# Suffix of s_movrel and v_movrel -> positions of the indexed operands.
_MOVES = {"s": frozenset((1,)), "d": frozenset((0,)), "sd": frozenset((0, 1))}
_MOVE = re.compile(r"([sv])_movrel(s|d|sd)_(b32|b64)$")


def positions_after(
    instruction: Instruction, positions: frozenset[int]
) -> frozenset[int]:
    """Return the positions of the operands that are indexed after `instruction`."""
    name = instruction.mnemonic
    if name in ("s_set_gpr_idx_on", "s_set_gpr_idx_mode"):
        return frozenset(_POSITIONS[part] for part in _parts(instruction))
    return frozenset() if name == "s_set_gpr_idx_off" else positions


def bind_within(
    instruction: Instruction, positions: frozenset[int], bind: Bind
) -> Run | None:
    """Bind an instruction whose operands at `positions`, if it is a vector one, are indexed."""
    if not positions or not instruction.mnemonic.startswith("v_"):
        return bind(instruction)
    return _by_index(instruction, positions, "v", bind)


def bind_index(instruction: Instruction) -> Run | None:
    """Bind an instruction that sets the index; None for any other."""
    name = instruction.mnemonic
    operands = instruction.operands
    if name not in ("s_set_gpr_idx_on", "s_set_gpr_idx_idx", "s_set_gpr_idx_mode"):
        return None
    value = scalar_source(operands[0], "u32") if name != "s_set_gpr_idx_mode" else None
    flags = np.uint32(sum(_BITS[part] for part in _parts(instruction)))
    kept = {"s_set_gpr_idx_idx": 0xFFFFFF00, "s_set_gpr_idx_mode": 0xFFFF0FFF}
    mask = np.uint32(kept.get(name, 0xFFFF0F00))

    def run(waves: Waves) -> None:
        old = waves.values.scalar(M0, "u32", waves.rows)
        index = old & mask | flags
        if value is not None:
            index = index | value.value(waves) & _INDEX
            _check_index(waves, value, instruction)
        waves.write_scalar(M0, "u32", index)
        waves.define((M0,))

    return run


def bind_move(instruction: Instruction, bind: Bind) -> Run | None:
    """Bind s_movrels, v_movreld and so on; None for any other instruction."""
    match = _MOVE.match(instruction.mnemonic)
    if match is None:
        return None
    plain = replace(instruction, mnemonic=f"{match[1]}_mov_{match[3]}")
    file: RegisterFile = "s" if match[1] == "s" else "v"
    return _by_index(plain, _MOVES[match[2]], file, bind)


def refuse_jump(instruction: Instruction) -> None:
    """Raise Unsupported for a jump while registers are indexed."""
    raise not_emulated("a jump while registers are indexed", instruction)


def _parts(instruction: Instruction) -> list[str]:
    text = instruction.operands[-1].text.removeprefix("gpr_idx(").rstrip(")")
    return [part for part in text.split(",") if part in _BITS]


def _check_index(waves: Waves, source: OperandSource, instruction: Instruction) -> None:
    if waves.dirty and not waves.dirty.isdisjoint(source.numbers):
        undefined = np.broadcast_to(source.shadow(waves) != 0, (waves.count(),))
        if undefined.any():
            waves.report_undefined(instruction, "which register is meant", undefined)


def _by_index(
    instruction: Instruction, positions: frozenset[int], file: RegisterFile, bind: Bind
) -> Run:
    bound: dict[int, Run | None] = {}  # by index
    mask = _INDEX if file == "v" else np.uint32(0xFFFFFFFF)

    def run(waves: Waves) -> None:
        rows = waves.rows
        indices = waves.values.scalar(M0, "u32", rows) & mask
        limit = waves.registers.vectors if file == "v" else M0
        found = np.unique(indices).tolist()
        for index in found:
            if index not in bound:
                bound[index] = bind(_moved(instruction, positions, file, index, limit))
            if len(found) > 1:
                waves.select(np.arange(waves.waves)[rows][indices == index])
            one = bound[index]
            if one is not None:
                one(waves)
        if len(found) > 1:
            waves.select(rows)

    return run


def _moved(
    instruction: Instruction,
    positions: frozenset[int],
    file: RegisterFile,
    index: int,
    limit: int,
) -> Instruction:
    """Return the instruction with its indexed operands `index` registers further on."""
    operands = list(instruction.operands)
    for position in positions & set(range(len(operands))):
        operand = operands[position]
        if operand.file != file:
            continue
        if operand.index + index + operand.count > limit:
            raise UserError(
                f"the index {index} leads beyond the registers of the kernel",
                where=str(instruction),
                why=f"registers that follow {operand.text}: {limit - 1 - operand.index}",
                remedy="check the index that the kernel computes",
            )
        operands[position] = replace(operand, index=operand.index + index)
    return replace(instruction, operands=tuple(operands))
