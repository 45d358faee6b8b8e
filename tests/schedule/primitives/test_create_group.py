"""A group is a step of the schedule: copies and replays have it too."""

import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError


def _chain():
    """A placeholder, and three stages one after another."""
    a = rc.placeholder((8,), name="A")
    b = rc.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = rc.compute((8,), lambda i: b[i] * 2.0, name="C")
    d = rc.compute((8,), lambda i: c[i] - 1.0, name="D")
    return rc.create_schedule(d), a, b, c, d


def _members(schedule):
    return [[stage.name for stage in group.stages] for group in schedule.groups]


def test_copies_have_the_groups():
    s, a, b, c, d = _chain()
    s.create_group(outputs=c, inputs=a).compute_at(s[d], d.op.axis[0])
    s.create_group(outputs=[c], inputs=[b], include_inputs=True)
    for again in (s.copy(), s.copy(marks=False), s.normalize(), rc.replay(s.outputs, s.steps)):
        assert _members(again) == [["B", "C"], ["B", "C"]]
        assert again[b].group is again.groups[1]
        assert all(stage in again.stages for stage in again[b].group.stages)
        assert [str(step) for step in again.steps] == [str(step) for step in s.steps]
    assert str(s.steps[0]) == "s[C].create_group([s[C]], [s[A]])"
    assert str(s.steps[-1]) == "s[C].create_group([s[C]], [s[B]], include_inputs=True)"


def test_a_group_of_a_copy_moves_the_stages_of_the_copy():
    s, a, _b, c, d = _chain()
    s.create_group(outputs=c, inputs=a)
    again = s.copy()
    again.groups[0].compute_at(again[d], d.op.axis[0])
    assert [stage.placement != "root" for stage in again.stages] == [False, True, True, False]
    assert all(stage.placement == "root" for stage in s.stages)


def test_groups_are_found_after_stages_were_made():
    s, a, b, c, _d = _chain()
    copied = s.cache_read(b, "local", [c])
    s.create_group(outputs=c, inputs=a)
    assert _members(s) == _members(s.copy()) == [["B", copied.op.name, "C"]]


def test_a_beginning_of_the_steps_has_the_groups_made_so_far():
    s, a, b, c, _d = _chain()
    s.create_group(outputs=b, inputs=a)
    s.create_group(outputs=c, inputs=a)
    assert _members(rc.replay(s.outputs, s.steps[:1])) == [["B"]]


@pytest.mark.parametrize(("outputs", "inputs"), [("a", "d"), ("", "a"), ("b", "")])
def test_groups_without_stages_are_refused_and_not_recorded(outputs, inputs):
    s, *tensors = _chain()
    named = dict(zip("abcd", tensors, strict=True))
    with pytest.raises(UserError, match="the group has no stages"):
        s.create_group([named[n] for n in outputs], [named[n] for n in inputs])
    assert not s.steps and not s.groups
