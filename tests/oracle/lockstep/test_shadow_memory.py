"""Conflicts are found just where two accesses conflict, in whatever order they come."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refcomp.oracle.interpreter.races import READS, WRITES, updates_by
from refcomp.oracle.lockstep.groups import BailOut
from refcomp.oracle.lockstep.shadow_memory import ShadowMemory

_KINDS = (READS, WRITES, updates_by("add"), updates_by("max"))
_accesses = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=2)


def _record(shadow, kind, accesses, interval=1):
    at, agents = np.array(accesses).T
    return shadow.record(kind, at[:, None], agents[:, None], interval)


def _conflict(one, two):
    (kind, element, agent), (other_kind, other_element, other) = one, two
    if element != other_element or agent == other:
        return False
    return kind != other_kind or kind == WRITES


@pytest.mark.search
@settings(max_examples=600)
@given(st.lists(st.tuples(st.sampled_from(_KINDS), _accesses), min_size=2, max_size=5))
def test_a_conflict_is_found_when_its_second_access_comes(batches):
    shadow, before = ShadowMemory(2), []
    for kind, accesses in batches:
        before += [(kind, element, agent) for element, agent in accesses]
        if any(_conflict(one, two) for one, two in itertools.combinations(before, 2)):
            with pytest.raises(BailOut):
                _record(shadow, kind, accesses)
            return
        touched = {(e, a) for _, e, a in before}
        several = any((e, b) in touched for e, a in accesses for b in range(3) if b != a)
        assert _record(shadow, kind, accesses) == several


def test_what_was_before_is_over():
    shadow = ShadowMemory(2)
    _record(shadow, WRITES, [(0, 1), (1, 0)], interval=1)
    _record(shadow, READS, [(0, 0)], interval=2)
    with pytest.raises(BailOut):
        _record(shadow, READS, [(1, 1)], interval=1)


def test_agents_may_be_in_different_intervals():
    shadow, agents = ShadowMemory(2), np.array([[0], [1]])
    shadow.record(WRITES, np.array([[0], [1]]), agents, np.array([[1], [2]]))
    shadow.record(WRITES, np.array([[1], [0]]), agents, np.array([[3], [2]]))
