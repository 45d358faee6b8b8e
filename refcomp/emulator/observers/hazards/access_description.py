"""Descriptions of accesses for findings: which work item, which memory, which lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refcomp.emulator.execution.launch import Extents
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import BASE
from refcomp.emulator.machine.observation import Access
from refcomp.emulator.machine.waves import Waves
from refcomp.emulator.observers.hazards.access_history import WaveNumbering
from refcomp.foundation.counted import counted


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A thread of a launch, as OpenCL and findings name it."""

    group: Extents  # place of the work-group in the grid
    item: Extents  # place of the work item in its group

    def __str__(self) -> str:
        return f"{self.item} of group {self.group}"


def work_item_of(
    thread: int, numbering: WaveNumbering, grid: Extents, block: Extents
) -> WorkItem:
    """Return the work item of thread number `thread` of the launch."""
    group, item = divmod(thread, numbering.lanes * numbering.waves_per_group)
    x, y, _ = grid
    width, height, _ = block
    return WorkItem(
        group=(group % x, group // x % y, group // (x * y)),
        item=(item % width, item // width % height, item // (width * height)),
    )


def describe_place(waves: Waves, access: Access, lane: int) -> str:
    """Describe the bytes that an active lane accesses. `lane` counts the active lanes."""
    index = int(access.index[lane])
    size = counted(access.size, "byte")
    if access.space == "shared":
        start = index % (len(waves.shared.data) // len(waves.groups))
        return f"{size} at {start} of shared memory"
    allocation = waves.around.arena.allocation_at(BASE + index)
    assert allocation is not None  # the access is in bounds
    start = BASE + index - allocation.address
    return f"{size} at {start} of {allocation.label}"


def wrong_lanes(waves: Waves, access: Access, wrong: Array, per_lane: int = 1) -> Array:
    """Return, as bool [wave, lane], which lanes of an access are wrong.

    `wrong` is bool [active lanes * per_lane]: a lane is wrong if one of its values is True.
    """
    lanes = np.zeros((waves.count(), waves.lanes), np.bool_)
    active = np.ones_like(lanes) if access.active is None else access.active
    lanes[active] = wrong.reshape(-1, per_lane).any(axis=1)
    return lanes
