"""Data races: two threads access the same bytes, one of them writes, and nothing orders them.

What orders accesses:

- A barrier orders accesses of one group that have completed before it. An access that is still in
  flight is not ordered: that is a missing wait.
- Atomic updates and reads release and acquire (`vector_clocks.py` within a group,
  `launch_clocks.py` between groups). They never race with each other.
- A wave's own accesses are in order, but not those of its lanes by one instruction, even if all
  write the same value.
- Launches follow one another.

The check is neither sound nor complete.

False positives:

- waves that synchronise through atomic loads and stores of shared memory, which machine code does
  not distinguish from plain ones;
- waves of a group that synchronise through atomics of many lanes at once, and groups that do so
  through stores of many lanes (except on gfx942, which marks atomic stores);
- loads that a compiler hoists, for lanes that turn out not to need the value.

False negatives:

- orders between groups that this run had by chance, and that another run may not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from weakref import WeakKeyDictionary

import numpy as np

from refcomp.emulator.code.assembly import Assembly, Instruction
from refcomp.emulator.code.findings import RACE, WAIT
from refcomp.emulator.execution.launch import LaunchRequest, LoadedCode
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.observation import Access, Observer
from refcomp.emulator.machine.waves import Waves
from refcomp.emulator.observers.hazards.access_description import (
    describe_place,
    work_item_of,
    wrong_lanes,
)
from refcomp.emulator.observers.hazards.access_history import (
    MAX_CLOCK,
    MAX_THREADS,
    AccessHistory,
    WaveNumbering,
    clocks_of,
    lateness_of,
    make_records,
    number_of,
    threads_of,
)
from refcomp.emulator.observers.hazards.access_types import (
    CONFLICTS,
    PAST_TENSE,
    PRESENT_TENSE,
    AccessType,
)
from refcomp.emulator.observers.hazards.launch_clocks import LaunchClocks
from refcomp.emulator.observers.hazards.open_accesses import OpenAccess, OpenAccesses
from refcomp.emulator.observers.hazards.vector_clocks import GroupClocks
from refcomp.emulator.observers.hazards.waits import Waits
from refcomp.foundation.errors import Unsupported

_UPDATES = (AccessType.UPDATE, AccessType.COMPARE_SWAP)
_GROUP_UPDATES = (*_UPDATES, AccessType.GROUP_UPDATE)
_SYNCHRONISING = (*_GROUP_UPDATES, AccessType.ATOMIC_READ, AccessType.GROUP_ATOMIC_READ)
# Where atomic stores look like plain ones, an atomic load may wait for a store.
_MAY_SYNCHRONISE = {
    AccessType.WRITE: AccessType.ATOMIC_READ,
    AccessType.ATOMIC_READ: AccessType.WRITE,
}


@dataclass(frozen=True, slots=True)
class _CheckedAccess:
    """An access while it is compared with earlier ones."""

    waves: Waves
    access: Access
    access_type: AccessType
    history: AccessHistory
    cells: Array  # int [n]
    rows: Array  # int [n]: numbers of the waves in the batch
    records: Array  # int64 [n]
    per_lane: int  # cells of each lane


class Races(Observer):
    """Reports races. `waits` must observe each event before this observer does."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._mnemonics: WeakKeyDictionary[Assembly, set[str]] = WeakKeyDictionary()

    def launched(self, loaded: LoadedCode, request: LaunchRequest) -> None:
        kernel = loaded.kernel(request.kernel)
        lanes = loaded.generation.lanes(kernel.descriptor)
        self._order = loaded.generation.order
        self._keeps_order = self._order.keeps_order(kernel.descriptor)
        self._has_stale_reads = self._order.has_stale_reads(kernel.descriptor)
        per_group = -(-prod(request.block) // lanes)
        groups = prod(request.grid)
        waves = groups * per_group
        _check_launch(waves * lanes, self._order.is_split(kernel.descriptor))
        self._numbering = WaveNumbering(lanes, per_group)
        self._grid = request.grid
        self._block = request.block
        # int64 [waves]: increments at barriers and after releases. All waves of the launch have
        # one, and count it apart from the others.
        self._clock = np.ones(waves, np.int64)
        # int64 [groups]: the clock with which all waves of a group left their latest barrier.
        self._barrier_clock = np.ones(groups, np.int64)
        # int64 [waves]: the cache of the wave's own unit holds nothing from before this clock.
        self._valid_from = np.zeros(waves, np.int64)
        # bool [waves]: the caches around it are invalidated, but not yet that of the unit.
        self._is_half_invalidated = np.zeros(waves, np.bool_)
        self._open = OpenAccesses(
            self._waits, self._clock, keeps_order=self._keeps_order
        )
        self._group_clocks = GroupClocks(self._waits, self._clock, per_group)
        self._launch_clocks = LaunchClocks(
            waits=self._waits,
            clock=self._clock,
            barrier_clock=self._barrier_clock,
            group_clocks=self._group_clocks,
            waves_per_group=per_group,
        )
        self._assembly = loaded.program(kernel).assembly
        names = self._mnemonics.get(self._assembly)
        if names is None:
            names = {
                self._assembly.mnemonic(number) for number in range(len(self._assembly))
            }
            self._mnemonics[self._assembly] = names
        # Without an invalidation, groups cannot synchronise, and need no vector clocks.
        self._has_invalidations = self._order.invalidates.mnemonic in names
        self._invalidates_scalars = "s_dcache_inv" in names
        self._global = AccessHistory(loaded.arena.extent(), self._numbering)
        self._first = 0  # number of the batch's first wave in the launch

    def began(self, waves: Waves) -> None:
        size = len(waves.shared.data)
        self._shared = AccessHistory(size, self._numbering, is_shared=True)
        self._open.begin(self._first)
        self._group_clocks.clear()

    def ended(self, waves: Waves) -> None:
        self._first += waves.waves
        self._open.clear()

    # What orders accesses.

    def instruction(self, waves: Waves, instruction: Instruction) -> None:
        if not (self._has_invalidations or self._has_stale_reads):
            return
        if self._order.is_write_back(instruction):
            numbers = self._running(waves)
            self._launch_clocks.write_back(numbers)
            self._tick(numbers)
        elif self._order.is_invalidation(instruction):
            numbers = self._running(waves)
            if self._order.invalidates_own is None:
                self._launch_clocks.invalidate_caches(numbers)
            else:
                self._is_half_invalidated[numbers] = True
        elif self._order.is_own_invalidation(instruction):
            numbers = self._running(waves)
            groups = numbers // self._numbering.waves_per_group
            self._valid_from[numbers] = self._barrier_clock[groups]
            self._group_clocks.invalidate_cache(numbers)
            self._launch_clocks.invalidate_caches(
                numbers[self._is_half_invalidated[numbers]]
            )
            self._is_half_invalidated[numbers] = False

    def _running(self, waves: Waves) -> Array:
        """Return the numbers in the launch of the waves that run."""
        return self._first + np.arange(waves.waves)[waves.rows]

    def barrier(self, waves: Waves, rows: Array) -> None:
        per_group = self._numbering.waves_per_group
        groups = np.unique((self._first + rows) // per_group)
        clock = self._clock.reshape(-1, per_group)
        clock[groups] = clock[groups].max(axis=1, keepdims=True) + 1
        self._barrier_clock[groups] = clock[groups, 0]
        self._restart_full_clocks(self._barrier_clock[groups])
        self._launch_clocks.join_at_barrier(groups)
        self._open.mark_late(rows, is_in_group=True)

    def _tick(self, numbers: Array) -> None:
        """Increment the clocks of waves, after they released what they did until now."""
        self._clock[numbers] += 1
        self._restart_full_clocks(self._clock[numbers])

    def _restart_full_clocks(self, clocks: Array) -> None:
        """Restart all clocks if one of `clocks` is full, and forget records of old clocks."""
        if clocks.max(initial=0) < MAX_CLOCK:
            return
        self._clock[:] = 1
        self._barrier_clock[:] = 1
        self._valid_from[:] = 0
        self._open.clear()
        self._launch_clocks.clear()
        self._group_clocks.clear()
        self._global.clear()
        self._shared.clear()

    # Accesses.

    def access(self, waves: Waves, access: Access) -> None:
        if access.space == "private" or not access.index.size:
            return
        history = self._global if access.space == "global" else self._shared
        access_type = self._type_of(access)
        cells, per_lane = history.cells(access.index, access.size)
        row = np.arange(waves.waves)[waves.rows][:, None]
        lane_rows = waves.pick(row, access.active)
        thread = (self._first + row) * waves.lanes + np.arange(waves.lanes)
        clocks = self._clock[self._first + lane_rows]
        threads = waves.pick(thread, access.active)
        records = make_records(threads, clocks, access.instruction.number)
        rows = lane_rows
        if per_lane > 1:
            rows = np.repeat(rows, per_lane)
            records = np.repeat(records, per_lane)
        checked = _CheckedAccess(
            waves=waves,
            access=access,
            access_type=access_type,
            history=history,
            cells=cells,
            rows=rows,
            records=records,
            per_lane=per_lane,
        )
        self._check(checked)
        self._check_direct_loads(checked)
        self._record(checked)
        self._synchronise(lane_rows, access, access_type)

    def _type_of(self, access: Access) -> AccessType:
        instruction = access.instruction
        if access.is_atomic:
            return (
                AccessType.COMPARE_SWAP
                if "cmp" in instruction.mnemonic
                else AccessType.UPDATE
            )
        if access.space != "global" or not self._order.is_atomic(instruction):
            return AccessType.WRITE if access.is_store else AccessType.READ
        if self._order.is_for_device(instruction):
            return AccessType.UPDATE if access.is_store else AccessType.ATOMIC_READ
        return (
            AccessType.GROUP_UPDATE if access.is_store else AccessType.GROUP_ATOMIC_READ
        )

    def _synchronise(
        self, rows: Array, access: Access, access_type: AccessType
    ) -> None:
        """Release and acquire by an access. `rows` has the wave of each active lane."""
        is_for_device = self._has_invalidations and access.space == "global"
        # Where atomic stores look like plain ones, each store may be a release.
        may_release = (
            is_for_device
            and access_type == AccessType.WRITE
            and not self._order.are_stores_marked
        )
        if not may_release and access_type not in _SYNCHRONISING:
            return
        numbers = self._first + rows
        waves = np.unique(rows)
        is_one_lane = len(waves) == len(rows)
        releases_to_device = is_for_device and (
            access_type in _UPDATES or (may_release and is_one_lane)
        )
        releases_to_group = is_one_lane and (
            releases_to_device or access_type in _GROUP_UPDATES
        )
        if releases_to_device or (
            is_for_device and access_type == AccessType.ATOMIC_READ
        ):
            self._launch_clocks.synchronise(
                numbers,
                rows,
                access.index,
                releases=releases_to_device,
                needs_write_back=self._order.writes_back is not None,
            )
        if is_one_lane:
            self._group_clocks.synchronise(
                access.space, numbers, rows, access.index, releases=releases_to_group
            )
        if releases_to_device or releases_to_group:
            self._tick(self._first + waves)
            in_group = not releases_to_device
            self._open.mark_late(
                waves, besides=self._waits.latest, is_in_group=in_group
            )

    def _record(self, checked: _CheckedAccess) -> None:
        """Add an access to the history. Report lanes that write the same cells together."""
        history = checked.history
        kept = history.add(checked.access_type, checked.cells, checked.records)
        if kept is not None:
            self._report(checked, kept, kept != checked.records)
        elif checked.access_type == AccessType.GROUP_UPDATE:
            latest = history.latest(AccessType.GROUP_UPDATE)
            assert latest is not None
            found = latest[checked.cells]
            own_groups = self._numbering.groups_of(checked.records)
            is_far = self._numbering.groups_of(found) != own_groups
            if is_far.any():
                self._report(checked, found, is_far)
        flight = self._waits.latest
        assert flight is not None
        self._open.add(
            OpenAccess(
                flight=flight,
                history=history,
                access_type=checked.access_type,
                cells=checked.cells,
                rows=checked.rows,
                records=checked.records,
                cell_bytes=history.cell_bytes,
            )
        )

    # Findings.

    def _check(self, checked: _CheckedAccess) -> None:
        """Report earlier accesses that conflict and are not ordered."""
        history = checked.history
        partner = None
        if not self._order.are_stores_marked:
            partner = _MAY_SYNCHRONISE.get(checked.access_type)
        for other, is_only_between_groups in CONFLICTS[checked.access_type]:
            if other == partner:
                continue
            for records in (history.latest(other), history.second(other)):
                if records is None:
                    continue
                found = records[checked.cells]
                if is_only_between_groups and found.any():
                    own_groups = self._numbering.groups_of(checked.records)
                    is_far = self._numbering.groups_of(found) != own_groups
                    found = np.where(is_far, found, 0)
                if not found.any():
                    continue
                wrong = self._unordered(checked, found, is_update=other in _UPDATES)
                if wrong is not None:
                    self._report(checked, found, wrong, other=other)

    def _check_direct_loads(self, checked: _CheckedAccess) -> None:
        """Report uses of shared memory that a direct load of the same wave still fills.

        A direct load fills no register, so that `Waits` does not see whether the wave waits.
        """
        if checked.history is not self._shared:
            return
        waves = len(checked.waves.groups) * self._numbering.waves_per_group
        for access in self._open.direct_loads():
            flight = access.flight
            access.split_cells()
            pending = flight.is_pending(self._waits.done)[access.rows]
            # A cell and a wave as one number.
            loaded = access.cells[pending] * waves + access.rows[pending]
            wrong = np.isin(checked.cells * waves + checked.rows, loaded)
            if not wrong.any():
                continue
            lane = int(np.flatnonzero(wrong)[0]) // checked.per_lane
            what = (
                f"{PRESENT_TENSE[checked.access_type]} "
                f"{describe_place(checked.waves, checked.access, lane)}, which "
                f"{flight.instruction} of the same wave still loads: "
                f"a wait ({flight.counter}) is missing"
            )
            lanes = wrong_lanes(checked.waves, checked.access, wrong, checked.per_lane)
            checked.waves.report(WAIT, checked.access.instruction, what, lanes)

    def _is_cached_scalar_load(self, checked: _CheckedAccess) -> bool:
        """Return True for a load through the cache that only `s_dcache_inv` invalidates."""
        instruction = checked.access.instruction
        is_cached = (
            instruction.mnemonic.startswith("s_") and "glc" not in instruction.modifiers
        )
        return is_cached and not self._invalidates_scalars

    def _unordered(
        self, checked: _CheckedAccess, found: Array, *, is_update: bool
    ) -> Array | None:
        """Return, as bool [n], where nothing orders the earlier accesses `found`; None: nowhere.

        Args:
            checked: the access.
            found: int64 [n], records of earlier accesses to the same cells, 0 for none.
            is_update: the earlier accesses are updates.
        """
        if self._is_cached_scalar_load(checked):
            return np.not_equal(found, 0)
        own = self._numbering.waves_of(checked.records)
        others = self._numbering.waves_of(found)
        wrong = (found != 0) & (others != own)
        if not wrong.any():
            return None
        per_group = self._numbering.waves_per_group
        groups = others // per_group
        clocks = clocks_of(found)
        is_global = checked.history is self._global
        may_be_stale = (
            checked.access_type == AccessType.READ
            and is_global
            and self._has_stale_reads
        )
        is_before = (groups == own // per_group) & (
            clocks < self._barrier_clock[groups]
        )
        if may_be_stale:
            is_before &= clocks < self._valid_from[own]
        wrong &= ~is_before
        if not wrong.any():
            return None
        # An update reaches all groups without a write-back. Its wave's clock ticked between the
        # write-back and the update, so the clock before that decides.
        if is_update:
            clocks = clocks - 1
        # In the group's cache, accesses that were late at a release stay in order.
        in_group = (
            clocks - lateness_of(found) if is_global and self._keeps_order else clocks
        )
        wrong &= ~self._group_clocks.happened_before(
            others, in_group, own, through_cache=may_be_stale
        )
        if self._has_invalidations and wrong.any():
            wrong &= ~self._launch_clocks.happened_before(others, clocks, own)
        return wrong if wrong.any() else None

    def _report(
        self,
        checked: _CheckedAccess,
        found: Array,
        wrong: Array,
        *,
        other: AccessType | None = None,
    ) -> None:
        """Report a race with the first wrong record of `found`.

        `other` is the type of the earlier access; None if one instruction makes both.
        """
        place = int(np.flatnonzero(wrong)[0])
        record = int(found[place])
        is_late = other is not None and bool(lateness_of(found[place]))
        where = describe_place(checked.waves, checked.access, place // checked.per_lane)
        thread = int(threads_of(found[place]))
        item = work_item_of(thread, self._numbering, self._grid, self._block)
        if other is None:
            earlier = "writes too; one instruction does both"
        else:
            instruction = self._assembly.instruction(number_of(record))
            reason = self._reason(checked, place, found[place], is_late)
            earlier = f"{PAST_TENSE[other]} with {instruction}; {reason}"
        what = f"{PRESENT_TENSE[checked.access_type]} {where}, which work item {item} {earlier}"
        lanes = wrong_lanes(checked.waves, checked.access, wrong, checked.per_lane)
        kind = WAIT if is_late else RACE
        checked.waves.report(kind, checked.access.instruction, what, lanes)

    def _reason(
        self, checked: _CheckedAccess, place: int, record: Array, is_late: bool
    ) -> str:
        """Explain why record number `place` of an access is not ordered after `record`."""
        if is_late:
            return "its wave did not wait for that before the barrier or update between the two"
        if self._is_cached_scalar_load(checked):
            return "scalar loads may return what was there before the launch"
        group = int(self._numbering.groups_of(record))
        if group != int(self._numbering.groups_of(checked.records[place])):
            return "nothing orders the two groups"
        if clocks_of(record) < self._barrier_clock[group]:
            return "a barrier is between the two, but the wave has not invalidated its cache since"
        return "no barrier is between the two"


def _check_launch(threads: int, is_split: bool) -> None:
    """Raise Unsupported for launches that the check cannot follow."""
    message = "this launch cannot be checked for races"
    if threads > MAX_THREADS:
        raise Unsupported(
            message,
            why=f"it has {threads} threads, and the check supports at most {MAX_THREADS}",
            remedy="launch fewer groups, or check only for other hazards",
        )
    if is_split:
        raise Unsupported(
            message,
            why="the waves of a group run on several compute units (tgsplit)",
            remedy="check only for other hazards, or compile without tgsplit",
        )
