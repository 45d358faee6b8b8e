"""A lower bound of the time of a launch on a card, for each resource that may limit it.

The bound is an estimate, which assumes:

- Each part of a compute unit always works at its peak rate.
- Compute units share the groups evenly, and SIMDs share the waves of a group.
- Memory transfers each segment that a launch touches only once.
- The L1 cache delivers one line a clock.

Real launches are slower. The resource with the largest bound is the first one to relieve.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from refcomp.emulator.observers.counting import KernelCounts
from refcomp.profile.amd_clocks import unit_clocks, unit_multiply_clocks
from refcomp.profile.cards import Card
from refcomp.profile.limit import OF_SIMDS, Limit
from refcomp.profile.multiprocessor import Multiprocessor
from refcomp.profile.nvidia_clocks import (
    multiprocessor_clocks,
    multiprocessor_multiply_clocks,
)


@dataclass(frozen=True, slots=True)
class Bound:
    """The estimate for one launch."""

    card: Card
    seconds: dict[Limit, float]  # the least time that each resource allows
    limit: Limit  # the resource with the most seconds
    units: float  # compute units that work, on average
    simds: float  # SIMDs that work, on average
    # From 0 to 1: the time of the multiply-adds alone on the working SIMDs, as a part of the
    # estimated time.
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
    seconds: dict[Limit, float] = {}
    for resource, clocks in _clocks(counts, card).items():
        # Arithmetic is limited by the working SIMDs, all other resources by the working units.
        busy = simds / card.unit.simds if resource in OF_SIMDS else units
        seconds[resource] = clocks / (hertz * busy)
    moved = (counts.read + counts.written) / counts.launches
    seconds[Limit.MEMORY] = moved / (card.bandwidth * 1e9)
    limit = max(seconds, key=lambda name: seconds[name])
    multiplying = _multiply_clocks(counts, card) / hertz
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
    """Return the numbers of compute units and of SIMDs that work on average.

    Groups run in rounds. In a round each place takes one group. A place is a unit, or a pair of
    units if a group is spread over a pair.
    """
    units_of_place = 2 if counts.is_on_pairs else 1
    groups = counts.groups / counts.launches
    rounds = ceil(groups / (card.units // units_of_place))
    waves = max(1.0, counts.waves / counts.groups)
    simds_of_place = units_of_place * card.unit.simds
    wave_rounds = ceil(rounds * waves / simds_of_place)
    return units_of_place * groups / rounds, groups * waves / wave_rounds


def _clocks(counts: KernelCounts, card: Card) -> dict[Limit, float]:
    """Return the clocks that one unit would take for everything but memory."""
    if isinstance(card.unit, Multiprocessor):
        return multiprocessor_clocks(counts, card.unit, card.tensor_clock)
    return unit_clocks(counts, card.unit)


def _multiply_clocks(counts: KernelCounts, card: Card) -> float:
    """Return the clocks that multiply-adds alone take."""
    if isinstance(card.unit, Multiprocessor):
        return multiprocessor_multiply_clocks(counts, card.unit, card.tensor_clock)
    return unit_multiply_clocks(counts, card.unit)
