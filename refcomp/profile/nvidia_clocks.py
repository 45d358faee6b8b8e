"""The clocks that the parts of one multiprocessor take for the instructions of a kernel.

PTX is not machine code. Moves are left out, since ptxas removes most of them. All others count as
one instruction. So the bound is too low if ptxas makes several instructions of one, such as of a
division.
"""

from __future__ import annotations

import re
from collections import defaultdict

from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts
from refcomp.emulator.ptx.observers.opcodes import (
    COMPARISON,
    CONSTANT,
    CONVERSION,
    EXCHANGE,
    FLOAT,
    FMA,
    INTEGER,
    LOCAL,
    MOVE,
    SPECIAL,
    TENSOR,
    CountedPtx,
    has_f32_sums,
    matrix_dtype,
)
from refcomp.profile.limit import Limit
from refcomp.profile.multiprocessor import Multiprocessor

# Parts of a multiprocessor that compute at the same time.
_F64, _F16, _F32, _INTEGERS, _SPECIAL = "f64", "f16", "f32", "integers", "special"
# Classes that cost no issue: ptxas removes moves, and other instructions read constants themselves.
_FREE = frozenset({MOVE, CONSTANT})
_COMPUTED = frozenset({FMA, FLOAT, INTEGER, CONVERSION, SPECIAL, COMPARISON})
_LOCAL_BYTES = re.compile(r"[a-z]+(\d+)$")


def multiprocessor_clocks(
    counts: KernelCounts, unit: Multiprocessor, tensor_clock: float
) -> dict[Limit, float]:
    """Return the clocks that one multiprocessor would take for everything but memory.

    `tensor_clock` is the clock of tensor cores, relative to the boost clock.
    """
    moved = exchanged = issued = bank_clocks = 0.0
    for one in counts.instructions:
        if one.kind not in _FREE:
            issued += one.waves
        if one.kind == EXCHANGE:
            exchanged += one.waves * counts.wave_lanes
        elif one.kind == LOCAL:
            moved += one.lanes * _local_bytes(one.instruction.mnemonic)
    for one in counts.accesses("global"):
        if one.access:
            moved += one.access.transactions * counts.segment
    for one in counts.accesses("shared"):
        if one.access:
            bank_clocks += one.access.clocks
    return {
        Limit.ARITHMETIC: max(_part_clocks(counts, unit).values(), default=0.0),
        Limit.TENSOR: _tensor_clocks(counts, unit, tensor_clock),
        Limit.ISSUE: issued / unit.simds,
        Limit.BANKS: bank_clocks + exchanged / unit.exchanged,
        Limit.CACHE: moved / unit.cache_bytes,
    }


def multiprocessor_multiply_clocks(
    counts: KernelCounts, unit: Multiprocessor, tensor_clock: float
) -> float:
    """Return the clocks that multiply-adds alone take."""
    rates = _rates(unit)
    of_lanes = sum(
        _operations(one, counts) / rates[_part_of(one)]
        for one in counts.instructions
        if one.kind == FMA
    )
    return max(of_lanes, _tensor_clocks(counts, unit, tensor_clock))


def _rates(unit: Multiprocessor) -> dict[str, int]:
    return {
        _F64: unit.f64,
        _F16: unit.f16,
        _F32: unit.lanes,
        _INTEGERS: unit.integers,
        _SPECIAL: unit.special,
    }


def _part_clocks(counts: KernelCounts, unit: Multiprocessor) -> dict[str, float]:
    """Return the clocks of each part that computes."""
    found: defaultdict[str, float] = defaultdict(float)
    rates = _rates(unit)
    for one in counts.instructions:
        if one.kind in _COMPUTED:
            part = _part_of(one)
            found[part] += _operations(one, counts) / rates[part]
    return found


def _part_of(one: InstructionCounts) -> str:
    """Return the part that executes an instruction."""
    if one.kind == SPECIAL:
        return _SPECIAL
    if one.kind in (INTEGER, CONVERSION):
        return _INTEGERS
    kind = one.instruction.mnemonic.rpartition(".")[2]
    if "f64" in kind:
        return _F64
    if "f16" in kind:
        return _F16
    return _F32 if kind.startswith("f32") else _INTEGERS


def _operations(one: InstructionCounts, counts: KernelCounts) -> int:
    """Return the operations of all lanes, including idle ones. A pair counts as two."""
    is_pair = one.instruction.mnemonic.endswith("x2")
    return one.waves * counts.wave_lanes * (2 if is_pair else 1)


def _tensor_clocks(
    counts: KernelCounts, unit: Multiprocessor, tensor_clock: float
) -> float:
    total = 0.0
    for one in counts.instructions:
        if one.kind == TENSOR and isinstance(one.instruction, CountedPtx):
            dtype = matrix_dtype(one.instruction)
            rate = unit.matrix_rate(dtype, has_f32_sums(one.instruction))
            clock = 1.0 if dtype == _F64 else tensor_clock
            total += one.fmas / (rate * clock)
    return total


def _local_bytes(mnemonic: str) -> int:
    """Return the bytes that a lane moves by an access to local memory."""
    found = _LOCAL_BYTES.search(mnemonic)
    vector = re.search(r"\.v(\d)\.", mnemonic)
    return (int(found[1]) // 8 if found else 4) * (int(vector[1]) if vector else 1)
