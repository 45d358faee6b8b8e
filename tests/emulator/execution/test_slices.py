"""Slices of time: all wait for their fellows first, and nobody for ever."""

import numpy as np

from refcomp.emulator.execution.slices import MAX_LENGTH, MIN_LENGTH, Slices

EVERYBODY = np.ones(3, bool)


def _ran(slices, running, *waves):
    """A slice in which these waves ran, and the next one begins."""
    chosen = np.zeros(3, bool)
    chosen[list(waves)] = True
    slices.record(chosen)
    slices.left = 0
    slices.begin(running)
    assert MIN_LENGTH <= slices.left <= MAX_LENGTH
    return np.flatnonzero(slices.runnable(running)).tolist()


def test_who_has_not_run_for_longest_is_next_in_every_second_slice():
    slices = Slices(3)
    assert slices.runnable(EVERYBODY).all()
    assert _ran(slices, EVERYBODY, 0) == [1, 2]  # 0 waits for others, say
    assert _ran(slices, EVERYBODY, 1) == [0, 1, 2]
    assert _ran(slices, EVERYBODY, 0) == [2]
    assert _ran(slices, EVERYBODY, 2) == [0, 1, 2]
    assert _ran(slices, EVERYBODY, 0) == [1]


def test_where_all_ran_everybody_runs():
    slices = Slices(3)
    for _ in range(3):
        assert _ran(slices, EVERYBODY, 0, 1, 2) == [0, 1, 2]


def test_slices_are_short_while_some_would_starve():
    slices = Slices(3)
    assert slices.left == MAX_LENGTH
    for _ in range(20):
        _ran(slices, EVERYBODY, 0)
    assert slices.left == MIN_LENGTH
    for _ in range(20):
        _ran(slices, EVERYBODY, 0, 1, 2)
    assert slices.left == MAX_LENGTH


def test_when_those_stop_that_run_the_others_go_on():
    slices = Slices(3)
    assert _ran(slices, EVERYBODY, 0) == [1, 2]
    assert np.flatnonzero(slices.runnable(np.array([True, False, True]))).tolist() == [2]
    only = np.array([True, False, False])
    assert slices.runnable(only) is only and slices.runnable(EVERYBODY).all()


def test_waves_that_waited_for_a_whole_slice_are_known():
    slices = Slices(3)
    assert slices.starved().all()
    slices.record(np.array([True, False, True]))
    assert slices.starved().tolist() == [False, True, False]
