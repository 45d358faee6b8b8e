"""Whose turn it is: all wait for their fellows first, and nobody for ever."""

import numpy as np

from refcomp.emulator.turns import LONGEST, SHORTEST, Turns

EVERYBODY = np.ones(3, bool)


def _ran(turns, running, *waves):
    """A slice in which these waves ran, and the next one begins."""
    chosen = np.zeros(3, bool)
    chosen[list(waves)] = True
    turns.note(chosen)
    turns.left = 0
    turns.begin(running)
    assert SHORTEST <= turns.left <= LONGEST
    return np.flatnonzero(turns.among(running)).tolist()


def test_who_has_not_run_for_longest_is_next_in_every_second_slice():
    turns = Turns(3)
    assert turns.among(EVERYBODY).all()
    assert _ran(turns, EVERYBODY, 0) == [1, 2]  # 0 waits for others, say
    assert _ran(turns, EVERYBODY, 1) == [0, 1, 2]
    assert _ran(turns, EVERYBODY, 0) == [2]
    assert _ran(turns, EVERYBODY, 2) == [0, 1, 2]
    assert _ran(turns, EVERYBODY, 0) == [1]


def test_where_all_ran_it_is_everybodys_turn():
    turns = Turns(3)
    for _ in range(3):
        assert _ran(turns, EVERYBODY, 0, 1, 2) == [0, 1, 2]


def test_slices_are_short_while_some_would_starve():
    turns = Turns(3)
    assert turns.left == LONGEST
    for _ in range(20):
        _ran(turns, EVERYBODY, 0)
    assert turns.left == SHORTEST
    for _ in range(20):
        _ran(turns, EVERYBODY, 0, 1, 2)
    assert turns.left == LONGEST


def test_when_those_stop_whose_turn_it_is_the_others_go_on():
    turns = Turns(3)
    assert _ran(turns, EVERYBODY, 0) == [1, 2]
    assert np.flatnonzero(turns.among(np.array([True, False, True]))).tolist() == [2]
    only = np.array([True, False, False])
    assert turns.among(only) is only and turns.among(EVERYBODY).all()


def test_waves_that_waited_for_a_whole_slice_are_known():
    turns = Turns(3)
    assert turns.have_waited().all()
    turns.note(np.array([True, False, True]))
    assert turns.have_waited().tolist() == [False, True, False]
