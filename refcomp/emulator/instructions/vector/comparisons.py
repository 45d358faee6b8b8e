"""Comparisons that choose which lanes run on: v_cmpx...

v_cmpx_lt_f32_e32 vcc, v0, v1       EXEC and vcc are the lanes where v0 < v1 (GFX9)
v_cmpx_gt_i32_e64 v0, v1            EXEC is the lanes where v0 > v1 (GFX11)

Lanes that were off stay off. An EXEC with undefined bits is reported at once, as for scalar
instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from refcomp.emulator.code.assembly import EXEC, Instruction, Operand
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.operation import Semantics
from refcomp.emulator.instructions.tables.conversions import VECTOR_CONVERSIONS
from refcomp.emulator.instructions.tables.floats import VECTOR_FLOATS
from refcomp.emulator.instructions.vector.binding import bind_vector
from refcomp.emulator.instructions.vector.dpp import is_dpp
from refcomp.emulator.machine.waves import Run, Waves

_EXEC = Operand("exec_lo", "s", EXEC)


def bind_choice(instruction: Instruction, rows: Mapping[str, Semantics]) -> Run | None:
    """Bind a comparison that also writes a scalar register; None for any other instruction."""
    name = instruction.mnemonic.replace("v_cmpx_", "v_cmp_")
    if name == instruction.mnemonic or name not in rows:
        return None
    compare = bind_vector(replace(instruction, mnemonic=name), rows[name])
    result = instruction.operands[0].index

    def run(waves: Waves) -> None:
        compare(waves)
        _report_undefined(waves, instruction, result)
        chosen = waves.values.scalar(result, waves.mask_bits, waves.rows).copy()
        waves.write_scalar(EXEC, waves.mask_bits, chosen)

    return run


def bind_compare_exec(instruction: Instruction) -> Run:
    """Bind a comparison that writes EXEC alone. Raise Unsupported for DPP."""
    if is_dpp(instruction):
        raise not_emulated("DPP of a comparison that writes EXEC", instruction)
    name = instruction.mnemonic.replace("v_cmpx_", "v_cmp_")
    row = VECTOR_CONVERSIONS.get(name) or VECTOR_FLOATS[name]
    operands = (_EXEC, *instruction.operands)
    compare = bind_vector(replace(instruction, mnemonic=name, operands=operands), row)
    words = range(EXEC, EXEC + instruction.lanes // 32)

    def run(waves: Waves) -> None:
        compare(waves)
        if _report_undefined(waves, instruction, EXEC):
            for number in words:
                waves.set_shadow(number, np.uint32(0))  # so that it is reported once

    return run


def _report_undefined(waves: Waves, instruction: Instruction, result: int) -> bool:
    """Report undefined bits of the mask in `result`; return whether its registers are dirty."""
    words = range(result, result + waves.lanes // 32)
    if waves.shadow is None or waves.dirty.isdisjoint(words):
        return False
    undefined = waves.shadow.scalar(result, waves.mask_kind, waves.rows)
    if undefined.any():
        waves.report_undefined(instruction, "which lanes run", np.array(undefined))
    return True
