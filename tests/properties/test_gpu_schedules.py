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
from refcomp.schedule.primitives.table import PRIMITIVES
from refcomp.schedule.schedule import replay
from tests.properties.differential import agree, expected
from tests.strategies.computation import Computation
from tests.strategies.computes import SCANS
from tests.strategies.gpu_attempts import attempted_cases
from tests.strategies.gpu_schedules import Maker, gpu_cases
from tests.strategies.lowered_once import lowered_once
from tests.strategies.stages_outside import stages_outside

_RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
# Drawn with scans, below (tensorize), or for hosts.
_NOT_HERE = {"parallel", "tensorize"}


def _lowered(case, schedule):
    return lowered_once(schedule, case.computation.args)


def _check(case):
    func = _lowered(case, case.schedule)
    verify(func, "nested")
    assert not stages_outside(func), "the host would have to compute them"
    func = insert_barriers(inject_double_buffers(inject_virtual_threads(func)))
    verify(func, "nested")
    arrays = case.arrays()
    interpret_whole(func, arrays)
    agree(arrays, expected(case.computation), "interpreted kernels")


def test_kernels_agree_with_numpy_in_the_interpreter(request, record_property):
    examples = 1500 if request.config.getoption("--nightly") else 120
    flags, primitives = Counter(), Counter()

    @settings(max_examples=examples, deadline=None, suppress_health_check=_RELAXED)
    @given(gpu_cases())
    def run(case):
        flags.update(case.flags)
        primitives.update({step.primitive for step in case.schedule.steps})
        _check(case)

    run()
    total = flags["cases"]
    text = f"{total} GPU schedules, {flags['groups']} with several groups, {flags['shared']} shared"
    record_property("summary", f"{text}; primitives: {dict(primitives.most_common())}")
    assert flags["shared"] >= total / 2, text
    for primitive in set(PRIMITIVES) - _NOT_HERE:
        assert primitives[primitive] >= total / 50, f"{primitive} is hardly ever drawn"


def test_scans_and_blocks_agree_with_numpy_in_the_interpreter(request, record_property):
    examples = 1000 if request.config.getoption("--nightly") else 40
    counts = Counter()

    @settings(max_examples=examples, deadline=None, suppress_health_check=_RELAXED)
    @given(attempted_cases())
    def run(case):
        primitives = {step.primitive for step in case.schedule.steps}
        is_scan = case.computation.kind in SCANS
        counts.update([*case.flags, *["scans"] * is_scan, *primitives])
        _check(case)

    run()
    record_property("summary", f"scans and blocks for GPUs: {dict(counts.most_common())}")
    for wanted, part in (("scans", 4), ("tensorize", 5), ("shared", 5), ("cache_read", 4)):
        assert counts[wanted] >= counts["cases"] / part, f"{wanted}: {counts}"


@settings(max_examples=30, suppress_health_check=_RELAXED, phases=[Phase.generate])
@given(gpu_cases())
def test_recorded_steps_replay_to_the_same_kernels(case):
    again = replay(case.schedule.outputs, case.schedule.steps)
    first, second = (print_func(_lowered(case, s)) for s in (case.schedule, again))
    assert first == second


def test_a_copy_for_a_stage_that_was_sent_to_the_root_is_made_in_its_kernel():
    """The outer loops of that stage are the host's: threads share its reduction alone."""
    n = refcomp.var("n")
    a, b = (refcomp.placeholder((n, 16), name=name) for name in "AB")
    k = refcomp.reduce_axis((0, 16), "k")
    c = refcomp.compute((n, n), lambda i, j: refcomp.sum(a[i, k] * b[j, k], axis=k), name="C")
    maker = Maker(None, Computation("matmul", (a, b, c), (c,), {n: 3}))
    inner = maker.s[c].split(k, 2)[1]
    maker.s[c].reorder(*c.op.axis, inner)
    maker.s[c].bind(inner, refcomp.thread_axis((0, 2), "threadIdx.x"))
    copy = maker.s.cache_read(a, "local", [c])
    maker.s[copy].compute_at(maker.s[c], c.op.axis[0])
    assert stages_outside(refcomp.lower(maker.s, [a, b, c])) == [copy.op.name]
    maker.settle()
    assert stages_outside(refcomp.lower(maker.s, [a, b, c])) == []
