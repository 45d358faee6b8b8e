"""Racing loads are poisoned: those of the threads, or of all threads, that race."""

from types import SimpleNamespace

import numpy as np

from refcomp.emulator.ptx.machine.observation import SpaceAccess
from refcomp.emulator.ptx.observers.racing_loads import RacingLoads
from tests.emulator.ptx.instructions.worded import instruction


def _poisoned(loads, text, threads, offsets, is_store=False):
    """The numbers of the threads whose loads are poisoned, of a launch of one block."""
    observer = loads.observer()
    observer.launched(None, (1, 1, 1), (32, 1, 1), 0)
    observer.began(SimpleNamespace(count=32))
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
    return [] if found is None else access.numbers[found].tolist()


def test_loads_of_a_thread_are_poisoned_in_its_cells():
    loads = RacingLoads(4)
    loads.add("shared", np.array([3, 5]), np.array([7, 8]))
    load = "ld.shared.u64 d, a"
    assert _poisoned(loads, load, [6, 7, 8], [8, 8, 8]) == [7]
    assert _poisoned(loads, load, [7, 8], [16, 16]) == [8]
    assert _poisoned(loads, load, [7], [24]) == []
    assert _poisoned(loads, "st.shared.u64 d, a", [7], [8], is_store=True) == []


def test_loads_of_all_but_the_writer_are_poisoned_where_many_race():
    loads = RacingLoads(4)
    loads.add_others("shared", np.array([2]), np.array([6]))
    loads.add_others("global", np.array([4]), np.array([6]))
    load = "ld.shared.u64 d, a"
    assert _poisoned(loads, load, [1, 6, 9, 4], [8, 8, 0, 16]) == [1]
    loads.add_others("shared", np.array([2]), np.array([7]))
    assert _poisoned(loads, load, [1, 6, 9, 4], [8, 8, 0, 16]) == [1, 6]


def test_nothing_is_poisoned_where_two_stores_race():
    loads = RacingLoads(4)
    assert loads.observer() is None
    loads.add_others("shared", np.array([2]), np.array([6]))
    loads.add_certain(np.array([False]))
    assert loads.observer() is not None
    loads.add_certain(np.array([False, True]))
    assert loads.observer() is None
