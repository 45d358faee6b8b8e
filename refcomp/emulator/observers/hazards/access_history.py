"""The latest accesses to each cell of memory, as int64 records.

A cell has 4 bytes, or 1 byte as soon as an access does not consist of whole words. For each type
of access, a cell keeps a record of the latest access. For all types but plain writes it keeps a
second record, of another wave, and of another group if there was one. So an access that conflicts
with any of many earlier accesses is reported at least once.

A record packs who made an access, and when. The record 0 stands for no access.

    bits  0 to 26    number of the thread in the launch
    bits 27 to 42    clock of its wave
    bits 43 to 61    number of the instruction, plus 1
    bit  62          the access was in flight when the wave's previous clock ended: it is late
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.observers.hazards.access_types import AccessType

_THREAD_BITS = 27
_CLOCK_BITS = 16
_NUMBER_BITS = 19
_CLOCK_SHIFT = _THREAD_BITS
_NUMBER_SHIFT = _CLOCK_SHIFT + _CLOCK_BITS
_LATE_SHIFT = _NUMBER_SHIFT + _NUMBER_BITS
_THREAD_MASK = (1 << _THREAD_BITS) - 1
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
MAX_THREADS = 1 << _THREAD_BITS
MAX_CLOCK = (1 << _CLOCK_BITS) - 1
_WORD = 4  # bytes
# Loads may read a few bytes behind the end of memory (machine/memory.py, Note [Loads]).
_BYTES_BEHIND = 16


def make_records(
    threads: Array, clocks: Array, number: int, *, is_late: Array | bool = False
) -> Array:
    """Return the records of accesses.

    Args:
        threads: int64 [n], numbers of the threads in the launch.
        clocks: int64 [n], clocks of their waves.
        number: of the instruction.
        is_late: bool or bool [n], see bit 62.
    """
    instruction = ((number + 1) & _NUMBER_MASK) << _NUMBER_SHIFT
    late = np.asarray(is_late, np.int64) << _LATE_SHIFT
    clock = np.asarray(clocks, np.int64) << _CLOCK_SHIFT
    records: Array = threads | clock | instruction | late
    return records


def threads_of(records: Array) -> Array:
    return records & _THREAD_MASK


def clocks_of(records: Array) -> Array:
    return records >> _CLOCK_SHIFT & MAX_CLOCK


def number_of(record: int) -> int:
    """Return the number of the instruction."""
    return (record >> _NUMBER_SHIFT & _NUMBER_MASK) - 1


def lateness_of(records: Array) -> Array:
    """Return 1 where a record is late, else 0."""
    return records >> _LATE_SHIFT


@dataclass(frozen=True, slots=True)
class WaveNumbering:
    """The numbering of the threads and waves of a launch: group by group."""

    lanes: int  # of a wave, a power of two
    waves_per_group: int

    def waves_of(self, records: Array) -> Array:
        """Return the numbers of the waves in the launch."""
        return threads_of(records) >> (self.lanes.bit_length() - 1)

    def groups_of(self, records: Array) -> Array:
        """Return the numbers of the groups in the launch."""
        return self.waves_of(records) // self.waves_per_group


class AccessedCells(NamedTuple):
    """The cells that the lanes of an access touch. A tuple: each checked access makes one."""

    cells: Array  # int [lanes * per_lane]: cells of the first lane, of the second, and so on
    per_lane: int


class AccessHistory:
    """The latest records of each cell of a memory of `size` bytes.

    With `is_shared`, each cell belongs to one group: then all accesses are of the same group.
    """

    def __init__(
        self, size: int, numbering: WaveNumbering, *, is_shared: bool = False
    ) -> None:
        self._numbering = numbering
        self.is_shared = is_shared
        self._words = -(-(size + _BYTES_BEHIND) // _WORD)
        self.cell_bytes = _WORD
        # int64 [cells] by type: the latest record, and a second one of another wave.
        self._latest: dict[AccessType, Array] = {}
        self._second: dict[AccessType, Array] = {}

    def cells(self, index: Array, size: int) -> AccessedCells:
        """Return the cells of `size` bytes at each offset of `index` (int [lanes]).

        From the first access on that does not consist of whole words, cells are bytes.
        """
        if self.cell_bytes > 1 and (size % _WORD or (index % _WORD).any()):
            self._split_cells()
        per_lane = max(1, size // self.cell_bytes)
        first = index // self.cell_bytes
        if per_lane == 1:
            return AccessedCells(first, 1)
        return AccessedCells(
            (first[:, None] + np.arange(per_lane)).reshape(-1), per_lane
        )

    def _split_cells(self) -> None:
        """Make each cell a byte."""
        for table in (self._latest, self._second):
            for access_type, words in table.items():
                octets = np.zeros(self._words * _WORD, np.int64)
                used = np.flatnonzero(words)
                octets.reshape(-1, _WORD)[used] = words[used, None]
                table[access_type] = octets
        self.cell_bytes = 1

    def latest(self, access_type: AccessType) -> Array | None:
        """Return the latest record of each cell, int64 [cells]; None if there are none."""
        return self._latest.get(access_type)

    def second(self, access_type: AccessType) -> Array | None:
        """Return a record of another wave than `latest` for each cell; None if there are none."""
        return self._second.get(access_type)

    def _table(self, tables: dict[AccessType, Array], access_type: AccessType) -> Array:
        if access_type not in tables:
            tables[access_type] = np.zeros(
                self._words * _WORD // self.cell_bytes, np.int64
            )
        return tables[access_type]

    def add(
        self, access_type: AccessType, cells: Array, records: Array
    ) -> Array | None:
        """Add an access: one record for each of `cells` (int [n]).

        Returns:
            For plain writes, if several threads write the same cell: the records that were kept
            (int64 [n]), those of the last threads. Else None.
        """
        latest = self._table(self._latest, access_type)
        if access_type == AccessType.WRITE:
            latest[cells] = records
            kept = latest[cells]
            return kept if (kept != records).any() else None
        before = latest[cells]
        latest[cells] = records
        self._add_second(access_type, cells, records, before, after=latest[cells])
        return None

    def _add_second(
        self,
        access_type: AccessType,
        cells: Array,
        records: Array,
        before: Array,
        after: Array,
    ) -> None:
        """Choose the second record: of this access, else the one before, else the one kept."""
        waves = self._numbering.waves_of(after)
        is_new = (before != 0) & (self._numbering.waves_of(before) != waves)
        has_several = bool((after != records).any())
        if not is_new.any() and not has_several:
            return
        second = self._table(self._second, access_type)
        old = second[cells]
        chosen = np.where(is_new, before, old)
        if has_several:
            # Stored in reverse, the first thread of each cell is kept.
            second[cells[::-1]] = records[::-1]
            first = second[cells]
            chosen = np.where(self._numbering.waves_of(first) != waves, first, chosen)
        if not self.is_shared:
            groups = self._numbering.groups_of(after)
            is_far = (old != 0) & (self._numbering.groups_of(old) != groups)
            is_near = self._numbering.groups_of(chosen) == groups
            chosen = np.where(is_far & is_near, old, chosen)
        second[cells] = chosen

    def replace(
        self, access_type: AccessType, cells: Array, old: Array, new: Array
    ) -> None:
        """Replace the records `old` of `cells` by `new` where they are still kept (all [n])."""
        for tables in (self._latest, self._second):
            table = tables.get(access_type)
            if table is not None:
                is_kept = table[cells] == old
                table[cells[is_kept]] = new[is_kept]

    def clear(self) -> None:
        """Forget all accesses."""
        self._latest.clear()
        self._second.clear()
