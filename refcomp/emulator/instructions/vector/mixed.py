"""Instructions whose modifiers give the types or places of their operands.

    v_fma_mix_f32 v0, v1, -v2, |v3| op_sel:[1,0,0] op_sel_hi:[1,1,0]
        f32 of v1's upper half times that of v2's lower half, plus v3, which is an f32
    v_fma_mixhi_f16 ...                 the same, rounded again to the upper half of v0
    v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,1,1]     to byte 3 of v0
    v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]    v3 and v4

Each is bound to a row that is made for the types found.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.instructions.exact import fma_f32
from refcomp.emulator.instructions.operation import operation
from refcomp.emulator.instructions.small_floats import to_bytes_by_chance
from refcomp.emulator.instructions.vector.binding import bind_vector
from refcomp.emulator.machine.arrays import Array, join
from refcomp.emulator.machine.waves import Run

_MIX = re.compile(r"v_fma_mix(lo|hi)?_f(?:16|32)$")
_BY_CHANCE = re.compile(r"v_cvt_sr_(fp8|bf8)_f32$")
_HALVES = {"lo": "WORD_0", "hi": "WORD_1"}


def without(instruction: Instruction, *names: str, **others: str) -> Instruction:
    """Return the instruction without the modifiers `names`, and with `others`."""
    kept = {
        name: text for name, text in instruction.modifiers.items() if name not in names
    }
    return replace(instruction, modifiers=kept | others)


def bind_mixed(instruction: Instruction) -> Run | None:
    """Bind one of these instructions; None for any other."""
    if match := _MIX.match(instruction.mnemonic):
        return _bind_mix(instruction, match[1])
    if match := _BY_CHANCE.match(instruction.mnemonic):
        return _bind_by_chance(instruction, match[1])
    return _bind_pair(instruction) if instruction.mnemonic == "v_pk_mov_b32" else None


def _bind_mix(instruction: Instruction, half: str | None) -> Run:
    are_halves = flags_of(instruction.modifiers, "op_sel_hi", 3)
    kinds = " ".join("f16" if is_half else "f32" for is_half in are_halves)

    def compute(*values: Array) -> Array:
        total = fma_f32(*(np.asarray(value, np.float32) for value in values))
        return total.astype(np.float16) if half else total

    if half is None:
        plain = without(instruction, "op_sel_hi")
        return bind_vector(plain, operation(f"f32 = {kinds}", compute))
    selected = {"dst_sel": _HALVES[half], "dst_unused": "UNUSED_PRESERVE"}
    into_half = without(instruction, "op_sel_hi", **selected)
    return bind_vector(into_half, operation(f"f16 = {kinds}", compute))


def _bind_by_chance(instruction: Instruction, kind: str) -> Run:
    *_, low, high = flags_of(instruction.modifiers, "op_sel", 4)
    selected = {"dst_sel": f"BYTE_{low + 2 * high}", "dst_unused": "UNUSED_PRESERVE"}
    into_byte = without(instruction, "op_sel", **selected)
    row = operation(
        "u32 = f32 u32", lambda a, noise: to_bytes_by_chance(a, noise, kind)
    )
    return bind_vector(into_byte, row)


def _bind_pair(instruction: Instruction) -> Run:
    result, *sources = instruction.operands
    flags = flags_of(instruction.modifiers, "op_sel", 2)
    chosen = [
        replace(operand, index=operand.index + is_high, count=1)
        for operand, is_high in zip(sources, flags, strict=True)
    ]
    plain = without(instruction, "op_sel", "op_sel_hi")
    return bind_vector(replace(plain, operands=(result, *chosen)), _PAIR)


def _joined(low: Array, high: Array) -> Array:
    return join(*np.broadcast_arrays(low, high))


_PAIR = operation("p32 = u32 u32", _joined, spread=lambda s, t, a, b: _joined(s, t))
