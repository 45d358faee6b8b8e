"""Random schedules: equal identities mean equal text of the loop IR, and copies are equal."""

import copy

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import refcomp
from refcomp.ir.printer import print_func
from refcomp.schedule.identity import schedule_identity
from refcomp.schedule.schedule import replay
from tests.properties.targets import device_cases
from tests.properties.test_schedules import cases

_RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def _text(schedule, args):
    return print_func(refcomp.lower(schedule, args, "f"))


def _copied(schedule, args):
    """The same computation in other objects, as a second program would make it."""
    clone = copy.copy(schedule)
    clone.outputs, clone.stages, others = copy.deepcopy((schedule.outputs, schedule.stages, args))
    return clone, others


@pytest.mark.parametrize("draw_cases", [cases, device_cases])
def test_an_identity_belongs_to_one_text(draw_cases):
    texts = {}

    def record(schedule, args):
        identity = schedule_identity(schedule, args)
        assert identity is not None
        text = _text(schedule, args)
        assert texts.setdefault(identity, text) == text

    @seed(4711)
    @settings(max_examples=60, deadline=None, suppress_health_check=_RELAXED)
    @given(draw_cases(), st.data())
    def check(case, data):
        computation, schedule = case
        args = list(computation.args)
        record(schedule, args)
        assert schedule_identity(*_copied(schedule, args)) == schedule_identity(schedule, args)
        again = replay(schedule.outputs, schedule.steps)
        assert schedule_identity(again, args) == schedule_identity(schedule, args)
        record(refcomp.create_schedule(list(schedule.outputs)), args)
        if len(args) > 1:
            record(schedule, data.draw(st.permutations(args)))

    check()
    assert len(set(texts.values())) > 60
