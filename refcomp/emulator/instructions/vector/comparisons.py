"""Comparisons that choose which lanes run on: v_cmpx...

v_cmpx_lt_f32_e32 vcc, v0, v1       EXEC and vcc are the lanes where v0 < v1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from refcomp.emulator.code.assembly import EXEC, Instruction
from refcomp.emulator.instructions.operation import Semantics
from refcomp.emulator.instructions.vector.binding import bind_vector

Run = Callable[[Any], None]


def bind_choice(instruction: Instruction, rows: Mapping[str, Semantics]) -> Run | None:
    """The instruction, ready to run; None when it is no such comparison."""
    name = instruction.mnemonic.replace("v_cmpx_", "v_cmp_")
    if name == instruction.mnemonic or name not in rows:
        return None
    compare = bind_vector(replace(instruction, mnemonic=name), rows[name])
    result = instruction.operands[0]

    def run(waves: Any) -> None:
        compare(waves)
        words = range(waves.lanes // 32)
        if waves.shadow is not None and not waves.dirty.isdisjoint(result.index + n for n in words):
            undefined = waves.shadow.scalar(result.index, waves.mask_kind, waves.rows)
            if undefined.any():
                waves.report_undefined(instruction, "which lanes run", undefined)
        chosen = waves.values.scalar(result.index, waves.mask_bits, waves.rows).copy()
        waves.write_scalar(EXEC, waves.mask_bits, chosen)

    return run
