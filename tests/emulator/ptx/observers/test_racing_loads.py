"""Racing loads are poisoned: those of the threads, or of all threads, that race."""

from types import SimpleNamespace

import numpy as np

from refcomp.emulator.ptx.machine.observation import SpaceAccess
from refcomp.emulator.ptx.observers.racing_loads import ANY_PHASE, PHASE_BITS, RacingLoads
from tests.emulator.ptx.instructions.worded import instruction


def _any(count):
    return np.full(count, ANY_PHASE)


def _poisoned(loads, text, threads, offsets, is_store=False, barriers=0):
    """Thread -> the bytes of its load that are poisoned, of a launch of one block."""
    observer = loads.observer()
    observer.launched(None, (1, 1, 1), (32, 1, 1), 0)
    observer.began(SimpleNamespace(count=32))
    for _ in range(barriers):
        observer.synchronized(None, np.arange(32), is_warp=False)
    observer.synchronized(None, np.arange(32), is_warp=True)  # which ends no phase
    access = SpaceAccess(
        instruction=instruction(text),
        space="shared",
        is_store=is_store,
        is_strong=False,
        size=8,
        offsets=np.array(offsets),
        numbers=np.array(threads),
    )
    found = observer.poisoned(None, access)
    if found is None:
        return {}
    return {
        thread: np.flatnonzero(row).tolist()
        for thread, row in zip(threads, found, strict=True)
        if row.any()
    }


def test_loads_of_a_thread_are_poisoned_in_its_cells():
    loads = RacingLoads(4)
    loads.add("shared", np.array([3, 5]), np.array([7, 8]), _any(2))
    load = "ld.shared.u64 d, a"
    assert _poisoned(loads, load, [6, 7, 8], [8, 8, 8]) == {7: [4, 5, 6, 7]}
    assert _poisoned(loads, load, [7, 8], [16, 16]) == {8: [4, 5, 6, 7]}
    assert _poisoned(loads, load, [7], [24]) == {}
    assert _poisoned(loads, "st.shared.u64 d, a", [7], [8], is_store=True) == {}


def test_loads_are_poisoned_in_their_phase():
    loads = RacingLoads(4)
    loads.add("shared", np.array([2]), np.array([7]), np.array([1]))
    loads.add_others("shared", np.array([4]), np.array([6]), np.array([0]))
    load = "ld.shared.u64 d, a"
    for barriers in (0, 2):
        assert _poisoned(loads, load, [7], [8], barriers=barriers) == {}
    for barriers in (1, 1 + (1 << PHASE_BITS)):
        assert _poisoned(loads, load, [7], [8], barriers=barriers) == {7: [0, 1, 2, 3]}
    assert _poisoned(loads, load, [1, 6], [16, 16]) == {1: [0, 1, 2, 3]}
    assert _poisoned(loads, load, [1, 6], [16, 16], barriers=1) == {}


def test_loads_of_all_but_the_writer_are_poisoned_where_many_race():
    loads = RacingLoads(4)
    loads.add_others("shared", np.array([2]), np.array([6]), _any(1))
    loads.add_others("global", np.array([4]), np.array([6]), _any(1))
    load = "ld.shared.u64 d, a"
    assert _poisoned(loads, load, [1, 6, 9, 4], [8, 8, 0, 16]) == {1: [0, 1, 2, 3]}
    loads.add_others("shared", np.array([2]), np.array([7]), _any(1))
    assert _poisoned(loads, load, [1, 6, 9, 4], [8, 8, 0, 16]) == {1: [0, 1, 2, 3], 6: [0, 1, 2, 3]}


def test_nothing_is_poisoned_where_two_stores_race():
    loads = RacingLoads(4)
    assert loads.observer() is None
    loads.add_others("shared", np.array([2]), np.array([6]), _any(1))
    loads.add_certain(np.array([False]))
    assert loads.observer() is not None
    loads.add_certain(np.array([False, True]))
    assert loads.observer() is None
