"""Checked builds of random programs: what is right is never refused, what is wrong always is."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import refcomp
from refcomp.compiler import build_functions
from refcomp.foundation.errors import OutOfBounds, UserError
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.make_selects_lazy import make_selects_lazy
from tests.properties.checked_schedules import check_bad_data, check_each_pass
from tests.properties.device_differential import check_opencl
from tests.properties.differential import RedZoned, check_compiled
from tests.properties.test_schedules import cases
from tests.strategies.funcs import assert_same_values, make_arguments
from tests.strategies.gpu_schedules import gpu_cases
from tests.strategies.unruly_funcs import unruly_funcs

_GATHERS = ("gather", "gather of computed")


def _run(strategy, examples, number, check, request):
    """Holds what `strategy` draws to `check`; what that returned, in order."""
    seen = []
    count = 20 * examples if request.config.getoption("--nightly") else examples

    @seed(number)
    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=[*HealthCheck])
    @given(strategy)
    def run(case):
        with refcomp.build_options(check_bounds=True):
            seen.append(check(case))

    run()
    return seen


def test_every_pass_keeps_the_checks_of_schedules_right(request):
    _run(cases(), 40, 1, lambda case: check_each_pass(*case, "llvm"), request)


def test_every_pass_keeps_the_checks_of_kernels_right(request):
    """The interpreter refuses races on the status, too."""
    _run(gpu_cases(), 15, 2, lambda case: check_each_pass(*case[:2], "opencl"), request)


def test_every_pass_keeps_the_checks_of_gathers_in_kernels_right(request):
    kernels = gpu_cases(_GATHERS)
    _run(kernels, 10, 3, lambda case: check_each_pass(*case[:2], "opencl"), request)


@pytest.mark.llvm
def test_right_schedules_are_not_refused_by_machine_code(request):
    _run(cases(), 20, 4, lambda case: check_compiled(*case), request)


@pytest.mark.pocl
def test_right_schedules_are_not_refused_by_kernels(request):
    _run(gpu_cases(), 10, 5, lambda case: check_opencl(*case[:2]), request)


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_bad_data_are_refused_exactly_where_numpy_refuses_them(target, request):
    gathers = st.tuples(cases(_GATHERS), st.integers(0, 999))

    def check(drawn):
        return check_bad_data(*drawn[0], target, drawn[1])

    seen = _run(gathers, 30, 6, check, request)
    assert set(seen) >= {(True, True), (True, False)}


@pytest.mark.pocl
def test_bad_data_are_refused_by_kernels_exactly_where_numpy_refuses_them(request):
    gathers = st.tuples(gpu_cases(_GATHERS), st.integers(0, 999))

    def check(drawn):
        return check_bad_data(*drawn[0][:2], "opencl", drawn[1])

    seen = _run(gathers, 15, 7, check, request)
    assert set(seen) >= {(True, True), (True, False)}


def _is_refused(func, arguments):
    """None where the function reads what nobody wrote: that is not what is checked."""
    try:
        interpret(make_selects_lazy(func), arguments)
    except InterpretError as error:
        return None if "never written" in error.what else True
    return False


def _check_unruly(drawn):
    """Machine code raises OutOfBounds where the interpreter refuses, and writes nothing around."""
    func, symbols = drawn
    wanted, given_ = make_arguments(func, symbols), make_arguments(func, symbols)
    is_refused = _is_refused(func, wanted)
    if is_refused is None:
        return None
    try:
        module = build_functions([func], "llvm")
    except UserError:  # it is wrong whatever the arguments are
        assert is_refused
        return True
    zoned = [RedZoned(a) if isinstance(a, np.ndarray) else a for a in given_]
    found = [a.array if isinstance(a, RedZoned) else a for a in zoned]
    if is_refused:
        with pytest.raises(UserError) as caught:  # as it is called, or by a check
            module(*found)
        is_refused = type(caught.value)
    else:
        module(*found)
        assert_same_values(wanted, found)
    assert all(a.is_intact() for a in zoned if isinstance(a, RedZoned))
    return is_refused


@pytest.mark.llvm
def test_machine_code_refuses_what_the_interpreter_refuses(request):
    seen = _run(unruly_funcs(), 40, 8, _check_unruly, request)
    assert {OutOfBounds, False} <= set(seen)
    assert seen.count(None) <= len(seen) / 2  # functions that read what nothing wrote
