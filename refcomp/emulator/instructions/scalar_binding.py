"""Scalar instructions as something to run: a row of the table bound to an instruction's operands.

An EXEC of which bits are undefined is told of at once: it is what branches are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from refcomp.emulator.code.assembly import EXEC, Instruction, Operand
from refcomp.emulator.instructions.operation import Semantics
from refcomp.emulator.machine.arrays import Array, bits_of, split
from refcomp.emulator.machine.registers import SCC, Registers
from refcomp.emulator.machine.sources import OperandSource, numbers_of, scalar_source
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.foundation.errors import Unsupported

_SCC = Operand("scc", "c")
_EXEC = Operand("exec", "s", EXEC)


def bind_scalar(instruction: Instruction, row: Semantics) -> Run:
    """The instruction, ready to run."""
    written = [kind for kind in row.results if kind != "scc"]
    results = instruction.operands[: len(written)]
    sources = _sources(instruction, row, len(written))
    watched = frozenset().union(*(source.numbers for source in sources))
    defined = frozenset().union(*map(numbers_of, results, written))
    defined |= {SCC} if "scc" in row.results else set()
    is_single = len(row.results) == 1
    operands = [*results, *([_SCC] if "scc" in row.results else [])]

    def run(waves: Waves) -> None:
        values = [source.value(waves) for source in sources]
        result = row.function(*values)
        is_clean = not waves.dirty or waves.dirty.isdisjoint(watched)
        shadows = None if is_clean else _spread(row, sources, waves)
        for operand, kind, value in zip(
            operands, row.results, [result] if is_single else result, strict=True
        ):
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
    operands, kinds = list(instruction.operands[results:]), list(row.sources)
    if instruction.mnemonic.startswith(
        ("s_cmpk", "s_addk", "s_mulk", "s_movk", "s_cmovk")
    ):
        operands[-1] = _sixteen_bits(
            operands[-1], is_signed=not kinds[-1].startswith("u")
        )
    for name in row.implicit:
        operands.append(_SCC if name == "scc" else instruction.operands[0])
        kinds.append("scc" if name == "scc" else row.results[0])
    if len(operands) != len(kinds):
        raise Unsupported(
            f"{instruction.mnemonic} has {len(operands)} sources here, not {len(kinds)}",
            where=str(instruction),
        )
    return [
        scalar_source(operand, kind)
        for operand, kind in zip(operands, kinds, strict=True)
    ]


def _sixteen_bits(operand: Operand, *, is_signed: bool) -> Operand:
    """The constant is printed as 16 bits in hexadecimal, whatever its sign."""
    number = int(operand.text, 0) & 0xFFFF
    signed = number - 0x10000 if is_signed and number & 0x8000 else number
    return Operand(str(signed), "c")


def write_scalar(waves: Registers, operand: Operand, kind: str, value: Array) -> None:
    """Write what an operand names: SCC, or one or two scalar registers."""
    if kind == "scc":
        waves.write_scc(value)
    else:
        shape = np.broadcast_to(value, (waves.count(),))
        waves.write_scalar(operand.index, kind, shape)


def write_scalar_shadow(
    waves: Waves, operand: Operand, kind: str, shadow: Array, instruction: Instruction
) -> None:
    """Which bits of what was just written are undefined."""
    shadow = np.broadcast_to(shadow, (waves.count(),))
    if kind == "scc":
        waves.set_shadow(SCC, shadow)
        return
    halves = split(shadow) if bits_of(kind) == 64 else (shadow.astype(np.uint32),)
    for offset, half in enumerate(halves):
        waves.set_shadow(operand.index + offset, half)
    if operand.index == EXEC and np.any(shadow):
        waves.report_undefined(instruction, "which lanes run", shadow != 0)
        for offset in range(len(halves)):  # told once
            waves.set_shadow(EXEC + offset, np.uint32(0))


def _spread(
    row: Semantics, sources: Sequence[OperandSource], waves: Waves
) -> list[Array]:
    shadows = [source.shadow(waves) for source in sources]
    if row.spread is not None:
        bits = [source.bits(waves) for source in sources]
        first = row.spread(*shadows, *bits)
        return [first, *(first != 0 for _ in row.results[1:])]
    undefined = np.zeros(1, np.bool_)
    for shadow in shadows:
        undefined = undefined | (shadow != 0)
    return [_filled(kind, undefined) for kind in row.results]


def _filled(kind: str, undefined: Array) -> Array:
    if kind == "scc":
        return undefined
    unsigned: Any = {32: np.uint32, 64: np.uint64}[bits_of(kind)]
    return np.where(undefined, ~unsigned(0), unsigned(0))


def bind_save_exec(
    instruction: Instruction, function: Callable[[Array, Array], Array]
) -> Run:
    """EXEC goes to the first operand, and becomes what `function` makes of it and the second."""
    kind = "u64" if instruction.mnemonic.endswith("64") else "u32"
    result, operand = instruction.operands
    source, saved = scalar_source(operand, kind), scalar_source(_EXEC, kind)
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
