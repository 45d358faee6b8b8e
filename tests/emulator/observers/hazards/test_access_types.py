"""Types of accesses conflict symmetrically, and group atomics only with other groups."""

from itertools import product

from refcomp.emulator.observers.hazards.access_types import (
    CONFLICTS,
    PAST_TENSE,
    PRESENT_TENSE,
    AccessType,
)

_ALL = list(AccessType)


def _conflict(first, second):
    """Return None, "any" (accesses of any groups conflict) or "far" (only of different groups)."""
    found = {one.access_type: one.is_only_between_groups for one in CONFLICTS[first]}
    return None if second not in found else "far" if found[second] else "any"


def test_conflicts_are_symmetric():
    for first, second in product(_ALL, _ALL):
        assert _conflict(first, second) == _conflict(second, first), (first, second)


def test_only_accesses_that_change_nothing_together_do_not_conflict():
    assert _conflict(AccessType.READ, AccessType.READ) is None
    assert _conflict(AccessType.READ, AccessType.WRITE) == "any"
    assert _conflict(AccessType.WRITE, AccessType.WRITE) == "any"
    assert _conflict(AccessType.READ, AccessType.UPDATE) == "any"
    assert _conflict(AccessType.UPDATE, AccessType.UPDATE) is None
    assert _conflict(AccessType.ATOMIC_READ, AccessType.UPDATE) is None
    assert _conflict(AccessType.READ, AccessType.COMPARE_SWAP) is None


def test_atomics_of_a_group_conflict_with_other_groups():
    assert _conflict(AccessType.GROUP_UPDATE, AccessType.UPDATE) == "far"
    assert _conflict(AccessType.GROUP_UPDATE, AccessType.GROUP_UPDATE) == "far"
    assert _conflict(AccessType.GROUP_UPDATE, AccessType.READ) == "any"
    assert _conflict(AccessType.GROUP_ATOMIC_READ, AccessType.UPDATE) == "far"
    assert _conflict(AccessType.GROUP_ATOMIC_READ, AccessType.GROUP_ATOMIC_READ) is None


def test_each_type_has_verbs():
    assert set(PRESENT_TENSE) == set(PAST_TENSE) == set(_ALL)
