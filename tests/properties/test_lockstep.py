"""What runs in step gives the bits, and the findings, of the plain interpreter."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from refcomp.driver.backends import as_target
from refcomp.driver.pipeline import run_device_passes
from refcomp.foundation.errors import RefcompError
from refcomp.foundation.target import limits_of
from refcomp.ir.func import Program
from refcomp.ir.kernels import is_bound
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func, print_program
from refcomp.oracle.lockstep.interpret import interpret, interpret_program
from refcomp.oracle.lockstep.launch import LockstepShortcut
from refcomp.passes.inject_double_buffers import inject_double_buffers
from refcomp.passes.inject_virtual_threads import inject_virtual_threads
from refcomp.passes.insert_barriers import insert_barriers
from tests.oracle.lockstep.batches import same_bits
from tests.properties.broken_kernels import BROKEN, SOUND
from tests.strategies.funcs import make_arguments, runnable_funcs
from tests.strategies.gpu_schedules import gpu_cases
from tests.strategies.racy_kernels import kernel_texts

_RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.fixture
def counts(monkeypatch):
    """How many kernels and loops have run in step, and how many have not, and how many runs have
    found something."""
    counts = Counter()
    run_loop = LockstepShortcut.__call__

    def counted(shortcut, frame, loop):
        has_run = run_loop(shortcut, frame, loop)
        counts[f"{'kernel' if is_bound(loop) else 'loops'} {has_run}"] += 1
        return has_run

    monkeypatch.setattr(LockstepShortcut, "__call__", counted)
    return counts


def _outcome(function, args, in_step):
    """What was found, and the arrays then."""
    args = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    run = interpret_program if isinstance(function, Program) else interpret
    try:
        run(function, args, in_step=in_step)
    except RefcompError as error:
        return str(error), args
    return "", args


def agree(function, args, counts):
    """Both interpreters find the same in `function` on `args`, and leave the same in them."""
    found, plain = _outcome(function, args, None)
    told, quick = _outcome(function, args, 1)
    text = print_program(function) if isinstance(function, Program) else print_func(function)
    assert told == found, text
    for one, two in zip(plain, quick, strict=True):
        assert same_bits(np.asarray(one), np.asarray(two)), text
    counts["findings"] += bool(found)
    counts["runs"] += 1


def _told(what, counts, record_property):
    record_property("summary", f"in step, {what}: {dict(sorted(counts.items()))}")


@pytest.mark.parametrize("kernel", SOUND, ids=lambda kernel: kernel.name)
def test_sound_kernels_run_in_step(kernel, counts):
    agree(parse_func(kernel.text), kernel.arguments(), counts)
    assert counts["findings"] == counts["kernel False"] == 0 < counts["kernel True"]


@pytest.mark.parametrize(("kernel", "how"), BROKEN, ids=lambda part: part.name)
def test_broken_kernels_are_found_out(kernel, how, counts):
    agree(parse_func(kernel.broken(how)), kernel.arguments(), counts)
    assert counts["findings"] == 1 and counts["kernel False"] == 1


def test_small_kernels_right_and_wrong(request, counts, record_property):
    examples = 6000 if request.config.getoption("--nightly") else 400

    @settings(max_examples=examples)
    @given(kernel_texts())
    def run(text):
        args = [np.zeros(6, np.int32), np.arange(8, dtype=np.int32)]
        agree(parse_func(text.replace("NAME", "f")), args, counts)

    run()
    _told("small kernels", counts, record_property)
    assert counts["kernel True"] >= counts["runs"] / 10
    assert counts["findings"] >= counts["runs"] / 10
    # What is given up has something to find.
    assert counts["kernel False"] == counts["findings"]


def test_scheduled_kernels_with_barriers_and_without(request, counts, record_property):
    examples = 600 if request.config.getoption("--nightly") else 40

    @settings(max_examples=examples, deadline=None, suppress_health_check=_RELAXED)
    @given(gpu_cases())
    def run(case):
        func = inject_double_buffers(inject_virtual_threads(case.func))
        agree(insert_barriers(func), case.arrays(), counts)
        agree(func, case.arrays(), counts)

    run()
    _told("scheduled kernels", counts, record_property)
    assert counts["kernel True"] >= counts["runs"] / 2
    assert counts["findings"] >= counts["runs"] / 20


def test_kernels_as_they_are_compiled(request, counts, record_property):
    examples = 400 if request.config.getoption("--nightly") else 30
    limits = limits_of(as_target("opencl"), None)

    @settings(max_examples=examples, deadline=None, suppress_health_check=_RELAXED)
    @given(gpu_cases())
    def run(case):
        agree(run_device_passes(case.func, "opencl", limits), case.arrays(), counts)

    run()
    _told("compiled kernels", counts, record_property)
    assert counts["kernel True"] >= counts["runs"] / 2


@pytest.mark.parametrize("level", ["nested", "flat", "host"])
def test_loops_of_the_host(level, request, counts, record_property):
    examples = 3000 if request.config.getoption("--nightly") else 150

    @settings(max_examples=examples)
    @given(runnable_funcs(level, rare=True))
    def run(drawn):
        func, symbols = drawn
        agree(func, make_arguments(func, symbols), counts)

    run()
    _told(f"loops at the {level} level", counts, record_property)
    assert counts["loops True"] >= counts["runs"] / 10
