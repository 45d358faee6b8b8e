"""When threads that wait at barriers go on."""

import numpy as np

from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.ptx.execution.barriers import BlockBarriers
from refcomp.emulator.ptx.machine.threads import BlockThreads, LaunchSurroundings


def _threads(blocks, threads):
    around = LaunchSurroundings(
        arena=Arena(1024, is_watched=False),
        kernel="k",
        grid=(blocks, 1, 1),
        block=(threads, 1, 1),
        shared_bytes=0,
        dynamic_bytes=0,
        local_bytes=0,
        symbols={},
        is_watched=False,
    )
    return BlockThreads(around, np.zeros((blocks, 3), np.int64))


def _complete(barriers, waits, ended):
    found = barriers.complete(np.array(waits), np.array(ended))
    return [numbers.tolist() for numbers in found]


def test_a_block_goes_on_when_all_of_it_waits_or_has_ended():
    threads = _threads(2, 32)
    barriers = BlockBarriers(threads)
    barriers.wait(np.arange(64), np.zeros(64, np.int64), np.zeros(64, np.int64))
    waits = [i != 40 for i in range(64)]
    nobody = [False] * 64
    assert _complete(barriers, waits, nobody) == [list(range(32))]
    ended = [i == 40 for i in range(64)]
    both = [i for i in range(64) if i != 40]
    assert _complete(barriers, waits, ended) == [both]


def test_a_barrier_for_some_threads_counts_those_that_only_arrive():
    threads = _threads(1, 64)
    barriers = BlockBarriers(threads)
    first = np.arange(32)
    barriers.wait(first, np.full(32, 3), np.full(32, 64))
    waits, nobody = [i < 32 for i in range(64)], [False] * 64
    assert _complete(barriers, waits, nobody) == []
    barriers.arrive(np.arange(32, 64), np.full(32, 3))
    assert _complete(barriers, waits, nobody) == [list(range(32))]
    # The arrivals are used up.
    assert _complete(barriers, waits, nobody) == []


def test_arrivals_are_used_up_by_a_block_that_waits_as_a_whole():
    barriers = BlockBarriers(_threads(1, 64))
    everybody, nobody = np.arange(64), [False] * 64
    barriers.arrive(everybody[:32], np.zeros(32, np.int64))
    barriers.wait(everybody, np.zeros(64, np.int64), np.zeros(64, np.int64))
    assert _complete(barriers, [True] * 64, nobody) == [list(range(64))]
    assert _complete(barriers, [i < 32 for i in range(64)], nobody) == []


def test_it_is_said_where_threads_wait():
    barriers = BlockBarriers(_threads(1, 32))
    barriers.wait(np.arange(4), np.array([0, 0, 0, 2]), np.zeros(4, np.int64))
    assert barriers.describe(np.arange(4)) == "3 threads at barrier 0, 1 thread at barrier 2"
