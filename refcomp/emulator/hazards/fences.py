"""What waves know of the writes of waves of other groups.

Each wave has a clock, which ticks at barriers and where it tells others of what it did. An update
of memory tells all that the wave knows to whoever updates or atomically reads the same place later
and then drops its caches; at a barrier the waves of a group share what they know. Where so many
places are updated that this would take too much memory, all groups count as ordered from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.emulator.arrays import Array
from refcomp.emulator.hazards.waits import Flight, Waits

_MOST_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class _Read:
    """What a wave may know as soon as the access that read of it is done, and caches dropped."""

    flight: Flight
    row: int
    known: Array


class Fences:
    """`known[wave]`: up to which clock of each wave of the launch a wave knows what it did. All
    waves are numbered in the launch."""

    def __init__(self, waits: Waits, clock: Array, floor: Array, per_group: int) -> None:
        self._waits, self.clock, self.floor, self._per_group = waits, clock, floor, per_group
        self.known: dict[int, Array] = {}
        self._told: dict[int, Array] = {}
        self._read: dict[int, list[_Read]] = {}
        self._written_back: dict[int, Array] = {}
        self._joined = 0

    def write_back(self, numbers: Array) -> None:
        """These waves write their caches back: what they did and know may be told of."""
        for wave in map(int, numbers):
            self._written_back[wave] = self._own(wave)
        self.clock[numbers] += 1

    def _own(self, wave: int) -> Array:
        """What a wave can tell of now."""
        found = np.zeros(len(self.clock), np.int64)
        group = wave // self._per_group
        found[group * self._per_group : (group + 1) * self._per_group] = self.floor[group] - 1
        found[wave] = self.clock[wave]
        return found if wave not in self.known else np.maximum(found, self.known[wave])

    def meet(
        self, numbers: Array, rows: Array, places: Array, *, tells: bool, needs_write_back: bool
    ) -> None:
        """These waves update or atomically read places of memory, one after the other."""
        flight = self._waits.latest
        assert flight is not None
        shown = {}
        for wave in map(int, np.unique(numbers)) if tells else ():
            shown[wave] = self._written_back.get(wave) if needs_write_back else self._own(wave)
        for wave, row, place in zip(*(map(int, x) for x in (numbers, rows, places)), strict=True):
            told = self._told.get(place)
            if told is not None:
                self._read.setdefault(wave, []).append(_Read(flight, row, told))
            if (own := shown.get(wave)) is not None:
                self._told[place] = own if told is None else self._join(told, own)
        if tells:
            self.clock[np.unique(numbers)] += 1

    def _join(self, one: Array, other: Array) -> Array:
        if one is other or self._is_lost():
            return one
        self._joined += one.nbytes
        found: Array = np.maximum(one, other)
        return found

    def _is_lost(self) -> bool:
        """Whether this gave up to tell who knows what."""
        return self._joined > _MOST_BYTES

    def drop(self, numbers: Array) -> None:
        """These waves drop their caches: from now on they see what they read of."""
        for wave in map(int, numbers):
            for read in self._read.pop(wave, ()):
                if not read.flight.goes_on(self._waits.done)[read.row]:
                    self._learn(wave, read.known)

    def _learn(self, wave: int, known: Array) -> None:
        old = self.known.get(wave)
        self.known[wave] = known if old is None else np.maximum(old, known)

    def share(self, groups: Array) -> None:
        """The waves of these groups have met at a barrier."""
        for group in map(int, groups) if self.known else ():
            waves = range(group * self._per_group, (group + 1) * self._per_group)
            rows = [self.known[wave] for wave in waves if wave in self.known]
            if rows:
                joined = np.maximum.reduce(rows)
                self.known.update(dict.fromkeys(waves, joined))

    def is_known(self, own: Array, other: Array, clocks: Array) -> Array:
        """Whether waves `own` know what `other` waves did at `clocks`."""
        if self._is_lost():
            return own // self._per_group != other // self._per_group
        found = np.zeros(own.shape, np.bool_)
        for wave in map(int, np.unique(own)) if self.known else ():
            if (known := self.known.get(wave)) is not None:
                mine = own == wave
                found[mine] = clocks[mine] <= known[other[mine]]
        return found


def rows_of_lanes(waves: Any, active: Array | None) -> Array:
    """For each active lane, flat, the number of its wave in the batch."""
    row = np.arange(waves.waves)[waves.rows][:, None]
    found: Array = waves.pick(row, active)
    return found
