"""Happens-before between waves of different work-groups.

Each wave has a vector clock with one entry for each wave of the launch. A wave *releases* its
clock when it atomically updates a location of global memory. Another wave *acquires* that clock
when it updates or atomically reads the location and then invalidates its caches. At a barrier, the
waves of a group join their clocks.

Limit: vector clocks take at most `_MAX_BYTES` bytes. If a launch needs more, all clocks are
forgotten, and from then on different groups count as ordered (false negatives).
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.observers.hazards.vector_clocks import (
    GroupClocks,
    PendingAcquire,
    join,
)
from refcomp.emulator.observers.hazards.waits import Waits

_MAX_BYTES = 1 << 28
_ENTRY_BYTES = 128  # of a location or a pending acquire, without its arrays


class LaunchClocks:
    """The vector clocks of all waves, each over all waves of the launch.

    Waves are numbered across the launch. The owner of `clock` increments it after each release.
    Arrays are shared between entries and never changed in place.
    """

    def __init__(
        self,
        waits: Waits,
        clock: Array,
        barrier_clock: Array,
        group_clocks: GroupClocks,
        waves_per_group: int,
    ) -> None:
        self._waits = waits
        self.clock = clock  # int64 [waves]: the present of each wave
        self._barrier_clock = barrier_clock  # int64 [groups]: after the latest barrier
        self._group_clocks = group_clocks
        self._waves_per_group = waves_per_group
        self.has_overflowed = False
        self.clear()

    def clear(self) -> None:
        """Forget everything that was released and acquired."""
        # By wave.
        self._acquired: dict[int, Array] = {}
        # By offset in global memory.
        self._released: dict[int, Array] = {}
        # By wave: acquires that wait for an invalidation of the wave's caches.
        self._pending: dict[int, list[PendingAcquire]] = {}
        # By wave: its vector clock when it last wrote its caches back.
        self._written_back: dict[int, Array] = {}
        # An upper bound of `bytes_held`.
        self._bytes = 0

    def bytes_held(self) -> int:
        """Return the bytes that all vector clocks take; a shared array counts once."""
        acquires = [acquire for some in self._pending.values() for acquire in some]
        arrays = [
            *self._acquired.values(),
            *self._released.values(),
            *self._written_back.values(),
        ]
        for acquire in acquires:
            arrays += [acquire.clock, *acquire.flight.positions.values()]
        entries = len(acquires) + len(self._released)
        sizes: dict[int, int] = {id(array): array.nbytes for array in arrays}
        return entries * _ENTRY_BYTES + sum(sizes.values())

    def _add_bytes(self, count: int) -> None:
        """Count bytes that were added; overflow if there are too many."""
        self._bytes += count
        if self._bytes > _MAX_BYTES and not self.has_overflowed:
            self._bytes = self.bytes_held()
            # Half must be free, so that a full count pays for many additions.
            if self._bytes > _MAX_BYTES // 2:
                self.clear()
                self.has_overflowed = True

    def write_back(self, waves: Array) -> None:
        """Record that `waves` (int [n]) write their caches back."""
        for wave in waves.tolist():
            if not self.has_overflowed:
                self._written_back[wave] = self._vector_clock(wave)
                self._add_bytes(self._written_back[wave].nbytes)

    def _vector_clock(self, wave: int) -> Array:
        """Return everything that has happened before the present of `wave`."""
        clock = np.zeros(len(self.clock), np.int64)
        group = wave // self._waves_per_group
        own = slice(group * self._waves_per_group, (group + 1) * self._waves_per_group)
        in_group = self._group_clocks.vector_clock(wave)
        clock[own] = np.maximum(self._barrier_clock[group] - 1, in_group)
        return join(self._acquired.get(wave), clock)

    def synchronise(
        self,
        waves: Array,
        rows: Array,
        offsets: Array,
        *,
        releases: bool,
        needs_write_back: bool,
    ) -> None:
        """Record atomic accesses of global memory, in order.

        Args:
            waves: int [n], numbers of the waves in the launch.
            rows: int [n], numbers of the same waves in the batch.
            offsets: int [n], the bytes accessed.
            releases: True for updates, False for atomic reads.
            needs_write_back: True if a wave releases only what it has written back.
        """
        own_clocks: dict[int, Array | None] = {}
        accesses = zip(waves.tolist(), rows.tolist(), offsets.tolist(), strict=True)
        for wave, row, offset in accesses:
            if self.has_overflowed:
                return
            released = self._released.get(offset)
            if released is not None:
                self._acquire(wave, row, released)
            if not releases:
                continue
            if wave not in own_clocks:
                own_clocks[wave] = self._clock_to_release(wave, needs_write_back)
            own = own_clocks[wave]
            if own is None or own is released or self.has_overflowed:
                continue
            joined = join(released, own)
            self._released[offset] = joined
            self._add_bytes(_ENTRY_BYTES if released is None else joined.nbytes)

    def _clock_to_release(self, wave: int, needs_write_back: bool) -> Array | None:
        if needs_write_back:
            return self._written_back.get(wave)
        clock = self._vector_clock(wave)
        self._add_bytes(clock.nbytes)
        return clock

    def _acquire(self, wave: int, row: int, released: Array) -> None:
        flight = self._waits.latest
        assert flight is not None
        acquires = self._pending.setdefault(wave, [])
        last = acquires[-1] if acquires else None
        # A wave that polls a location acquires the same clock many times: once is enough.
        if (
            last is not None
            and last.clock is released
            and not last.is_pending(self._waits)
        ):
            return
        acquires.append(PendingAcquire(flight, row, released))
        self._add_bytes(
            _ENTRY_BYTES + sum(array.nbytes for array in flight.positions.values())
        )

    def invalidate_caches(self, waves: Array) -> None:
        """Record that `waves` (int [n]) invalidate all their caches.

        Acquires whose access has completed take effect; those in flight are void.
        """
        for wave in waves.tolist():
            for acquire in self._pending.pop(wave, ()):
                if self.has_overflowed or acquire.is_pending(self._waits):
                    continue
                known = self._acquired.get(wave)
                joined = join(known, acquire.clock)
                self._acquired[wave] = joined
                self._add_bytes(0 if known is None else joined.nbytes)

    def join_at_barrier(self, groups: Array) -> None:
        """Record that the waves of `groups` (int [n]) have passed a barrier."""
        if not self._acquired:
            return
        for group in groups.tolist():
            waves = range(
                group * self._waves_per_group, (group + 1) * self._waves_per_group
            )
            clocks = [self._acquired[wave] for wave in waves if wave in self._acquired]
            if clocks:
                joined: Array = np.maximum.reduce(clocks)
                self._acquired.update(dict.fromkeys(waves, joined))
                self._add_bytes(joined.nbytes)

    def happened_before(self, others: Array, times: Array, waves: Array) -> Array:
        """Return, as bool [n], where `others` at `times` happened before the present of `waves`."""
        if self.has_overflowed:
            groups = waves // self._waves_per_group
            is_other: Array = groups != others // self._waves_per_group
            return is_other
        found = np.zeros(waves.shape, np.bool_)
        if not self._acquired:
            return found
        for wave in np.unique(waves).tolist():
            known = self._acquired.get(wave)
            if known is not None:
                pairs = waves == wave
                found[pairs] = times[pairs] <= known[others[pairs]]
        return found
