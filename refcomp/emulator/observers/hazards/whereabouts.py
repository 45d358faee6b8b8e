"""Who makes an access, and to what, as findings tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import BASE
from refcomp.emulator.machine.observation import Access
from refcomp.emulator.observers.hazards.stamps import Shape

# Along x, y and z.
Extents = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A thread of a launch, as OpenCL and findings name it."""

    # Work-group in the grid, along x, y and z.
    group: Extents
    # Work item in its group, along x, y and z.
    item: Extents

    def __str__(self) -> str:
        return f"{self.item} of group {self.group}"


def thread_of(number: int, shape: Shape, grid: Extents, block: Extents) -> WorkItem:
    """The work item of a thread of the launch."""
    group, thread = divmod(number, shape.lanes * shape.per_group)
    (x, y, _), (w, h, _) = grid, block
    return WorkItem(
        group=(group % x, group // x % y, group // (x * y)),
        item=(thread % w, thread // w % h, thread // (w * h)),
    )


def place_of(waves: Any, access: Access, lane: int) -> str:
    """What the access of an active lane is to, by the lane's number among them."""
    index = int(access.index[lane])
    if access.space == "shared":
        start = index % (len(waves.shared.data) // len(waves.groups))
        return f"{access.size} bytes at {start} of shared memory"
    found = waves.around.arena.allocation_at(BASE + index)
    start = BASE + index - found.address
    return f"{access.size} bytes at {start} of {found.label}"


def lanes_of(waves: Any, access: Access, wrong: Array, count: int) -> Array:
    """The lanes of an access that are wrong, [wave, lane]; `wrong` has `count` for each of them."""
    lanes = np.zeros((waves.count(), waves.lanes), np.bool_)
    active = np.ones_like(lanes) if access.active is None else access.active
    lanes[active] = wrong.reshape(-1, count).any(axis=1)
    return lanes
