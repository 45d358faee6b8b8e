"""Who makes an access, and to what."""

from types import SimpleNamespace

import numpy as np

from refcomp.emulator.machine.memory import BASE, Arena
from refcomp.emulator.machine.observation import Access
from refcomp.emulator.observers.hazards.access_description import (
    WorkItem,
    describe_place,
    work_item_of,
    wrong_lanes,
)
from refcomp.emulator.observers.hazards.access_history import WaveNumbering
from tests.emulator.snippets import instruction, make_waves


def _access(space, *index, active=None):
    line = instruction("ds_read_b32 v0, v1")
    return Access(line, space, False, False, 4, np.array(index), active)


def test_threads_are_numbered_group_by_group():
    numbering = WaveNumbering(lanes=64, waves_per_group=2)
    assert work_item_of(0, numbering, (3, 2, 1), (10, 4, 3)) == WorkItem((0, 0, 0), (0, 0, 0))
    found = work_item_of(4 * 128 + 57, numbering, (3, 2, 1), (10, 4, 3))
    assert found == WorkItem(group=(1, 1, 0), item=(7, 1, 1))
    assert str(found) == "(7, 1, 1) of group (1, 1, 0)"


def test_shared_memory_is_told_from_where_the_group_has_it():
    waves = make_waves(2, groups=2, shared=64)
    assert describe_place(waves, _access("shared", 4, 72), 1) == "4 bytes at 8 of shared memory"


def test_global_memory_is_told_by_its_allocation():
    arena = Arena(1 << 16, is_watched=False)
    first, second = (arena.allocate(64, name) for name in ("the first", "the second"))
    at = [one.address - BASE for one in (first, second)]
    waves = make_waves(arena=arena)
    access = _access("global", at[0], at[1] + 12)
    assert describe_place(waves, access, 1) == "4 bytes at 12 of the second"


def test_lanes_are_those_of_the_waves_that_run():
    waves = SimpleNamespace(count=lambda: 1, lanes=4)
    active = np.array([[True, False, True, True]])
    access = _access("shared", 0, 4, 8, active=active)
    wrong = np.array([False, False, True, False, True, True])
    assert wrong_lanes(waves, access, wrong, 2).tolist() == [[False, False, True, True]]
    everywhere = wrong_lanes(waves, _access("shared", 0, 4, 8, 12), np.array([True] * 4), 1)
    assert everywhere.all()
