"""Comparisons whose result is EXEC itself: v_cmpx_gt_i32_e64 v0, v1.

Lanes that were off stay off. An EXEC of which bits are undefined is told of at once, as of scalar
instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from refcomp.emulator.code.assembly import EXEC, Instruction, Operand
from refcomp.emulator.instructions.tables.conversions import VECTOR_CONVERSIONS
from refcomp.emulator.instructions.tables.floats import VECTOR_FLOATS
from refcomp.emulator.instructions.vector.binding import bind_vector
from refcomp.emulator.instructions.vector.dpp import is_dpp
from refcomp.foundation.errors import Unsupported

Run = Callable[[Any], None]

_EXEC = Operand("exec_lo", "s", EXEC)


def bind_compare_exec(instruction: Instruction) -> Run:
    """The comparison, ready to run. Unsupported of what comes from another lane."""
    if is_dpp(instruction):
        raise Unsupported("this exchange among lanes is not known", where=str(instruction))
    name = instruction.mnemonic.replace("v_cmpx_", "v_cmp_")
    row = VECTOR_CONVERSIONS.get(name) or VECTOR_FLOATS[name]
    operands = (_EXEC, *instruction.operands)
    compare = bind_vector(replace(instruction, mnemonic=name, operands=operands), row)
    words = range(EXEC, EXEC + instruction.lanes // 32)

    def run(waves: Any) -> None:
        compare(waves)
        if not waves.dirty.isdisjoint(words):
            _tell(waves, instruction)

    return run


def _tell(waves: Any, instruction: Instruction) -> None:
    undefined = waves.shadow.scalar(EXEC, waves.mask_kind, waves.rows)
    if undefined.any():
        waves.report_undefined(instruction, "which lanes run", np.array(undefined))
    for number in range(EXEC, EXEC + waves.lanes // 32):
        waves.set_shadow(number, np.uint32(0))  # told once
