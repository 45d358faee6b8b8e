"""Binding of scalar instructions: from a row of the table and operands to a function of waves.

An EXEC with undefined bits is reported at once, since branches are made of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from refcomp.emulator.code.assembly import EXEC, Instruction, Operand
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.operation import Function, Semantics
from refcomp.emulator.instructions.spreads import all_bits, any_undefined
from refcomp.emulator.machine.arrays import Array, bits_of, split
from refcomp.emulator.machine.registers import SCC, Registers
from refcomp.emulator.machine.sources import OperandSource, numbers_of, scalar_source
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.foundation.counted import counted

_SCC = Operand("scc", "c")
_EXEC = Operand("exec", "s", EXEC)
# Their constant is printed as 16 bits in hexadecimal, whatever its sign.
_WITH_16_BITS = ("s_cmpk", "s_addk", "s_mulk", "s_movk", "s_cmovk")


def bind_scalar(instruction: Instruction, row: Semantics) -> Run:
    """Bind the row to the operands of a scalar instruction."""
    written = [kind for kind in row.results if kind != "scc"]
    operands = list(instruction.operands[: len(written)])
    sources = _sources(instruction, row, len(written))
    watched = frozenset[int]().union(*(source.numbers for source in sources))
    defined = frozenset[int]().union(*map(numbers_of, operands, written))
    if "scc" in row.results:
        operands.append(_SCC)
        defined |= {SCC}
    is_single = len(row.results) == 1

    def run(waves: Waves) -> None:
        values = [source.value(waves) for source in sources]
        result = row.function(*values)
        is_clean = not waves.dirty or waves.dirty.isdisjoint(watched)
        shadows = None if is_clean else _spread(row, sources, waves)
        results = (result,) if is_single else result
        for operand, kind, value in zip(operands, row.results, results, strict=True):
            write_scalar(waves, operand, kind, value)
        if shadows is None:
            waves.define(defined)
            return
        for operand, kind, shadow in zip(operands, row.results, shadows, strict=True):
            write_scalar_shadow(waves, operand, kind, shadow, instruction)

    return run


def _sources(
    instruction: Instruction, row: Semantics, results: int
) -> list[OperandSource]:
    operands = list(instruction.operands[results:])
    kinds = list(row.sources)
    if instruction.mnemonic.startswith(_WITH_16_BITS):
        is_signed = not kinds[-1].startswith("u")
        number = int(operands[-1].text, 0) & 0xFFFF
        if is_signed and number & 0x8000:
            number -= 0x10000
        operands[-1] = Operand(str(number), "c")
    for name in row.implicit:
        operands.append(_SCC if name == "scc" else instruction.operands[0])
        kinds.append("scc" if name == "scc" else row.results[0])
    if len(operands) != len(kinds):
        raise not_emulated(
            f"{counted(len(operands), 'source')} of {instruction.mnemonic}, which has {len(kinds)}",
            instruction,
        )
    return [
        scalar_source(operand, kind)
        for operand, kind in zip(operands, kinds, strict=True)
    ]


def write_scalar(
    waves: Registers, operand: Operand, kind: str, value: npt.ArrayLike
) -> None:
    """Write the register that an operand names: SCC, or one or two scalar registers."""
    if kind == "scc":
        waves.write_scc(value)
    else:
        waves.write_scalar(
            operand.index, kind, np.broadcast_to(value, (waves.count(),))
        )


def write_scalar_shadow(
    waves: Waves, operand: Operand, kind: str, shadow: Array, instruction: Instruction
) -> None:
    """Mark bits of what `write_scalar` just wrote as undefined."""
    shadow = np.broadcast_to(shadow, (waves.count(),))
    if kind == "scc":
        waves.set_shadow(SCC, shadow)
        return
    halves = split(shadow) if bits_of(kind) == 64 else (shadow.astype(np.uint32),)
    for offset, half in enumerate(halves):
        waves.set_shadow(operand.index + offset, half)
    if operand.index == EXEC and np.any(shadow):
        waves.report_undefined(instruction, "which lanes run", shadow != 0)
        for offset in range(len(halves)):  # so that it is reported once
            waves.set_shadow(EXEC + offset, np.uint32(0))


def _spread(
    row: Semantics, sources: Sequence[OperandSource], waves: Registers
) -> list[Array]:
    """Return the shadow of each result."""
    shadows = [source.shadow(waves) for source in sources]
    if row.spread is not None:
        bits = [source.bits(waves) for source in sources]
        first = row.spread(*shadows, *bits)
        return [first, *(first != 0 for _ in row.results[1:])]
    undefined = any_undefined(shadows)
    return [
        undefined if kind == "scc" else all_bits(kind, undefined)
        for kind in row.results
    ]


def bind_save_exec(instruction: Instruction, function: Function) -> Run:
    """Bind an instruction that saves EXEC to its first operand and then changes EXEC.

    `function` takes the old EXEC and the second operand, and returns the new EXEC.
    """
    kind = "u64" if instruction.mnemonic.endswith("64") else "u32"
    result, operand = instruction.operands
    source = scalar_source(operand, kind)
    saved = scalar_source(_EXEC, kind)
    defined = numbers_of(result, kind) | numbers_of(_EXEC, kind) | {SCC}

    def run(waves: Waves) -> None:
        old = np.array(saved.value(waves))
        mask = function(old, source.value(waves))
        is_clean = not waves.dirty or waves.dirty.isdisjoint(source.numbers)
        shadow = None if is_clean else np.array(source.shadow(waves)) & old
        write_scalar(waves, result, kind, old)
        write_scalar(waves, _EXEC, kind, mask)
        waves.write_scc(mask != 0)
        waves.define(defined)
        if shadow is not None and shadow.any():
            waves.report_undefined(instruction, "which lanes run", shadow != 0)

    return run
