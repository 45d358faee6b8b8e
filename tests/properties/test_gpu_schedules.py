"""Kernels of random schedules, with barriers put in, mean what numpy does, and have no races."""

from collections import Counter

from hypothesis import HealthCheck, Phase, given, settings

import refcomp
from refcomp.ir.printer import print_func
from refcomp.ir.verify import verify
from refcomp.oracle.whole_outputs import interpret_whole
from refcomp.passes.inject_double_buffers import inject_double_buffers
from refcomp.passes.inject_virtual_threads import inject_virtual_threads
from refcomp.passes.insert_barriers import insert_barriers
from refcomp.schedule.schedule import PRIMITIVES, replay
from tests.properties.differential import agree, expected
from tests.strategies.gpu_schedules import gpu_cases

_RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
# Drawn by a property of its own (tensorize), or for hosts.
_NOT_HERE = {"parallel", "tensorize"}


def _lowered(case, schedule):
    return refcomp.lower(schedule, case.computation.args, "case")


def test_kernels_agree_with_numpy_in_the_interpreter(request, record_property):
    examples = 1500 if request.config.getoption("--nightly") else 120
    flags, primitives = Counter(), Counter()

    @settings(max_examples=examples, deadline=None, suppress_health_check=_RELAXED)
    @given(gpu_cases())
    def run(case):
        flags.update(case.flags)
        primitives.update({step.primitive for step in case.schedule.steps})
        func = _lowered(case, case.schedule)
        verify(func, "nested")
        func = insert_barriers(inject_double_buffers(inject_virtual_threads(func)))
        verify(func, "nested")
        arrays = case.arrays()
        interpret_whole(func, arrays)
        agree(arrays, expected(case.computation), "interpreted kernels")

    run()
    total = flags["cases"]
    text = f"{total} GPU schedules, {flags['groups']} with several groups, {flags['shared']} shared"
    record_property("summary", f"{text}; primitives: {dict(primitives.most_common())}")
    assert flags["shared"] >= total * 2 / 5, text
    for primitive in set(PRIMITIVES) - _NOT_HERE:
        assert primitives[primitive] >= total / 50, f"{primitive} is hardly ever drawn"


@settings(max_examples=30, suppress_health_check=_RELAXED, phases=[Phase.generate])
@given(gpu_cases())
def test_recorded_steps_replay_to_the_same_kernels(case):
    again = replay(case.schedule.outputs, case.schedule.steps)
    first, second = (print_func(_lowered(case, s)) for s in (case.schedule, again))
    assert first == second
