"""Stamps: who was last, and one other; cells of words until bytes are needed."""

import numpy as np

from refcomp.emulator.observers.hazards.stamps import (
    Shape,
    Stamps,
    clocks_of,
    is_late,
    make_stamps,
    number_of,
    threads_of,
)

_SHAPE = Shape(lanes=64, per_group=2)


def _by(*waves, clock=1):
    """Stamps of the first lanes of waves."""
    return make_stamps(64 * np.array(waves), clock, 7)


def _waves(stamps):
    return _SHAPE.waves_of(stamps).tolist()


def test_stamps_tell_what_they_are_made_of():
    stamps = make_stamps(np.array([5, 2**27 - 1]), np.array([3, 2**16 - 1]), 2**19 - 2)
    assert threads_of(stamps).tolist() == [5, 2**27 - 1]
    assert clocks_of(stamps).tolist() == [3, 2**16 - 1] and (stamps > 0).all()
    assert number_of(int(stamps[1])) == 2**19 - 2 and not is_late(int(stamps[1]))
    late = make_stamps(np.array([0]), 0, 0, is_late=True)
    assert is_late(int(late[0])) and number_of(int(late[0])) == 0
    assert _SHAPE.groups_of(_by(0, 1, 2)).tolist() == [0, 0, 1]


def test_the_last_write_is_kept():
    memory, cells = Stamps(64, _SHAPE), np.array([1, 2])
    assert memory.kept("write") is None
    assert memory.put("write", cells, _by(0, 1)) is None
    together = memory.put("write", np.array([3, 3]), _by(0, 1))
    assert _waves(together) == [1, 1] and _waves(memory.kept("write")[1:4]) == [0, 1, 1]


def test_reads_keep_one_of_another_wave():
    memory, cell = Stamps(64, _SHAPE), np.array([4])
    for wave in (0, 0, 1, 1):
        memory.put("read", cell, _by(wave))
    assert _waves(memory.kept("read")[4:5]) == [1]
    assert _waves(memory.kept("other read")[4:5]) == [0]


def test_of_several_readers_at_once_two_are_kept():
    memory, cells = Stamps(64, _SHAPE), np.array([4, 4, 4])
    memory.put("read", cells, _by(1, 0, 0))
    assert (_waves(memory.kept("read")[4:5]), _waves(memory.kept("other read")[4:5])) == ([0], [1])


def test_readers_of_other_groups_are_kept_longer():
    memory, cell = Stamps(64, _SHAPE), np.array([4])
    for wave in (0, 2, 3, 2):
        memory.put("read", cell, _by(wave))
    assert _waves(memory.kept("other read")[4:5]) == [0]


def test_cells_become_bytes_when_they_must():
    memory = Stamps(64, _SHAPE)
    cells, count = memory.cells(np.array([8, 32]), 8)
    assert (cells.tolist(), count) == ([2, 3, 8, 9], 2)
    memory.put("write", cells, _by(0, 0, 1, 1))
    assert memory.cells(np.array([9]), 1)[0].tolist() == [9]
    kept = memory.kept("write")
    assert _waves(kept[8:16]) == [0] * 8 and _waves(kept[32:40]) == [1] * 8 and not kept[16]
    assert memory.cells(np.array([8]), 4)[0].tolist() == [8, 9, 10, 11]


def test_words_that_are_not_aligned_are_bytes():
    memory = Stamps(64, _SHAPE)
    cells, count = memory.cells(np.array([2]), 4)
    assert (cells.tolist(), count, memory.unit) == ([2, 3, 4, 5], 4, 1)


def test_stamps_change_only_where_they_are_still_kept():
    memory, cells = Stamps(64, _SHAPE), np.array([1, 2])
    old = _by(0, 0)
    memory.put("write", cells, old)
    memory.put("write", cells[:1], _by(1))
    memory.restamp("write", cells, old, _by(0, 0, clock=9))
    assert clocks_of(memory.kept("write")[cells]).tolist() == [1, 9]
    memory.clear()
    assert memory.kept("write") is None
