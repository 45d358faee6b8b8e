"""What waves know of the writes of waves of other groups.

Each wave has a clock, which ticks at barriers and where it tells others of what it did. An update
of memory tells all that the wave knows to whoever updates or atomically reads the same place later
and then drops its caches; at a barrier the waves of a group share what they know. Where so many
places are updated that all this would take too much memory, all groups count as ordered afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.observers.hazards.turns import PendingRead, Turns
from refcomp.emulator.observers.hazards.waits import Waits

_MOST_BYTES = 1 << 28
# Of a place that tells or a read, besides its arrays.
_ENTRY_BYTES = 128


class Fences:
    """`known[wave]`: up to which clock of each wave of the launch a wave knows what it did. All
    waves are numbered in the launch; whoever moves `clock` lets it tick after what tells."""

    def __init__(
        self, waits: Waits, clock: Array, floor: Array, turns: Turns, per_group: int
    ) -> None:
        self._waits, self.clock, self.floor, self._per_group = (
            waits,
            clock,
            floor,
            per_group,
        )
        self._turns = turns
        self.is_lost, self._bytes = False, 0
        self.clear()

    def clear(self) -> None:
        """Forgets who knows what, as when the clocks begin anew."""
        self.known: dict[int, Array] = {}
        self._told: dict[int, Array] = {}
        self._read: dict[int, list[PendingRead]] = {}
        self._written_back: dict[int, Array] = {}
        self._bytes = 0

    def bytes_held(self) -> int:
        """Memory that all this takes; an array counts once."""
        reads = [read for some in self._read.values() for read in some]
        arrays = [
            *self.known.values(),
            *self._told.values(),
            *self._written_back.values(),
        ]
        for read in reads:
            arrays += [read.known, *read.flight.places.values()]
        entries = len(reads) + len(self._told)
        sizes: dict[int, int] = {id(one): one.nbytes for one in arrays}
        return entries * _ENTRY_BYTES + sum(sizes.values())

    def _count(self, more: int) -> None:
        """This much was added; what went away is seen only where it would be too much."""
        self._bytes += more
        if self._bytes > _MOST_BYTES and not self.is_lost:
            self._bytes = self.bytes_held()
            # Half of it must be free, so that few additions pay for counting all.
            if self._bytes > _MOST_BYTES // 2:
                self.clear()
                self.is_lost = True

    def write_back(self, numbers: Array) -> None:
        """These waves write their caches back: what they did and know may be told of."""
        for wave in map(int, numbers):
            if not self.is_lost:
                self._written_back[wave] = self._own(wave)
                self._count(self._written_back[wave].nbytes)

    def _own(self, wave: int) -> Array:
        """What a wave can tell of now."""
        found = np.zeros(len(self.clock), np.int64)
        group = wave // self._per_group
        mates = slice(group * self._per_group, (group + 1) * self._per_group)
        found[mates] = np.maximum(self.floor[group] - 1, self._turns.own(wave))
        return found if wave not in self.known else np.maximum(found, self.known[wave])

    def meet(
        self,
        numbers: Array,
        rows: Array,
        places: Array,
        *,
        tells: bool,
        needs_write_back: bool,
    ) -> None:
        """These waves update or atomically read places of memory, one after the other."""
        shown: dict[int, Array | None] = {}
        for wave, row, place in zip(
            *(map(int, x) for x in (numbers, rows, places)), strict=True
        ):
            if self.is_lost:
                return
            told = self._told.get(place)
            if told is not None:
                self._put_read(wave, row, told)
            if not tells:
                continue
            if wave not in shown:
                shown[wave] = self._shown(wave, needs_write_back)
            if (own := shown[wave]) is not None:
                self._tell(place, told, own)

    def _shown(self, wave: int, needs_write_back: bool) -> Array | None:
        """What a wave tells of by an update, if it tells of anything."""
        if needs_write_back:
            return self._written_back.get(wave)
        found = self._own(wave)
        self._count(found.nbytes)
        return found

    def _put_read(self, wave: int, row: int, told: Array) -> None:
        flight, reads = self._waits.latest, self._read.setdefault(wave, [])
        assert flight is not None
        last = reads[-1] if reads else None
        if last is not None and last.known is told and not self._goes_on(last):
            return  # A wave that looks again and again learns it but once.
        reads.append(PendingRead(flight, row, told))
        self._count(
            _ENTRY_BYTES + sum(place.nbytes for place in flight.places.values())
        )

    def _goes_on(self, read: PendingRead) -> bool:
        return bool(read.flight.goes_on(self._waits.done)[read.row])

    def _tell(self, place: int, told: Array | None, own: Array) -> None:
        if told is own or self.is_lost:
            return
        found = self._told[place] = own if told is None else np.maximum(told, own)
        self._count(_ENTRY_BYTES if told is None else found.nbytes)

    def drop(self, numbers: Array) -> None:
        """These waves drop their caches: from now on they see what they read of."""
        for wave in map(int, numbers):
            for read in self._read.pop(wave, ()):
                if not self._goes_on(read):
                    self._learn(wave, read.known)

    def _learn(self, wave: int, known: Array) -> None:
        if self.is_lost:
            return
        old = self.known.get(wave)
        found = self.known[wave] = known if old is None else np.maximum(old, known)
        self._count(0 if old is None else found.nbytes)

    def share(self, groups: Array) -> None:
        """The waves of these groups have met at a barrier."""
        for group in map(int, groups) if self.known else ():
            waves = range(group * self._per_group, (group + 1) * self._per_group)
            rows = [self.known[wave] for wave in waves if wave in self.known]
            if rows:
                joined = np.maximum.reduce(rows)
                self.known.update(dict.fromkeys(waves, joined))
                self._count(joined.nbytes)

    def is_known(self, own: Array, other: Array, clocks: Array) -> Array:
        """Whether waves `own` know what `other` waves did at `clocks`."""
        if self.is_lost:
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
