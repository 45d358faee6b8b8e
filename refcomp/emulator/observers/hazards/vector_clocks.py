"""Happens-before between waves of one work-group that atomics establish, not barriers.

A wave that atomically updates a location *releases* everything it has done so far. A wave of the
same group that later updates or atomically reads that location *acquires* it. So the last wave to
increment a counter may go on alone and read what the others wrote. This is a common pattern, and
not a race.

Two limits. Only atomics of single lanes synchronise: when many lanes update memory at once, they
count something. And a group needs no write-back. A wave has to invalidate its cache only on GPUs
where the waves of a group run on units with separate caches (see `memory_order.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.observation import AddressSpace
from refcomp.emulator.observers.hazards.waits import Flight, Waits


@dataclass(frozen=True, slots=True)
class PendingAcquire:
    """An acquire, which takes effect when its memory access completes."""

    flight: Flight  # the access
    row: int  # number of the wave in the batch
    clock: Array  # the vector clock released at the location

    def is_pending(self, waits: Waits) -> bool:
        """Return True if the access may not have completed."""
        return bool(self.flight.is_pending(waits.done)[self.row])


class _Location(NamedTuple):
    """Memory that waves of one group synchronise on. A tuple: each update looks it up."""

    space: AddressSpace
    group: int  # number of the group in the launch
    offset: int  # bytes from where the space begins


class GroupClocks:
    """The vector clocks of all waves, each over the waves of its group.

    A vector clock has one entry for each wave of the group: all events of that wave up to the
    entry have happened before. Waves are numbered across the launch.
    """

    def __init__(self, waits: Waits, launch_clock: Array, waves_per_group: int) -> None:
        self._waits = waits
        self._launch_clock = launch_clock  # int64 [waves]: the present of each wave
        self._waves_per_group = waves_per_group
        self.clear()

    def clear(self) -> None:
        """Forget everything that was released and acquired."""
        # By wave.
        self._acquired: dict[int, Array] = {}
        # By wave: what it had acquired when it last invalidated its cache.
        self._valid: dict[int, Array] = {}
        self._released: dict[_Location, Array] = {}
        # By wave: acquires that may not have completed.
        self._pending: dict[int, list[PendingAcquire]] = {}

    def synchronise(
        self,
        space: AddressSpace,
        waves: Array,
        rows: Array,
        offsets: Array,
        *,
        releases: bool,
    ) -> None:
        """Record one atomic access of each wave, in order.

        Args:
            space: "global" or "shared".
            waves: int [n], numbers of the waves in the launch.
            rows: int [n], numbers of the same waves in the batch.
            offsets: int [n], the bytes that each wave accesses.
            releases: True for updates, False for atomic reads.
        """
        flight = self._waits.latest
        assert flight is not None
        accesses = zip(waves.tolist(), rows.tolist(), offsets.tolist(), strict=True)
        for wave, row, offset in accesses:
            location = _Location(space, wave // self._waves_per_group, offset)
            released = self._released.get(location)
            if released is not None:
                # Complete earlier acquires first, so that few are pending.
                self._complete_acquires(wave)
                acquires = self._pending.setdefault(wave, [])
                acquires.append(PendingAcquire(flight, row, released))
            if releases:
                self._released[location] = join(released, self.vector_clock(wave))

    def vector_clock(self, wave: int) -> Array:
        """Return what `wave` releases: its own present, and everything it has acquired."""
        self._complete_acquires(wave)
        clock = np.zeros(self._waves_per_group, np.int64)
        clock[wave % self._waves_per_group] = self._launch_clock[wave]
        return join(self._acquired.get(wave), clock)

    def invalidate_cache(self, waves: Array) -> None:
        """Record that `waves` (int [n]) invalidate the cache of their unit."""
        if not self._released:
            return
        for wave in waves.tolist():
            self._complete_acquires(wave)
            if wave in self._acquired:
                self._valid[wave] = self._acquired[wave]

    def happened_before(
        self, others: Array, times: Array, waves: Array, *, through_cache: bool = False
    ) -> Array:
        """Return, as bool [n], where `others` at `times` happened before the present of `waves`.

        With `through_cache`, the wave must also have invalidated its cache since it acquired.
        """
        found = np.zeros(waves.shape, np.bool_)
        if not self._released:
            return found
        known_by_wave = self._valid if through_cache else self._acquired
        for wave in np.unique(waves).tolist():
            self._complete_acquires(wave)
            known = known_by_wave.get(wave)
            if known is None:
                continue
            same_group = (
                others // self._waves_per_group == wave // self._waves_per_group
            )
            pairs = (waves == wave) & same_group
            found[pairs] = times[pairs] <= known[others[pairs] % self._waves_per_group]
        return found

    def _complete_acquires(self, wave: int) -> None:
        """Apply the acquires of `wave` whose access has completed."""
        pending = []
        for acquire in self._pending.pop(wave, ()):
            if acquire.is_pending(self._waits):
                pending.append(acquire)
            else:
                self._acquired[wave] = join(self._acquired.get(wave), acquire.clock)
        if pending:
            self._pending[wave] = pending


def join(first: Array | None, second: Array) -> Array:
    """Return the least upper bound of two vector clocks. None is the clock of no events."""
    if first is None:
        return second
    return np.maximum(first, second)
