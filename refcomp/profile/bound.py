"""A lower bound of the time of a launch on a card, for each resource that may limit it.

The bound is an estimate. It assumes that each part of a compute unit works at its peak rate all the
time, that compute units share the groups evenly, and that SIMDs share a group's waves. Memory
transfers each segment that a launch touches only once. The L1 cache delivers one line a clock. Real
launches are slower; the largest bound shows where to begin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts
from refcomp.emulator.observers.counting.mnemonics import (
    FMA,
    LDS,
    MFMA,
    SALU,
    SCALAR_MEMORY,
    VALU,
    fmas_of_wave,
    matrix_blocks,
    matrix_dtype,
)
from refcomp.profile.cards import BLOCKS, OLD_BF16, Card, Unit


class Limit(StrEnum):
    """A resource that may limit a launch."""

    VECTOR = "VALU"
    MATRIX = "MFMA"
    SCALAR = "SALU"
    SHARED = "LDS"
    CACHE = "L1"
    MEMORY = "memory"


# Transcendental instructions: each clock computes a quarter of the lanes.
_QUARTER = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
_QUARTER_CLOCKS = 4
# Products of whole 32-bit integers, at the rate `Unit.integer_rate`.
_WHOLE_PRODUCT = re.compile(r"v_mul_(lo|hi)_[ui]32|v_mad_(co_)?[ui]64")
# The older matrix instructions on bf16, whose names lack _1k.
_OLD_BF16 = re.compile(r"\dbf16$")
# Lanes that exchange values through LDS in a clock, without accessing its memory.
_EXCHANGED_LANES = 32


@dataclass(frozen=True, slots=True)
class Bound:
    """The estimate for one launch."""

    card: Card
    seconds: dict[Limit, float]  # the least time that each resource allows
    limit: Limit  # the resource with the most seconds
    units: float  # compute units that work, on average
    simds: float  # SIMDs that work, on average
    # 0 to 1: the time that multiply-adds alone would take on the working SIMDs, as a part of the
    # estimate.
    useful: float
    # The same, if all SIMDs of the card worked.
    peak: float

    def __str__(self) -> str:
        microseconds = 1e6 * self.seconds[self.limit]
        least = f"{microseconds:.2f} microseconds at least on {self.card.name}"
        return f"estimate, not measured: {least}, by {self.limit}"


def bound_of(counts: KernelCounts, card: Card) -> Bound | None:
    """Return the estimate for one launch of the average size; None if nothing ran."""
    if not counts.groups:
        return None
    units, simds = _working(counts, card)
    hertz = card.gigahertz * 1e9 * counts.launches
    # Vector and matrix instructions need a SIMD that works; all else needs a unit.
    busy = dict.fromkeys(Limit, units)
    busy[Limit.VECTOR] = busy[Limit.MATRIX] = simds / card.unit.simds
    seconds = {
        limit: clocks / (hertz * busy[limit])
        for limit, clocks in _clocks(counts, card.unit).items()
    }
    moved = (counts.read + counts.written) / counts.launches
    seconds[Limit.MEMORY] = moved / (card.bandwidth * 1e9)
    limit = max(seconds, key=lambda name: seconds[name])
    multiplying = _multiply_clocks(counts, card.unit) / hertz
    part = multiplying / seconds[limit] if seconds[limit] else 0.0
    return Bound(
        card,
        seconds,
        limit,
        units=units,
        simds=simds,
        useful=part * card.unit.simds / simds,
        peak=part / card.units,
    )


def _working(counts: KernelCounts, card: Card) -> tuple[float, float]:
    """Return how many compute units and SIMDs work on average.

    Groups run in rounds. In a round each place takes one group; a place is a unit, or two where a
    group is spread over a pair of them.
    """
    units_of_place = 2 if counts.is_on_pairs else 1
    groups = counts.groups / counts.launches
    rounds = ceil(groups / (card.units // units_of_place))
    waves = max(1.0, counts.waves / counts.groups)
    simds_of_place = units_of_place * card.unit.simds
    wave_rounds = ceil(rounds * waves / simds_of_place)
    return units_of_place * groups / rounds, groups * waves / wave_rounds


def _clocks(counts: KernelCounts, unit: Unit) -> dict[Limit, float]:
    """Return the clocks that one compute unit would take for everything but memory."""
    found = dict.fromkeys(Limit, 0.0)
    del found[Limit.MEMORY]
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
    kind = f"{dtype} {BLOCKS}" if matrix_blocks(one.instruction) > 1 else dtype
    if _OLD_BF16.search(name):
        kind = OLD_BF16
    rate = unit.matrix.get(kind, unit.matrix[dtype])
    return one.waves * fmas_of_wave(one.instruction) / rate


def _multiply_clocks(counts: KernelCounts, unit: Unit) -> float:
    """Return the clocks that multiply-adds alone take."""
    vectors = matrices = 0.0
    for one in counts.instructions:
        if one.kind == FMA:
            vectors += _vector_clocks(one, counts, unit)
        elif one.kind == MFMA:
            matrices += _matrix_clocks(one, unit)
    return max(vectors, matrices)
