"""Which bytes are in flight."""

import numpy as np

from refcomp.emulator.ptx.machine.pending_copies import PendingCopies


def _cells_in_flight(copies):
    found = copies.in_flight(np.arange(0, 64, 4), 4)
    return np.flatnonzero(found).tolist()


def test_bytes_are_in_flight_until_their_thread_waits():
    copies = PendingCopies(64, threads=2)
    copies.begin(np.array([0, 1]), np.array([0, 16]), 8)
    copies.commit(np.array([0, 1]))
    copies.begin(np.array([0]), np.array([32]), 4)
    copies.commit(np.array([0]))
    assert _cells_in_flight(copies) == [0, 1, 4, 5, 8]
    copies.wait(np.array([0]), pending=1)
    assert _cells_in_flight(copies) == [4, 5, 8]
    copies.wait(np.array([0, 1]), pending=0)
    assert _cells_in_flight(copies) == []


def test_waiting_for_all_includes_copies_without_a_group():
    copies = PendingCopies(16, threads=1)
    copies.begin(np.array([0]), np.array([0]), 16)
    copies.wait(np.array([0]), pending=0)
    assert copies.in_flight(np.array([12]), 4).all()
    copies.wait(np.array([0]), pending=-1)
    assert not copies.in_flight(np.array([12]), 4).any()


def test_copies_of_a_barrier_are_in_flight_until_their_phase_has_ended():
    copies = PendingCopies(64, threads=2)
    copies.begin(np.array([0, 1]), np.array([16, 24]), 4)
    copies.hand_over(np.array([0]), barrier=0, phase=0)
    copies.begin_bulk(offset=32, size=16, barrier=0, phase=1)
    copies.begin_bulk(offset=48, size=16, barrier=8, phase=0)
    copies.end_phases(barrier=0, phase=1)
    assert _cells_in_flight(copies) == [6, 8, 9, 10, 11, 12, 13, 14, 15]
    copies.end_phases(barrier=0, phase=2)
    assert _cells_in_flight(copies) == [6, 12, 13, 14, 15]
    copies.end_phases(barrier=8, phase=1)
    copies.wait(np.array([1]), pending=-1)
    assert _cells_in_flight(copies) == []
