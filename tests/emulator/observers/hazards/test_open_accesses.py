"""Which accesses become late at a barrier, and which are dropped."""

from types import SimpleNamespace

import numpy as np
import pytest

from refcomp.emulator.observers.hazards import open_accesses
from refcomp.emulator.observers.hazards.access_history import (
    AccessHistory,
    WaveNumbering,
    clocks_of,
    lateness_of,
    make_records,
)
from refcomp.emulator.observers.hazards.access_types import AccessType
from refcomp.emulator.observers.hazards.open_accesses import OpenAccess, OpenAccesses

_NUMBERING = WaveNumbering(lanes=64, waves_per_group=2)
_WAVES = np.arange(2)


class _Flight:
    """A flight of two waves that is in flight in the waves `pending`."""

    def __init__(self, kind, pending):
        self.effect = SimpleNamespace(kind=kind)
        self.instruction = SimpleNamespace(number=7)
        self._pending = np.array(pending)

    def is_pending(self, done):
        return self._pending

    is_pending_in_shared = is_pending


def _access(kind="store", pending=(True, True), *, is_shared=False):
    """One word of each of two waves."""
    history = AccessHistory(64, _NUMBERING, is_shared=is_shared)
    cells = np.array([0, 1])
    records = make_records(np.array([0, 64]), np.array([1, 1]), 7)
    history.add(AccessType.WRITE, cells, records)
    return OpenAccess(
        flight=_Flight(kind, pending),
        history=history,
        access_type=AccessType.WRITE,
        cells=cells,
        rows=_WAVES,
        records=records,
        cell_bytes=history.cell_bytes,
    )


def _open(*accesses, keeps_order=False, latest=None):
    waits = SimpleNamespace(done={}, latest=latest)
    result = OpenAccesses(waits, np.array([5, 6]), keeps_order=keeps_order)
    for access in accesses:
        result.add(access)
    return result


def test_waves_in_flight_get_late_records_with_the_present_clock():
    access = _access(pending=(True, False))
    _open(access).mark_late(_WAVES)
    records = access.history.latest(AccessType.WRITE)[:2]
    assert lateness_of(records).tolist() == [1, 0]
    assert clocks_of(records).tolist() == [5, 1]


def test_other_waves_and_the_flight_besides_are_left_alone():
    access = _access()
    accesses = _open(access)
    accesses.mark_late(_WAVES[1:])
    assert lateness_of(access.records).tolist() == [0, 1]
    other = _access()
    _open(other).mark_late(_WAVES, besides=other.flight)
    assert not lateness_of(other.records).any()


@pytest.mark.parametrize(("is_shared", "late"), [(False, 0), (True, 1)])
def test_a_cache_of_the_group_keeps_accesses_of_global_memory_in_order(is_shared, late):
    access = _access(is_shared=is_shared)
    _open(access, keeps_order=True).mark_late(_WAVES, is_in_group=True)
    assert lateness_of(access.records).tolist() == [late, late]


def test_records_follow_when_cells_become_bytes():
    access = _access()
    access.history.cells(np.array([1]), 1)
    _open(access).mark_late(_WAVES)
    assert lateness_of(access.history.latest(AccessType.WRITE)[:8]).all()


def test_completed_accesses_are_dropped(monkeypatch):
    monkeypatch.setattr(open_accesses, "_STEP", 2)
    done = [_access("direct load", (False, False), is_shared=True) for _ in range(3)]
    accesses = _open(*done)
    assert len(list(accesses.direct_loads())) == 3
    accesses.add(_access("direct load", is_shared=True))
    assert len(list(accesses.direct_loads())) == 1
    accesses.clear()
    assert not list(accesses.direct_loads())


def test_direct_loads_are_those_to_shared_memory_before_the_latest_access():
    loads = [_access("direct load", is_shared=True) for _ in range(2)]
    far = _access("direct load")
    accesses = _open(*loads, far, _access("load", is_shared=True), latest=loads[1].flight)
    assert list(accesses.direct_loads()) == [loads[0]]
