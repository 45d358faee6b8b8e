"""What waves of one group know of each other without a barrier: whoever updates a place tells those
who update or atomically read it later.

So the last wave of a group that is done may go on alone. Nothing is to be written back for that,
and caches are to be dropped only where a group's waves have several (memory_order.py). Only what
single lanes do counts: where many lanes update memory at once they count something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.observers.hazards.waits import Flight, Waits


@dataclass(frozen=True, slots=True)
class PendingRead:
    """What a wave knows as soon as the access that read of it is done."""

    flight: Flight
    row: int
    known: Array


class _TellingPlace(NamedTuple):
    """Memory by which waves of a group tell each other. A tuple, since each update looks it up."""

    # "global" or "shared".
    space: str
    # Number of the group in the launch.
    group: int
    # Offset in the memory, in bytes.
    offset: int


class Turns:
    """Waves are numbered in the launch. What a wave knows is a clock of each wave of its group, up
    to which it knows what that one did; `clock` are those of all waves of the launch."""

    def __init__(self, waits: Waits, clock: Array, per_group: int) -> None:
        self._waits, self._clock, self._per_group = waits, clock, per_group
        self.clear()

    def clear(self) -> None:
        """Forgets who knows what."""
        self._known: dict[int, Array] = {}
        self._fresh: dict[int, Array] = {}
        self._told: dict[_TellingPlace, Array] = {}
        self._read: dict[int, list[PendingRead]] = {}

    def meet(
        self, space: str, numbers: Array, rows: Array, places: Array, *, tells: bool
    ) -> None:
        """These waves update or atomically read a place each, one after the other."""
        flight = self._waits.latest
        assert flight is not None
        for wave, row, place in zip(
            *(map(int, x) for x in (numbers, rows, places)), strict=True
        ):
            key = _TellingPlace(space, wave // self._per_group, place)
            told = self._told.get(key)
            if told is not None:
                self._learn(wave)
                self._read.setdefault(wave, []).append(PendingRead(flight, row, told))
            if tells:
                own = self.own(wave)
                self._told[key] = own if told is None else np.maximum(told, own)

    def own(self, wave: int) -> Array:
        """What a wave can tell of its group: what it did, and what it knows."""
        self._learn(wave)
        found = np.zeros(self._per_group, np.int64)
        found[wave % self._per_group] = self._clock[wave]
        known = self._known.get(wave)
        return found if known is None else np.maximum(found, known)

    def _learn(self, wave: int) -> None:
        waiting = []
        for read in self._read.pop(wave, ()):
            if read.flight.goes_on(self._waits.done)[read.row]:
                waiting.append(read)
            else:
                old = self._known.get(wave)
                self._known[wave] = (
                    read.known if old is None else np.maximum(old, read.known)
                )
        if waiting:
            self._read[wave] = waiting

    def drop_own(self, numbers: Array) -> None:
        """These waves drop what their unit's cache has."""
        for wave in map(int, numbers) if self._told else ():
            self._learn(wave)
            if wave in self._known:
                self._fresh[wave] = self._known[wave]

    def is_known(
        self, own: Array, other: Array, clocks: Array, *, must_be_fresh: bool = False
    ) -> Array:
        """Whether waves `own` know what `other` waves did at `clocks`. `must_be_fresh`: and have
        dropped their caches since."""
        found = np.zeros(own.shape, np.bool_)
        for wave in map(int, np.unique(own)) if self._told else ():
            self._learn(wave)
            known = (self._fresh if must_be_fresh else self._known).get(wave)
            if known is not None:
                mine = (own == wave) & (
                    other // self._per_group == wave // self._per_group
                )
                found[mine] = clocks[mine] <= known[other[mine] % self._per_group]
        return found
