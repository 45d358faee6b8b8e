"""Who read and wrote a piece of memory last: a stamp for each byte, or for each 4 bytes of it.

A stamp is an integer that tells the thread, when that was by the clock of its wave, and by which
instruction; 0 is none. `Stamps` keeps of each cell the last write, and of reads and of updates the
last and one of another wave, from another group where there was one: who is first to disagree with
any of all those that read is told of at least once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array

_THREAD_BITS, _CLOCK_BITS, _NUMBER_BITS = 27, 16, 19
_CLOCK_AT, _NUMBER_AT = _THREAD_BITS, _THREAD_BITS + _CLOCK_BITS
_LATE_AT = _NUMBER_AT + _NUMBER_BITS
_THREAD = (1 << _THREAD_BITS) - 1
_NUMBER = (1 << _NUMBER_BITS) - 1
MOST_THREADS = 1 << _THREAD_BITS
MOST_CLOCK = (1 << _CLOCK_BITS) - 1
WORD = 4
# Loads may reach a little further than memory (memory.py, Note [Loads]).
_BEYOND = 16


def make_stamps(
    thread: Array, clock: Array, number: int, *, is_late: Any = False
) -> Array:
    """`thread` of the launch, `clock` of its wave, `number` of the instruction; `is_late` says that
    it was not done when the clock before this one ended."""
    fixed = ((number + 1) & _NUMBER) << _NUMBER_AT
    late = np.asarray(is_late, np.int64) << _LATE_AT
    return thread | np.asarray(clock, np.int64) << _CLOCK_AT | fixed | late


def threads_of(stamps: Array) -> Array:
    return stamps & _THREAD


def clocks_of(stamps: Array) -> Array:
    return stamps >> _CLOCK_AT & MOST_CLOCK


def number_of(stamp: int) -> int:
    """The instruction's number."""
    return (stamp >> _NUMBER_AT & _NUMBER) - 1


def late_of(stamps: Array) -> Array:
    """1 where what a stamp tells of was not done, 0 elsewhere."""
    return stamps >> _LATE_AT


def is_late(stamp: int) -> bool:
    return bool(stamp >> _LATE_AT)


@dataclass(frozen=True, slots=True)
class Shape:
    """How threads are numbered: `lanes` to a wave, a power of two, and `per_group` waves to a
    group."""

    lanes: int
    per_group: int

    def waves_of(self, stamps: Array) -> Array:
        found: Array = threads_of(stamps) >> (self.lanes.bit_length() - 1)
        return found

    def groups_of(self, stamps: Array) -> Array:
        found: Array = self.waves_of(stamps) // self.per_group
        return found


class AccessedCells(NamedTuple):
    """The cells of memory that an access of several lanes is to. A tuple, since each access that
    is looked at makes one."""

    # Numbers of cells: those of the first lane, of the second, and so on.
    cells: Array
    # How many each lane has.
    per_lane: int


class Stamps:
    """Stamps of `size` bytes; `is_shared`: each of them is one group's alone."""

    def __init__(self, size: int, shape: Shape, *, is_shared: bool = False) -> None:
        self.shape, self._is_shared, self.unit = shape, is_shared, WORD
        self._cells = -(-(size + _BEYOND) // WORD)
        self._kept: dict[str, Array] = {}

    def cells(self, index: Array, size: int) -> AccessedCells:
        """The cells of `size` bytes at each index. Cells become bytes when an access does not begin
        and end with whole words."""
        if self.unit > 1 and (size % WORD or (index % WORD).any()):
            self._refine()
        count = max(1, size // self.unit)
        first = index // self.unit
        cells = first if count == 1 else (first[:, None] + np.arange(count)).reshape(-1)
        return AccessedCells(cells, count)

    def _refine(self) -> None:
        """From now on a cell is a byte."""
        for kind, words in self._kept.items():
            octets = self._kept[kind] = np.zeros(self._cells * WORD, np.int64)
            used = np.flatnonzero(words)
            octets.reshape(-1, WORD)[used] = words[used, None]
        self.unit = 1

    def kept(self, kind: str) -> Array | None:
        """All stamps of a kind (`write`, `read`, `other read`, ...); None: there are none yet."""
        return self._kept.get(kind)

    def _made(self, kind: str) -> Array:
        if kind not in self._kept:
            self._kept[kind] = np.zeros(self._cells * WORD // self.unit, np.int64)
        return self._kept[kind]

    def put(self, kind: str, cells: Array, stamps: Array) -> Array | None:
        """Stamps cells; of writes to one cell by several threads at once the last is kept. Returns
        what is kept of each then, where that is not the stamp given; None: everywhere it is."""
        kept = self._made(kind)
        before = None if kind == "write" else kept[cells]
        kept[cells] = stamps
        after = kept[cells]
        if before is not None:
            self._put_others(f"other {kind}", cells, stamps, before, after)
            return None
        return after if (after != stamps).any() else None

    def _put_others(
        self, kind: str, cells: Array, stamps: Array, before: Array, after: Array
    ) -> None:
        """Keeps one of another wave: of this access, else the last one before, else what was."""
        wave = self.shape.waves_of(after)
        is_new = (before != 0) & (self.shape.waves_of(before) != wave)
        is_several = bool((after != stamps).any())
        if not is_new.any() and not is_several:
            return
        kept = self._made(kind)
        old = kept[cells]
        chosen = np.where(is_new, before, old)
        if is_several:
            kept[cells[::-1]] = stamps[::-1]
            first = kept[cells]
            chosen = np.where(self.shape.waves_of(first) != wave, first, chosen)
        if self._is_shared:
            kept[cells] = chosen
            return
        group = self.shape.groups_of(after)
        is_far = (old != 0) & (self.shape.groups_of(old) != group)
        is_near = self.shape.groups_of(chosen) == group
        kept[cells] = np.where(is_far & is_near, old, chosen)

    def restamp(self, kind: str, cells: Array, old: Array, fresh: Array) -> None:
        """Has stamps be others, where they are still kept."""
        for name in (kind, f"other {kind}"):
            if (kept := self._kept.get(name)) is not None:
                same = kept[cells] == old
                kept[cells[same]] = fresh[same]

    def clear(self) -> None:
        """Forgets all."""
        self._kept.clear()
