"""Accesses that may still be in flight when a barrier or a release is reached.

A barrier orders only accesses that have completed. An access that is still in flight gets a new
record, which is marked as *late*: it counts as made after the barrier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from refcomp.emulator.generations.wait_counters import OperationKind
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.observers.hazards.access_history import (
    AccessHistory,
    make_records,
    threads_of,
)
from refcomp.emulator.observers.hazards.access_types import AccessType
from refcomp.emulator.observers.hazards.waits import Flight, Waits

# The accesses are searched for completed ones after so many were added.
_STEP = 32
# Kinds of flights that stay in order in the cache that the waves of a group may share.
_ORDERED_KINDS = (
    OperationKind.LOAD,
    OperationKind.STORE,
    OperationKind.FLAT_LOAD,
    OperationKind.FLAT_STORE,
)


@dataclass(slots=True)
class OpenAccess:
    """An access that may still be in flight."""

    flight: Flight
    history: AccessHistory
    access_type: AccessType
    cells: Array  # int [n]
    rows: Array  # int [n]: numbers of the waves in the batch
    records: Array  # int64 [n]
    cell_bytes: int

    def split_cells(self) -> None:
        """Follow the history, whose cells may have become bytes."""
        count = self.cell_bytes // self.history.cell_bytes
        if count > 1:
            first = self.cells[:, None] * count
            self.cells = (first + np.arange(count)).reshape(-1)
            self.rows = np.repeat(self.rows, count)
            self.records = np.repeat(self.records, count)
            self.cell_bytes = self.history.cell_bytes

    def pending(self, waits: Waits) -> Array:
        """Return, as bool [waves], where the access may not have completed."""
        if self.history.is_shared:
            return self.flight.is_pending_in_shared(waits.done)
        return self.flight.is_pending(waits.done)


class OpenAccesses:
    """The accesses of a batch that may still be in flight.

    With `keeps_order`, a cache that the waves of a group share keeps their accesses in order.
    """

    def __init__(self, waits: Waits, clock: Array, *, keeps_order: bool) -> None:
        self._waits = waits
        self._clock = clock  # int64 [waves of the launch], the present of each wave
        self._keeps_order = keeps_order
        self.begin(first=0)

    def begin(self, first: int) -> None:
        """Begin a batch, whose first wave has the number `first` in the launch."""
        self._first = first
        self._limit = _STEP  # with more accesses, completed ones are dropped
        self.clear()

    def clear(self) -> None:
        """Forget all accesses."""
        self._accesses: list[OpenAccess] = []

    def add(self, access: OpenAccess) -> None:
        """Add an access that has just begun."""
        # Without a search now and then, a long loop without waits would collect all its accesses.
        if len(self._accesses) > self._limit:
            self.mark_late(np.zeros(0, np.intp))
            self._limit = len(self._accesses) + _STEP
        self._accesses.append(access)

    def direct_loads(self) -> Iterator[OpenAccess]:
        """Yield the loads from global to shared memory, except the latest access."""
        for access in self._accesses:
            is_direct = access.flight.effect.kind == OperationKind.DIRECT_LOAD
            is_latest = access.flight is self._waits.latest
            if is_direct and access.history.is_shared and not is_latest:
                yield access

    def mark_late(
        self, rows: Array, *, besides: Flight | None = None, is_in_group: bool = False
    ) -> None:
        """Move accesses of waves `rows` that are in flight to the present clock, marked as late.

        The flight `besides` is left alone. With `is_in_group`, only waves of the group see what
        comes next. For these, accesses that stay in order in a shared cache are not late. Completed
        accesses are dropped.
        """
        ordered_kinds = _ORDERED_KINDS if is_in_group and self._keeps_order else ()
        still_open = []
        for access in self._accesses:
            pending = access.pending(self._waits)
            if not pending.any():
                continue
            still_open.append(access)
            flight = access.flight
            is_ordered = flight.effect.kind in ordered_kinds
            if flight is besides or (is_ordered and not access.history.is_shared):
                continue
            access.split_cells()
            chosen = np.zeros_like(pending)
            chosen[rows] = pending[rows]
            late = chosen[access.rows]
            if late.any():
                self._mark(access, late)
        self._accesses = still_open

    def _mark(self, access: OpenAccess, late: Array) -> None:
        """Replace the records of an access where `late` (bool [n])."""
        old = access.records[late]
        clocks = self._clock[self._first + access.rows[late]]
        number = access.flight.instruction.number
        new = make_records(threads_of(old), clocks, number, is_late=True)
        access.records[late] = new
        access.history.replace(access.access_type, access.cells[late], old, new)
