"""The latest record and one of another wave; cells of words until bytes are needed."""

import numpy as np

from refcomp.emulator.observers.hazards.access_history import (
    AccessHistory,
    WaveNumbering,
    clocks_of,
    lateness_of,
    make_records,
    number_of,
    threads_of,
)
from refcomp.emulator.observers.hazards.access_types import AccessType

_NUMBERING = WaveNumbering(lanes=64, waves_per_group=2)
_READ = AccessType.READ
_WRITE = AccessType.WRITE


def _by(*waves, clock=1):
    """Records of the first lanes of waves."""
    return make_records(64 * np.array(waves), clock, 7)


def _waves(records):
    return _NUMBERING.waves_of(records).tolist()


def test_records_tell_what_they_are_made_of():
    records = make_records(np.array([5, 2**27 - 1]), np.array([3, 2**16 - 1]), 2**19 - 2)
    assert threads_of(records).tolist() == [5, 2**27 - 1]
    assert clocks_of(records).tolist() == [3, 2**16 - 1] and (records > 0).all()
    assert number_of(int(records[1])) == 2**19 - 2 and not lateness_of(records)[1]
    late = make_records(np.array([0]), 0, 0, is_late=True)
    assert lateness_of(late)[0] == 1 and number_of(int(late[0])) == 0
    assert _NUMBERING.groups_of(_by(0, 1, 2)).tolist() == [0, 0, 1]


def test_the_last_write_is_kept():
    memory, cells = AccessHistory(64, _NUMBERING), np.array([1, 2])
    assert memory.latest(_WRITE) is None
    assert memory.add(_WRITE, cells, _by(0, 1)) is None
    together = memory.add(_WRITE, np.array([3, 3]), _by(0, 1))
    assert _waves(together) == [1, 1] and _waves(memory.latest(_WRITE)[1:4]) == [0, 1, 1]


def test_reads_keep_one_of_another_wave():
    memory, cell = AccessHistory(64, _NUMBERING), np.array([4])
    for wave in (0, 0, 1, 1):
        memory.add(_READ, cell, _by(wave))
    assert _waves(memory.latest(_READ)[4:5]) == [1]
    assert _waves(memory.second(_READ)[4:5]) == [0]


def test_of_several_readers_at_once_two_are_kept():
    memory, cells = AccessHistory(64, _NUMBERING), np.array([4, 4, 4])
    memory.add(_READ, cells, _by(1, 0, 0))
    assert (_waves(memory.latest(_READ)[4:5]), _waves(memory.second(_READ)[4:5])) == ([0], [1])


def test_readers_of_other_groups_are_kept_longer():
    memory, cell = AccessHistory(64, _NUMBERING), np.array([4])
    for wave in (0, 2, 3, 2):
        memory.add(_READ, cell, _by(wave))
    assert _waves(memory.second(_READ)[4:5]) == [0]


def test_cells_become_bytes_when_they_must():
    memory = AccessHistory(64, _NUMBERING)
    cells, count = memory.cells(np.array([8, 32]), 8)
    assert (cells.tolist(), count) == ([2, 3, 8, 9], 2)
    memory.add(_WRITE, cells, _by(0, 0, 1, 1))
    assert memory.cells(np.array([9]), 1)[0].tolist() == [9]
    kept = memory.latest(_WRITE)
    assert _waves(kept[8:16]) == [0] * 8 and _waves(kept[32:40]) == [1] * 8 and not kept[16]
    assert memory.cells(np.array([8]), 4)[0].tolist() == [8, 9, 10, 11]


def test_words_that_are_not_aligned_are_bytes():
    memory = AccessHistory(64, _NUMBERING)
    cells, count = memory.cells(np.array([2]), 4)
    assert (cells.tolist(), count, memory.cell_bytes) == ([2, 3, 4, 5], 4, 1)


def test_records_change_only_where_they_are_still_kept():
    memory, cells = AccessHistory(64, _NUMBERING), np.array([1, 2])
    old = _by(0, 0)
    memory.add(_WRITE, cells, old)
    memory.add(_WRITE, cells[:1], _by(1))
    memory.replace(_WRITE, cells, old, _by(0, 0, clock=9))
    assert clocks_of(memory.latest(_WRITE)[cells]).tolist() == [1, 9]
    memory.clear()
    assert memory.latest(_WRITE) is None
