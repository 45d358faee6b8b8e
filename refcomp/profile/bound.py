"""How long a launch takes at least on a card, by each of the things that may be the limit.

An estimate: each unit of the card does one thing at its peak rate all the time, all compute units
share the groups evenly, and memory gives each segment that a launch touches once. What really
happens is slower; which of the limits is the greatest tells where to begin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from refcomp.emulator.profile import InstructionCounts, KernelCounts
from refcomp.emulator.profile.mnemonics import FMA, LDS, MFMA, VALU, fmas_of_wave, matrix_dtype
from refcomp.profile.cards import Card

VALU_LIMIT, MATRIX_LIMIT, SHARED_LIMIT = "VALU", "MFMA", "LDS"
CACHE_LIMIT, MEMORY_LIMIT = "L1", "memory"
# Of one clock in four: transcendental functions, and products of whole 32-bit integers.
_QUARTER = re.compile(
    r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_|v_mul_(lo|hi)_|v_mad_[ui]64|v_(div_scale|div_fixup)_f64"
)
_QUARTER_COST = 4
# Instructions that cross lanes by way of LDS without an access to it.
_CROSSING_CLOCKS = 2


@dataclass(frozen=True, slots=True)
class Bound:
    """`seconds` of one launch by limit, an estimate; `limit` is the greatest, `units` of the card
    work, `peak` is the part of the time that multiply-adds alone would take."""

    card: Card
    seconds: dict[str, float]
    limit: str
    units: float
    peak: float


def bound_of(counts: KernelCounts, card: Card) -> Bound | None:
    """The estimate for one launch of the average size; None where nothing ran."""
    if not counts.groups:
        return None
    units = _working(counts.groups / counts.launches, card.units)
    clock = card.gigahertz * 1e9 * units * counts.launches
    clocks = _clocks(counts, card)
    seconds = {limit: number / clock for limit, number in clocks.items()}
    moved = (counts.read + counts.written) / counts.launches
    seconds[MEMORY_LIMIT] = moved / (card.bandwidth * 1e9)
    limit = max(seconds, key=lambda name: seconds[name])
    least = _multiply_clocks(counts, card) / (card.gigahertz * 1e9 * card.units * counts.launches)
    return Bound(card, seconds, limit, units, least / seconds[limit] if seconds[limit] else 0.0)


def _working(groups: float, units: int) -> float:
    """How many units work on average when groups come in rounds of one a unit."""
    rounds = -(-groups // units)
    return groups / rounds


def _clocks(counts: KernelCounts, card: Card) -> dict[str, float]:
    """Clocks of one compute unit, if it did all."""
    found = dict.fromkeys((VALU_LIMIT, MATRIX_LIMIT, SHARED_LIMIT, CACHE_LIMIT), 0.0)
    for one in counts.instructions:
        if one.kind in (FMA, VALU):
            found[VALU_LIMIT] += _vector_clocks(one, counts, card)
        elif one.kind == MFMA:
            found[MATRIX_LIMIT] += _matrix_clocks(one, card)
        elif one.kind == LDS:
            crossing = 0 if one.access else one.waves * _CROSSING_CLOCKS
            found[SHARED_LIMIT] += one.access.clocks if one.access else crossing
    moved = sum(one.access.transactions for one in counts.accesses("global") if one.access)
    found[CACHE_LIMIT] = moved * counts.segment / card.cache_bytes
    return found


def _vector_clocks(one: InstructionCounts, counts: KernelCounts, card: Card) -> float:
    name = one.instruction.mnemonic
    cost = _QUARTER_COST if _QUARTER.match(name) else 1.0
    if "_f64" in name:
        cost /= card.f64_rate
    return one.waves * counts.wave_lanes * cost / card.lanes


def _matrix_clocks(one: InstructionCounts, card: Card) -> float:
    rate = card.matrix.get(matrix_dtype(one.instruction.mnemonic), min(card.matrix.values()))
    return one.waves * fmas_of_wave(one.instruction) / rate


def _multiply_clocks(counts: KernelCounts, card: Card) -> float:
    """Clocks that multiply-adds alone take."""
    vectors = sum(_vector_clocks(o, counts, card) for o in counts.instructions if o.kind == FMA)
    matrices = sum(_matrix_clocks(one, card) for one in counts.instructions if one.kind == MFMA)
    return max(vectors, matrices)
