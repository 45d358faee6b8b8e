"""How long a launch takes at least on a card, by each of the things that may be the limit.

An estimate: each part of a compute unit does one thing at its peak rate all the time, compute units
share the groups evenly, and SIMDs a group's waves; memory gives each segment that a launch touches
once, the L1 cache a line a clock. What really happens is slower; which of the limits is the
greatest tells where to begin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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

VALU_LIMIT, MATRIX_LIMIT, SCALAR_LIMIT = "VALU", "MFMA", "SALU"
SHARED_LIMIT, CACHE_LIMIT, MEMORY_LIMIT = "LDS", "L1", "memory"
_BEGINS = dict.fromkeys(
    (VALU_LIMIT, MATRIX_LIMIT, SCALAR_LIMIT, SHARED_LIMIT, CACHE_LIMIT), 0.0
)
# Of one clock in four: transcendental functions.
_QUARTER = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
_QUARTER_COST = 4
_WHOLE_PRODUCT = re.compile(r"v_mul_(lo|hi)_[ui]32|v_mad_(co_)?[ui]64")
_OLD_BF16 = re.compile(r"\dbf16$")
# Lanes that cross by way of LDS in a clock, without an access to it.
_CROSSING_LANES = 32


@dataclass(frozen=True, slots=True)
class Bound:
    """`seconds` of one launch by limit, an estimate; `limit` is the greatest. On average `units` of
    the card's compute units work, and `simds` in them; multiply-adds alone would take the part
    `useful` of the time there, and `peak` if all units worked."""

    card: Card
    seconds: dict[str, float]
    limit: str
    units: float
    simds: float
    useful: float
    peak: float

    def __str__(self) -> str:
        told = f"{1e6 * self.seconds[self.limit]:.2f} microseconds at least on {self.card.name}"
        return f"estimate, not measured: {told}, by {self.limit}"


def bound_of(counts: KernelCounts, card: Card) -> Bound | None:
    """The estimate for one launch of the average size; None where nothing ran."""
    if not counts.groups:
        return None
    units, simds = _working(counts, card)
    hertz = card.gigahertz * 1e9 * counts.launches
    shared_by = {
        VALU_LIMIT: simds / card.unit.simds,
        MATRIX_LIMIT: simds / card.unit.simds,
    }
    clocks = _clocks(counts, card.unit)
    seconds = {
        limit: n / (hertz * shared_by.get(limit, units)) for limit, n in clocks.items()
    }
    moved = (counts.read + counts.written) / counts.launches
    seconds[MEMORY_LIMIT] = moved / (card.bandwidth * 1e9)
    limit = max(seconds, key=lambda name: seconds[name])
    least = _multiply_clocks(counts, card.unit) / hertz
    part = least / seconds[limit] if seconds[limit] else 0.0
    useful, peak = part * card.unit.simds / simds, part / card.units
    return Bound(card, seconds, limit, units, simds, useful, peak)


def _working(counts: KernelCounts, card: Card) -> tuple[float, float]:
    """How many compute units, and SIMDs, work on average when groups come in rounds of one a place:
    a unit, or two where a group is spread over a pair of them."""
    together = 2 if counts.is_on_pairs else 1
    groups, places = counts.groups / counts.launches, card.units // together
    rounds = ceil(groups / places)
    waves = max(1.0, counts.waves / counts.groups)
    turns = ceil(rounds * waves / (together * card.unit.simds))
    return together * groups / rounds, groups * waves / turns


def _clocks(counts: KernelCounts, unit: Unit) -> dict[str, float]:
    """Clocks of one compute unit, if it did all."""
    found = _BEGINS | {VALU_LIMIT: _all_vector_clocks(counts, unit)}
    for one in counts.instructions:
        if one.kind == MFMA:
            found[MATRIX_LIMIT] += _matrix_clocks(one, unit)
        elif one.kind in (SALU, SCALAR_MEMORY):
            found[SCALAR_LIMIT] += one.waves / unit.scalars
        elif one.kind == LDS and not one.access:
            found[SHARED_LIMIT] += one.waves * counts.wave_lanes / _CROSSING_LANES
    found[SHARED_LIMIT] += sum(
        one.access.clocks for one in counts.accesses("shared") if one.access
    )
    moved = sum(
        one.access.transactions for one in counts.accesses("global") if one.access
    )
    # Lanes' own words lie side by side.
    own = sum(one.access.bytes for one in counts.accesses("private") if one.access)
    found[CACHE_LIMIT] = (moved * counts.segment + own) / unit.cache_bytes
    return found


def _all_vector_clocks(counts: KernelCounts, unit: Unit) -> float:
    vectors = [one for one in counts.instructions if one.kind in (FMA, VALU)]
    whole = sum(_vector_clocks(one, counts, unit) for one in vectors)
    quarters = [one for one in vectors if _QUARTER.match(one.instruction.mnemonic)]
    slow = sum(_vector_clocks(one, counts, unit) for one in quarters)
    apart = slow * _QUARTER_COST
    return max(whole, apart) if unit.has_quarter_unit else whole - slow + apart


def _vector_clocks(one: InstructionCounts, counts: KernelCounts, unit: Unit) -> float:
    """As if transcendental functions were as fast as others."""
    name = one.instruction.mnemonic
    cost = 1 / unit.integer_rate if _WHOLE_PRODUCT.match(name) else 1.0
    if "_f64" in name:
        cost /= unit.f64_rate
    return one.waves * counts.wave_lanes * cost / unit.lanes


def _matrix_clocks(one: InstructionCounts, unit: Unit) -> float:
    name = one.instruction.mnemonic
    dtype = matrix_dtype(name)
    kind = f"{dtype} {BLOCKS}" if matrix_blocks(one.instruction) > 1 else dtype
    rate = unit.matrix.get(
        OLD_BF16 if _OLD_BF16.search(name) else kind, unit.matrix[dtype]
    )
    return one.waves * fmas_of_wave(one.instruction) / rate


def _multiply_clocks(counts: KernelCounts, unit: Unit) -> float:
    """Clocks that multiply-adds alone take."""
    vectors = sum(
        _vector_clocks(o, counts, unit) for o in counts.instructions if o.kind == FMA
    )
    matrices = sum(
        _matrix_clocks(one, unit) for one in counts.instructions if one.kind == MFMA
    )
    return max(vectors, matrices)
