"""Conflicts are found just where two accesses conflict, in whatever order they come."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refcomp.oracle.interpreter.races import READS, WRITES, updates_by
from refcomp.oracle.lockstep.groups import Doubt
from refcomp.oracle.lockstep.touches import Touches

_KINDS = (READS, WRITES, updates_by("add"), updates_by("max"))
_accesses = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=2)


def _note(touches, kind, accesses, since=1):
    at, agents = np.array(accesses).T
    return touches.note(kind, at[:, None], agents[:, None], since)


def _conflict(one, two):
    (kind, element, agent), (other_kind, other_element, other) = one, two
    if element != other_element or agent == other:
        return False
    return kind != other_kind or kind == WRITES


@pytest.mark.search
@settings(max_examples=600)
@given(st.lists(st.tuples(st.sampled_from(_KINDS), _accesses), min_size=2, max_size=5))
def test_a_conflict_is_found_when_its_second_access_comes(batches):
    touches, before = Touches(2), []
    for kind, accesses in batches:
        before += [(kind, element, agent) for element, agent in accesses]
        if any(_conflict(one, two) for one, two in itertools.combinations(before, 2)):
            with pytest.raises(Doubt):
                _note(touches, kind, accesses)
            return
        touched = {(e, a) for _, e, a in before}
        several = any((e, b) in touched for e, a in accesses for b in range(3) if b != a)
        assert _note(touches, kind, accesses) == several


def test_what_was_before_is_over():
    touches = Touches(2)
    _note(touches, WRITES, [(0, 1), (1, 0)], since=1)
    _note(touches, READS, [(0, 0)], since=2)
    with pytest.raises(Doubt):
        _note(touches, READS, [(1, 1)], since=1)


def test_agents_may_stand_at_different_turns():
    touches, agents = Touches(2), np.array([[0], [1]])
    touches.note(WRITES, np.array([[0], [1]]), agents, np.array([[1], [2]]))
    touches.note(WRITES, np.array([[1], [0]]), agents, np.array([[3], [2]]))
