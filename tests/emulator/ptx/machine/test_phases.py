"""Phases of a barrier in shared memory."""

import numpy as np

from refcomp.emulator.ptx.machine.phases import PhaseBarrier


def test_a_phase_ends_with_the_last_arrival():
    barrier = PhaseBarrier(3)
    states = [barrier.arrive(1), barrier.arrive(2), barrier.arrive(1)]
    assert states == [3, 2, (1 << 32) + 3]
    ended = barrier.has_ended(np.array(states), by_parity=False)
    assert ended.tolist() == [True, True, False]
    assert barrier.has_ended(np.array([0, 1]), by_parity=True).tolist() == [True, False]


def test_a_phase_waits_for_bytes():
    barrier = PhaseBarrier(1)
    barrier.expect(64)
    barrier.arrive(1)
    assert (barrier.phase, barrier.pending) == (0, 0)
    barrier.expect(-16)
    barrier.expect(-48)
    assert (barrier.phase, barrier.pending) == (1, 1)


def test_a_thread_that_drops_out_is_not_expected_again():
    barrier = PhaseBarrier(2)
    barrier.arrive(1, drops=True)
    barrier.arrive(1)
    assert (barrier.phase, barrier.pending) == (1, 1)


def test_the_first_try_in_a_phase_fails():
    barrier = PhaseBarrier(1)
    barrier.arrive(1)
    threads = np.array([3, 5])
    assert barrier.was_tried(threads, np.array([True, False])).tolist() == [False, False]
    assert barrier.was_tried(threads, np.array([True, True])).tolist() == [True, False]
    barrier.arrive(1)
    assert barrier.was_tried(threads, np.array([True, True])).tolist() == [False, False]


def test_a_thread_sees_the_end_of_each_phase_once_and_of_the_latest_again():
    barrier = PhaseBarrier(1)
    barrier.arrive(1)
    barrier.arrive(1)
    assert list(barrier.unseen_phases(np.array([3]))) == [0, 1]
    assert list(barrier.unseen_phases(np.array([3]))) == [1]
    assert list(barrier.unseen_phases(np.array([3, 5]))) == [0, 1]
    barrier.arrive(1)
    assert list(barrier.unseen_phases(np.array([3, 5]))) == [2]
