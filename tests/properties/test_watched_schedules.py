"""Kernels of random schedules, after all passes for OpenCL, run where each access is watched."""

from collections import Counter

import pytest

from refcomp.driver.backends import as_target
from refcomp.driver.pipeline import run_device_passes, steps_for
from refcomp.driver.steps import run_step
from refcomp.foundation.target import limits_of
from refcomp.ir.printer import print_program
from refcomp.ir.rewrite import with_fields
from refcomp.oracle.interpreter.interpret import InterpretError
from refcomp.oracle.lockstep.interpret import interpret_program
from refcomp.passes.insert_barriers import insert_barriers
from tests.properties.differential import agree, expected
from tests.properties.oclgrind import drawn, run_watched
from tests.strategies.gpu_schedules import gpu_cases


def _cases(request, few, many):
    count = many if request.config.getoption("--nightly") else few
    return {f"case{i}": case for i, case in enumerate(drawn(gpu_cases(), count))}


def _lowered(case, name):
    return with_fields(case.func, name=name)


@pytest.mark.oclgrind
def test_no_race_nothing_uninitialised_and_numpy_s_results(tmp_path, request, record_property):
    cases, limits = _cases(request, 80, 600), limits_of(as_target("opencl"), None)
    programs = {n: run_device_passes(_lowered(c, n), "opencl", limits) for n, c in cases.items()}
    runs = {name: (programs[name], case.arrays()) for name, case in cases.items()}
    for name, watched in run_watched(runs, tmp_path).items():
        wanted, text = expected(cases[name].computation), print_program(programs[name])
        assert watched.findings == [], text
        agree([a.view(w.dtype) for a, w in zip(watched.arrays, wanted, strict=True)], wanted, text)
    flags = Counter(flag for case in cases.values() for flag in case.flags)
    record_property("summary", f"schedules under Oclgrind: {dict(flags)}")
    assert flags["cases"] >= 60 and flags["groups"] >= 30 and flags["shared"] >= 30


def _without_barriers(case, name):
    made = _lowered(case, name)
    for step in steps_for("opencl"):
        made = made if step.function is insert_barriers else run_step(step, made)
    return made


def _is_refused(program, arrays):
    try:
        interpret_program(program, arrays)
    except InterpretError:
        return True
    return False


@pytest.mark.oclgrind
def test_both_judges_miss_the_same_barriers(tmp_path, request, record_property):
    cases = _cases(request, 60, 400)
    runs = {n: (_without_barriers(case, n), case.arrays()) for n, case in cases.items()}
    missed = 0
    for name, watched in run_watched(runs, tmp_path).items():
        program = runs[name][0]
        is_refused = _is_refused(program, cases[name].arrays())
        assert is_refused == bool(watched.findings), (print_program(program), watched.findings)
        missed += is_refused
    record_property("summary", f"schedules without their barriers: {missed} of {len(runs)} wrong")
    assert missed >= len(runs) / 10
