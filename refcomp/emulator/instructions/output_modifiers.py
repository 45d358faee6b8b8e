"""Output modifiers of vector instructions: a factor, then a clamp.

    v_add_f32_e64 v0, v1, v2 mul:2          twice the sum
    v_add_f32_e64 v0, v1, v2 clamp          the sum, no less than 0 and no more than 1
    v_add_i32 v0, v1, v2 clamp              the nearest integer that fits

A clamp makes NaN 0 if DX10_CLAMP of the MODE register is set, as it usually is. Factors are ignored
unless IEEE_MODE is cleared and denormals of the result are flushed.
Manuals: "Output Modifiers" in the GCN3 and CDNA3 ISA manuals.
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.code.assembly import DX10_CLAMP, IEEE_NANS, Instruction
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.modes import keeps_denormals
from refcomp.emulator.instructions.operation import Function, Semantics
from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import NUMPY, Array

_FACTORS = {("mul", "2"): 2.0, ("mul", "4"): 4.0, ("div", "2"): 0.5}


def with_modifiers(instruction: Instruction, row: Semantics) -> Function:
    """Return the row's function followed by the instruction's output modifiers.

    Raise Unsupported for a clamp of integers that have no wider form.
    """
    kind = row.results[0]
    function = _scaled(instruction, row.function, kind)
    if "clamp" not in instruction.modifiers:
        return function
    if kind.startswith("f"):
        return _clamped(function, is_zero_for_nan=bool(instruction.mode & DX10_CLAMP))
    if row.wide is None:
        raise not_emulated(f"clamp of {instruction.mnemonic}", instruction)
    return _saturated(row.wide, kind)


def _scaled(instruction: Instruction, function: Function, kind: str) -> Function:
    """Return the function with `mul:2`, `mul:4` or `div:2`, if the mode does not ignore it."""
    given = _FACTORS.keys() & instruction.modifiers.items()
    if not given or instruction.mode & IEEE_NANS or not kind.startswith("f"):
        return function
    if keeps_denormals(instruction.mode, kind, of_results=True):
        return function
    factor = NUMPY[kind](_FACTORS[given.pop()])
    zero = NUMPY[kind](0)

    def compute(*values: Array) -> Array:
        found = np.asarray(function(*values))
        scaled = flushed(found * factor) + zero  # the sum with +0 makes +0 of -0
        return np.where(np.isnan(found), found, scaled)

    return compute


def _clamped(function: Function, *, is_zero_for_nan: bool) -> Function:
    if is_zero_for_nan:
        return lambda *values: np.clip(np.nan_to_num(function(*values), nan=0.0), 0, 1)

    def compute(*values: Array) -> Array:
        found = np.asarray(function(*values))
        return np.where(np.isnan(found), found, np.clip(found, 0, 1))

    return compute


def _saturated(function: Function, kind: str) -> Function:
    limits = np.iinfo(NUMPY[kind])

    def compute(*values: Array) -> Array:
        wide = [np.asarray(value).astype(np.int64) for value in values]
        total: Array = np.clip(function(*wide), limits.min, limits.max)
        return total.astype(NUMPY[kind])

    return compute
