"""The clocks that the parts of one AMD compute unit take for the instructions of a kernel."""

from __future__ import annotations

import re
from typing import cast

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts
from refcomp.emulator.observers.counting.mnemonics import (
    FMA,
    LDS,
    MFMA,
    SALU,
    SCALAR_MEMORY,
    VALU,
    matrix_blocks,
    matrix_dtype,
)
from refcomp.profile.cards import BLOCKS, OLD_BF16, Unit
from refcomp.profile.limit import Limit

# Transcendental instructions, which compute a quarter of the lanes in a clock.
_QUARTER = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
_QUARTER_CLOCKS = 4
# Products of whole 32-bit integers, at the rate `Unit.integer_rate`.
_WHOLE_PRODUCT = re.compile(r"v_mul_(lo|hi)_[ui]32|v_mad_(co_)?[ui]64")
# The older matrix instructions on bf16, whose names lack _1k.
_OLD_BF16 = re.compile(r"\dbf16$")
# The number of lanes that exchange values through LDS in a clock, without accessing its memory.
_EXCHANGED_LANES = 32
_LIMITS = (Limit.VECTOR, Limit.MATRIX, Limit.SCALAR, Limit.SHARED, Limit.CACHE)


def unit_clocks(counts: KernelCounts, unit: Unit) -> dict[Limit, float]:
    """Return the clocks that one compute unit would take for everything but memory."""
    found = dict.fromkeys(_LIMITS, 0.0)
    found[Limit.VECTOR] = _all_vector_clocks(counts, unit)
    for one in counts.instructions:
        if one.kind == MFMA:
            found[Limit.MATRIX] += _matrix_clocks(one, unit)
        elif one.kind in (SALU, SCALAR_MEMORY):
            found[Limit.SCALAR] += one.waves / unit.scalars
        elif one.kind == LDS and not one.access:
            lanes = one.waves * counts.wave_lanes
            found[Limit.SHARED] += lanes / _EXCHANGED_LANES
    for one in counts.accesses("shared"):
        if one.access:
            found[Limit.SHARED] += one.access.clocks
    moved = 0
    for one in counts.accesses("global"):
        if one.access:
            moved += one.access.transactions * counts.segment
    for one in counts.accesses("private"):
        if one.access:
            moved += one.access.bytes  # the words of lanes lie side by side
    found[Limit.CACHE] = moved / unit.cache_bytes
    return found


def _all_vector_clocks(counts: KernelCounts, unit: Unit) -> float:
    whole = slow = 0.0
    for one in counts.instructions:
        if one.kind in (FMA, VALU):
            clocks = _vector_clocks(one, counts, unit)
            whole += clocks
            if _QUARTER.match(one.instruction.mnemonic):
                slow += clocks
    if unit.has_quarter_unit:
        return max(whole, slow * _QUARTER_CLOCKS)
    return whole - slow + slow * _QUARTER_CLOCKS


def _vector_clocks(one: InstructionCounts, counts: KernelCounts, unit: Unit) -> float:
    """Return the clocks of a vector instruction, as if none were transcendental."""
    name = one.instruction.mnemonic
    cost = 1 / unit.integer_rate if _WHOLE_PRODUCT.match(name) else 1.0
    if "_f64" in name:
        cost /= unit.f64_rate
    return one.waves * counts.wave_lanes * cost / unit.lanes


def _matrix_clocks(one: InstructionCounts, unit: Unit) -> float:
    name = one.instruction.mnemonic
    dtype = matrix_dtype(name)
    kind = (
        f"{dtype} {BLOCKS}"
        if matrix_blocks(cast(Instruction, one.instruction)) > 1
        else dtype
    )
    if _OLD_BF16.search(name):
        kind = OLD_BF16
    rate = unit.matrix.get(kind, unit.matrix[dtype])
    return one.fmas / rate


def unit_multiply_clocks(counts: KernelCounts, unit: Unit) -> float:
    """Return the clocks that multiply-adds alone take."""
    vectors = matrices = 0.0
    for one in counts.instructions:
        if one.kind == FMA:
            vectors += _vector_clocks(one, counts, unit)
        elif one.kind == MFMA:
            matrices += _matrix_clocks(one, unit)
    return max(vectors, matrices)
