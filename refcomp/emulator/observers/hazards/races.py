"""Accesses of two threads to the same bytes, of which one writes, with nothing that orders them.

Within a group barriers order what was done before them: done, not only begun, so that a wait that
is missing before a barrier is found here. Without one, waves know of each other's accesses only by
updates of memory: those of a group by turns.py, others by fences.py. Updates never race with each
other, and launches follow one another. A wave's own accesses are in order, but not those of its
lanes by one instruction, even if all write the same.
Errs on two sides. Told of, though right: waves that tell each other by atomic loads and stores of
shared memory, which look like others in machine code, or by what many lanes at once store (not on
gfx942) or update in a group; and loads that a compiler does early, for lanes that turn out not to
need them, while a lane of another wave writes there. Not told of: groups whose order one run shows
to be safe, though another run may have them in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from refcomp.emulator.code.assembly import Assembly, Instruction
from refcomp.emulator.code.findings import RACE, WAIT
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.observation import Access, Observer
from refcomp.emulator.observers.hazards.fences import Fences, rows_of_lanes
from refcomp.emulator.observers.hazards.stamps import (
    MOST_CLOCK,
    MOST_THREADS,
    Shape,
    Stamps,
    clocks_of,
    is_late,
    late_of,
    make_stamps,
    number_of,
    threads_of,
)
from refcomp.emulator.observers.hazards.turns import Turns
from refcomp.emulator.observers.hazards.waits import Flight, Waits
from refcomp.emulator.observers.hazards.whereabouts import lanes_of, place_of, thread_of
from refcomp.foundation.errors import Unsupported

# What an access must be ordered with: `update` changes memory so that nobody interrupts, `watch` is
# an atomic load, `exchange` an update that looks first whether what a load gave is still there, of
# which LLVM makes updates that a GPU does not have.
_AGAINST = {
    "read": ("write", "update"),
    "watch": ("write",),
    "exchange": ("write",),
    "update": ("write", "read"),
    "write": ("write", "read", "update", "watch", "exchange"),
}
# Atomic accesses that only a wave's own group is sure to see in order, as `near watch`: what they
# count as there, and what they count as for other groups.
_NEAR = {"near watch": ("watch", "read"), "near update": ("update", "write")}
_DOES = {"read": "reads", "watch": "reads", "write": "writes"}
_DOES |= {"update": "updates", "exchange": "updates", "near watch": "reads"}
_DOES |= {"near update": "writes"}
_DID = {"read": "read", "watch": "read", "write": "wrote"}
_DID |= {"update": "updated", "exchange": "updated", "near watch": "read"}
_DID |= {"near update": "wrote"}
_TELLS = ("update", "exchange")
_TELLS_GROUP = (*_TELLS, "near update")
_MEETS_GROUP = (*_TELLS_GROUP, "watch", "near watch")
_MORE_CARRIED = 32
# Kinds of flights that go through the cache that a group's waves may share.
_IN_ORDER = ("load", "store", "flat load", "flat store")


class _Conflict(NamedTuple):
    """Stamps that an access must be ordered with."""

    kind: str
    # Those of other groups alone.
    is_of_others: bool


def _conflicts(kind: str) -> list[_Conflict]:
    found = []
    near, far = _NEAR.get(kind, (kind, kind))
    for other in (*_AGAINST, *_NEAR):
        there, beyond = _NEAR.get(other, (other, other))
        if beyond in _AGAINST[far]:
            names = (other,) if other == "write" else (other, f"other {other}")
            found += [_Conflict(name, there not in _AGAINST[near]) for name in names]
    return found


_CONFLICTS = {kind: _conflicts(kind) for kind in (*_AGAINST, *_NEAR)}


@dataclass(slots=True)
class _Carried:
    """Stamps of an access that may go on after the next barrier, in cells of `unit` bytes."""

    flight: Flight
    memory: Stamps
    kind: str
    cells: Array
    rows: Array
    own: Array
    unit: int

    def refine(self) -> None:
        """Follows the memory, whose cells may have become bytes."""
        count = self.unit // self.memory.unit
        if count > 1:
            first = self.cells[:, None] * count
            self.cells = (first + np.arange(count)).reshape(-1)
            self.rows, self.own = (
                np.repeat(self.rows, count),
                np.repeat(self.own, count),
            )
            self.unit = self.memory.unit


@dataclass(frozen=True, slots=True)
class _Made:
    """An access that is looked at: `own` has `count` stamps for each of its lanes."""

    waves: Any
    access: Access
    count: int
    kind: str
    own: Array


class Races(Observer):
    """`waits`, which sees all before this does, says what is done."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._mnemonics: WeakKeyDictionary[Assembly, set[str]] = WeakKeyDictionary()

    def launched(self, loaded: Any, request: Any) -> None:
        kernel = loaded.kernel(request.kernel)
        lanes = loaded.generation.lanes(kernel.descriptor)
        self._order = loaded.generation.order
        self._keeps_order = self._order.keeps_order(kernel.descriptor)
        self._has_stale_reads = self._order.has_stale_reads(kernel.descriptor)
        per_group = -(-prod(request.block) // lanes)
        self._shape, groups = Shape(lanes, per_group), prod(request.grid)
        _check_launch(
            groups * per_group * lanes, self._order.is_split(kernel.descriptor)
        )
        self._grid, self._block = request.grid, request.block
        self._clock = np.ones(groups * per_group, np.int64)
        self._floor = np.ones(groups, np.int64)
        # What came before this is not in a wave's own cache; whether it dropped those around it.
        self._dropped = np.zeros(groups * per_group, np.int64)
        self._is_half_dropped = np.zeros(groups * per_group, np.bool_)
        self._turns = Turns(self._waits, self._clock, per_group)
        self._fences = Fences(
            self._waits, self._clock, self._floor, self._turns, per_group
        )
        self._assembly = loaded.program(kernel).assembly
        if self._assembly not in self._mnemonics:
            self._mnemonics[self._assembly] = _mnemonics(self._assembly)
        names = self._mnemonics[self._assembly]
        self._has_drops = self._order.drops.mnemonic in names
        self._drops_scalars = "s_dcache_inv" in names
        self._global = Stamps(loaded.arena.extent(), self._shape)
        self._first = 0

    def began(self, waves: Any) -> None:
        self._shared = Stamps(len(waves.shared.data), self._shape, is_shared=True)
        self._carried: list[_Carried] = []
        self._room = _MORE_CARRIED
        self._turns.clear()

    def ended(self, waves: Any) -> None:
        self._first += waves.waves
        self._carried = []

    # What orders accesses.

    def _numbers(self, waves: Any) -> Array:
        """The waves that run, numbered in the launch."""
        return self._first + np.arange(waves.waves)[waves.rows]

    def instruction(self, waves: Any, instruction: Instruction) -> None:
        if not (self._has_drops or self._has_stale_reads):
            return
        if self._order.is_write_back(instruction):
            self._fences.write_back(self._numbers(waves))
            self._tick(self._numbers(waves))
        elif self._order.is_drop(instruction):
            self._drop(self._numbers(waves))
        elif self._order.is_drop_of_own(instruction):
            self._drop_own(self._numbers(waves))

    def _drop(self, numbers: Array) -> None:
        """These waves drop all caches but, where there is one, their unit's own."""
        if self._order.drops_own is None:
            self._fences.drop(numbers)
        else:
            self._is_half_dropped[numbers] = True

    def _drop_own(self, numbers: Array) -> None:
        """They drop that, too: no longer is there what was before their last barrier."""
        self._dropped[numbers] = self._floor[numbers // self._shape.per_group]
        self._turns.drop_own(numbers)
        self._fences.drop(numbers[self._is_half_dropped[numbers]])
        self._is_half_dropped[numbers] = False

    def barrier(self, waves: Any, rows: Array) -> None:
        per_group = self._shape.per_group
        groups = np.unique((self._first + rows) // per_group)
        clock = self._clock.reshape(-1, per_group)
        clock[groups] = clock[groups].max(axis=1, keepdims=True) + 1
        self._floor[groups] = clock[groups, 0]
        self._begin_anew(self._floor[groups])
        self._fences.share(groups)
        self._carry(rows, is_in_group=True)

    def _tick(self, numbers: Array) -> None:
        """The clocks of these waves go on, after they told of what they did until now."""
        self._clock[numbers] += 1
        self._begin_anew(self._clock[numbers])

    def _begin_anew(self, clocks: Array) -> None:
        """Where one of these clocks is full, all begin anew, and with them all that is known."""
        if clocks.max(initial=0) < MOST_CLOCK:
            return
        self._clock[:], self._floor[:], self._dropped[:] = 1, 1, 0
        self._carried = []
        self._fences.clear()
        self._turns.clear()
        for memory in (self._global, self._shared):
            memory.clear()

    def _carry(
        self, rows: Array, *, besides: Flight | None = None, is_in_group: bool = False
    ) -> None:
        """What these waves did before and is not done counts as done later."""
        keeps_order = _IN_ORDER if is_in_group and self._keeps_order else ()
        kept = []
        for one in self._carried:
            goes_on = self._goes_on(one)
            if not goes_on.any():
                continue
            kept.append(one)
            is_in_order = one.memory is self._global and one.flight.kind in keeps_order
            if one.flight is besides or is_in_order:
                continue
            one.refine()
            chosen = np.zeros_like(goes_on)
            chosen[rows] = goes_on[rows]
            late = chosen[one.rows]
            if late.any():
                self._restamp(one, late)
        self._carried = kept

    def _goes_on(self, one: _Carried) -> Array:
        """In which waves an access may not be done, but for its result."""
        if one.memory is self._shared:
            return one.flight.goes_on_in_shared(self._waits.done)
        return one.flight.goes_on(self._waits.done)

    def _restamp(self, one: _Carried, late: Array) -> None:
        old, clock = one.own[late], self._clock[self._first + one.rows[late]]
        number = one.flight.instruction.number
        one.own[late] = make_stamps(threads_of(old), clock, number, is_late=True)
        one.memory.restamp(one.kind, one.cells[late], old, one.own[late])

    # Accesses.

    def access(self, waves: Any, access: Access) -> None:
        if access.space == "private" or not access.index.size:
            return
        memory = self._global if access.space == "global" else self._shared
        kind = self._kind(access)
        cells, count = memory.cells(access.index, access.size)
        rows = rows_of_lanes(waves, access.active)
        thread = (self._first + np.arange(waves.waves)[:, None]) * waves.lanes
        thread = waves.pick(thread[waves.rows] + np.arange(waves.lanes), access.active)
        number = access.instruction.number
        own = make_stamps(thread, self._clock[self._first + rows], number)
        if count > 1:
            rows, own = np.repeat(rows, count), np.repeat(own, count)
        one = _Made(waves, access, count, kind, own)
        self._check(one, memory, cells)
        self._check_direct(one, memory, cells, rows)
        self._stamp(one, memory, cells, rows)
        self._meet(rows[::count], access, kind)

    def _kind(self, access: Access) -> str:
        if access.is_atomic:
            return "exchange" if "cmp" in access.instruction.mnemonic else "update"
        if access.space != "global" or not self._order.is_marked(access.instruction):
            return "write" if access.is_store else "read"
        kind = "update" if access.is_store else "watch"
        return kind if self._order.is_for_all(access.instruction) else f"near {kind}"

    def _meet(self, rows: Array, access: Access, kind: str) -> None:
        """Waves may learn of each other here: those of `rows`, one for each lane."""
        is_for_all = self._has_drops and access.space == "global"
        may_release = (
            is_for_all and kind == "write" and not self._order.are_stores_marked
        )
        if not may_release and kind not in _MEETS_GROUP:
            return
        numbers, waves = self._first + rows, np.unique(rows)
        is_single = len(waves) == len(rows)
        # Where atomic stores look like others, each may be what tells other groups.
        tells_all = is_for_all and (kind in _TELLS or (may_release and is_single))
        tells_group = is_single and (tells_all or kind in _TELLS_GROUP)
        if tells_all or (is_for_all and kind == "watch"):
            needs = self._order.writes_back is not None
            more = {"tells": tells_all, "needs_write_back": needs}
            self._fences.meet(numbers, rows, access.index, **more)
        if is_single:
            self._turns.meet(
                access.space, numbers, rows, access.index, tells=tells_group
            )
        if tells_all or tells_group:
            self._tick(self._first + waves)
            self._carry(waves, besides=self._waits.latest, is_in_group=not tells_all)

    def _stamp(self, one: _Made, memory: Stamps, cells: Array, rows: Array) -> None:
        kept = memory.put(one.kind, cells, one.own)
        if kept is not None:
            self._tell(one, kept, kept != one.own, is_together=True)
        elif one.kind == "near update" and (last := memory.kept(one.kind)) is not None:
            is_far = self._shape.groups_of(last[cells]) != self._shape.groups_of(
                one.own
            )
            if is_far.any():
                self._tell(one, last[cells], is_far, is_together=True)
        assert self._waits.latest is not None
        if len(self._carried) > self._room:
            self._carry(rows[:0])
            self._room = len(self._carried) + _MORE_CARRIED
        flight, unit = self._waits.latest, memory.unit
        self._carried.append(
            _Carried(flight, memory, one.kind, cells, rows, one.own, unit)
        )

    # Findings.

    def _check(self, one: _Made, memory: Stamps, cells: Array) -> None:
        for kind, is_of_others in _CONFLICTS[one.kind]:
            if (kept := memory.kept(kind)) is None or self._is_unmarked(one.kind, kind):
                continue
            found, other = kept[cells], kind.removeprefix("other ")
            if is_of_others and found.any():
                is_far = self._shape.groups_of(found) != self._shape.groups_of(one.own)
                found = np.where(is_far, found, 0)
            if found.any():
                wrong = self._unordered(one, memory, found, other in _TELLS)
                if wrong is not None:
                    self._tell(one, found, wrong, other=other)

    def _check_direct(
        self, one: _Made, memory: Stamps, cells: Array, rows: Array
    ) -> None:
        """A wave's own loads to shared memory fill no register: here it is seen that it waits."""
        for carried in self._carried:
            if (
                carried.flight.kind == "direct load"
                and carried.memory is memory is self._shared
            ):
                carried.refine()
                loads = carried.flight.goes_on(self._waits.done)[carried.rows]
                found, mine = (
                    cell * len(one.waves.groups) * self._shape.per_group + row
                    for cell, row in (
                        (carried.cells[loads], carried.rows[loads]),
                        (cells, rows),
                    )
                )
                wrong = np.isin(mine, found)
                if wrong.any() and carried.flight is not self._waits.latest:
                    self._tell_direct(one, carried.flight, wrong)

    def _is_unmarked(self, kind: str, other: str) -> bool:
        """Where atomic stores look like others, they may be what atomic loads wait for."""
        pair = {kind, other.removeprefix("other ")}
        return pair == {"watch", "write"} and not self._order.are_stores_marked

    def _is_scalar(self, one: _Made) -> bool:
        """Whether it goes through the cache that only `s_dcache_inv` has see a launch's writes."""
        instruction = one.access.instruction
        is_cached = (
            instruction.mnemonic.startswith("s_") and "glc" not in instruction.modifiers
        )
        return is_cached and not self._drops_scalars

    def _unordered(
        self, one: _Made, memory: Stamps, found: Array, is_update: bool
    ) -> Array | None:
        """Where what was found is of another wave, and nothing orders it; None: nowhere."""
        if self._is_scalar(one):
            return found != 0
        shape, wave = self._shape, self._shape.waves_of(one.own)
        other = shape.waves_of(found)
        wrong = (found != 0) & (other != wave)
        if not wrong.any():
            return None
        group, clocks = other // shape.per_group, clocks_of(found)
        may_be_stale = (
            one.kind == "read" and memory is self._global and self._has_stale_reads
        )
        is_before = (group == wave // shape.per_group) & (clocks < self._floor[group])
        if may_be_stale:
            is_before &= clocks < self._dropped[wave]
        wrong &= ~is_before
        if wrong.any():
            # An update reaches all groups by itself; the clock ticks before it.
            clocks = clocks - 1 if is_update else clocks
            near = (
                clocks - late_of(found)
                if memory is self._global and self._keeps_order
                else clocks
            )
            wrong &= ~self._turns.is_known(
                wave, other, near, must_be_fresh=may_be_stale
            )
        if self._has_drops and wrong.any():
            wrong &= ~self._fences.is_known(wave, other, clocks)
        return wrong if wrong.any() else None

    def _tell(
        self,
        one: _Made,
        found: Array,
        wrong: Array,
        *,
        other: str = "",
        is_together: bool = False,
    ) -> None:
        place = int(np.flatnonzero(wrong)[0])
        stamp, waves, access = int(found[place]), one.waves, one.access
        late = is_late(stamp) and not is_together
        instruction = self._assembly.instruction(number_of(stamp))
        thread = thread_of(int(threads_of(stamp)), self._shape, self._grid, self._block)
        did = "writes" if is_together else _DID[other]
        by = "too" if is_together else f"by {instruction}"
        what = (
            f"{_DOES[one.kind]} {place_of(waves, access, place // one.count)}, which work item "
            f"{thread} {did} {by}; {self._why(one, stamp, late, is_together)}"
        )
        kind = WAIT if late else RACE
        waves.report(
            kind,
            access.instruction,
            what,
            lanes_of(one.waves, one.access, wrong, one.count),
        )

    def _tell_direct(self, one: _Made, flight: Flight, wrong: Array) -> None:
        place = place_of(
            one.waves, one.access, int(np.flatnonzero(wrong)[0]) // one.count
        )
        what = (
            f"{_DOES[one.kind]} {place}, which {flight.instruction} of the same wave still loads: "
            f"a wait ({next(iter(flight.places)).counter}) is missing"
        )
        lanes = lanes_of(one.waves, one.access, wrong, one.count)
        one.waves.report(WAIT, one.access.instruction, what, lanes)

    def _why(self, one: _Made, stamp: int, late: bool, is_together: bool) -> str:
        if late:
            return "that was not waited for before the barrier or update that is between them"
        if is_together:
            return "one instruction does both"
        groups = (
            self._shape.groups_of(np.array([stamp])),
            self._shape.groups_of(one.own[:1]),
        )
        if self._is_scalar(one):
            return "scalar loads may see what was there before the launch"
        if groups[0] != groups[1]:
            return "nothing orders the groups"
        if clocks_of(np.array([stamp])) < self._floor[groups[0]]:
            return "a barrier is between them, but the wave has not dropped its cache since"
        return "no barrier is between them"


def _check_launch(threads: int, is_split: bool) -> None:
    why = ""
    if threads > MOST_THREADS:
        why = f"there are {threads} threads, and can be at most {MOST_THREADS}"
    elif is_split:
        why = "the waves of a group run on several compute units (tgsplit)"
    if why:
        remedy = "look for other hazards, or compile without it"
        remedy = (
            remedy if is_split else "launch fewer groups, or look for other hazards"
        )
        raise Unsupported(
            "races of this launch are not followed", why=why, remedy=remedy
        )


def _mnemonics(assembly: Assembly) -> set[str]:
    return {assembly.mnemonic(number) for number in range(len(assembly))}
