"""Vector clocks of threads, and kernels that need them."""

import numpy as np

from refcomp.emulator.ptx.observers.clocks import ThreadClocks, has_partial_barriers
from refcomp.emulator.ptx.text.parse import read_ptx
from tests.emulator.ptx.texts import kernel


def _knows(clocks, thread, other, time):
    found = clocks.happened_before(np.array([time]), np.array([other]), np.array([thread]))
    return bool(found[0])


def test_joined_threads_know_the_events_of_each_other():
    clocks = ThreadClocks(2, 4)
    assert not _knows(clocks, 4, 5, 1)
    clocks.join(np.array([4, 5]))
    assert _knows(clocks, 4, 5, 1)
    assert not _knows(clocks, 4, 5, 2)
    assert not _knows(clocks, 6, 5, 1)
    assert clocks.own(np.array([4, 6])).tolist() == [2, 1]


def test_acquiring_thread_knows_the_events_of_releasing_threads():
    clocks = ThreadClocks(1, 4)
    clocks.join(np.array([0, 1]))
    clocks.release(np.array([1]), "place")
    clocks.acquire(np.array([2]), "place")
    clocks.acquire(np.array([3]), "another place")
    assert _knows(clocks, 2, 1, 2)
    assert _knows(clocks, 2, 0, 1)  # which thread 1 knew
    assert not _knows(clocks, 2, 1, 3)  # what it does behind the place
    assert not _knows(clocks, 3, 1, 1)


def test_kernels_with_barriers_for_a_part_of_a_block_need_clocks():
    def needs(body):
        return has_partial_barriers(read_ptx(kernel(body)), "k")

    assert needs("bar.sync 1, 64; ret;")
    assert needs("bar.arrive 1, 64; bar.sync 0; ret;")
    assert needs("bar.red.popc.u32 %r2, 1, 64, %p1; ret;")
    assert needs(".shared .align 8 .b8 b[8]; mbarrier.init.shared.b64 [b], 1; ret;")
    assert not needs("bar.sync 0; bar.warp.sync -1; bar.red.popc.u32 %r2, 0, %p1; ret;")
