"""Schedules of computations on vectors: numpy and every target agree exactly.

By day, the interpreter runs 63 schedules and machine code 45. For GPUs, the interpreter runs 30
after each pass, OpenCL 24, and the emulated gfx942, the emulated gfx1100 and g++ 4 each. With
--nightly, each runs at
least 200.
"""

from functools import partial

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.properties.device_differential import (
    check_cuda,
    check_emulated,
    check_every_pass,
    check_opencl_together,
)
from tests.properties.differential import check_compiled_together, check_interpreted
from tests.properties.test_schedules import cases
from tests.samples import sample_count
from tests.strategies.computes import VECTOR_EXTERNS, VECTORS
from tests.strategies.gpu_schedules import gpu_cases
from tests.strategies.lowered_once import lowered_once

_RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_INTERPRETED = sample_count(by_day=63, nightly=2000)
_COMPILED = sample_count(by_day=45, nightly=2000)
_KERNELS = sample_count(by_day=30, nightly=2000)
_OPENCL = sample_count(by_day=24, nightly=1000)
_FEW = sample_count(by_day=4, nightly=200)
_ON_HOSTS = (*VECTORS, *VECTOR_EXTERNS)
# A scan or an extern has no loops to bind.
_ON_GPUS = tuple(kind for kind in VECTORS if "scan" not in kind)


def _run(check, examples, number, strategy):
    """Run `check` on examples of a strategy; return the names of the primitives that it drew."""
    drawn = set()

    @seed(number)
    @settings(max_examples=examples, deadline=None, suppress_health_check=_RELAXED)
    @given(strategy)
    def run(case):
        computation, schedule = case[:2]
        drawn.update(step.primitive for step in schedule.steps)
        check(computation, schedule)

    run()
    return drawn


def _run_kinds(check, examples, number, kinds, draw):
    """Run `check` on as many examples of each kind of computation."""
    drawn = set()
    for place, kind in enumerate(kinds):
        share = -(-examples // len(kinds))
        drawn |= _run(check, share, 100 * number + place, draw((kind,)))
    return drawn


def _run_together(check, *args):
    """Run `check` on all examples at once, as one module."""
    drawn = []

    def keep(computation, schedule):
        func = lowered_once(schedule, computation.args, f"case{len(drawn)}")
        drawn.append((func, computation))

    _run_kinds(keep, *args)
    check(drawn)


def test_interpreter_agrees_with_numpy_after_every_pass():
    drawn = _run_kinds(check_interpreted, _INTERPRETED, 31, _ON_HOSTS, cases)
    assert {"split", "vectorize", "compute_at", "cache_read", "parallel"} <= drawn


@pytest.mark.llvm
def test_machine_code_agrees_with_numpy():
    _run_together(check_compiled_together, _COMPILED, 32, _ON_HOSTS, cases)


def test_kernels_agree_with_numpy_after_every_pass():
    drawn = _run_kinds(check_every_pass, _KERNELS, 33, _ON_GPUS, gpu_cases)
    assert {"bind", "vectorize", "compute_at", "cache_read", "cache_write"} <= drawn


@pytest.mark.pocl
def test_opencl_agrees_with_numpy():
    _run_together(check_opencl_together, _OPENCL, 34, _ON_GPUS, gpu_cases)


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1100"])
def test_the_emulated_gpu_agrees_with_numpy(gpu):
    _run(partial(check_emulated, gpu=gpu), _FEW, 35, gpu_cases(_ON_GPUS))


@pytest.mark.gcc
def test_the_text_for_nvidia_gpus_agrees_with_numpy():
    _run(check_cuda, _FEW, 36, gpu_cases(_ON_GPUS))
