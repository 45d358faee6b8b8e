"""Single steps: what each scope is given, what is verified, and what comes back unchanged."""

import pytest

import refcomp
from refcomp.driver.steps import (
    OPENCL_STEPS,
    PipelineStep,
    Scope,
    kernels_of,
    print_made,
    run_pass,
    run_step,
)
from refcomp.foundation.errors import CompilerBug, UserError
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.parser import parse_func, parse_program
from refcomp.ir.printer import print_func, print_program

FUNC = parse_func("func f(A: f32[n] out) { for i in range(n) { A[i] = 1.0f32 } }")
SPLIT = next(step for step in OPENCL_STEPS if step.scope == Scope.SPLIT)
LIMITS = next(step for step in OPENCL_STEPS if step.scope == Scope.DEVICE_LIMITS)


def _named(scope):
    """A step that gives each function another name, and a list of what it was given."""
    seen = []

    def rename(func):
        seen.append(func.name)
        return func

    return PipelineStep(rename, "flat", "to be seen", scope), seen


def _program():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i] + 1, name="B")
    s = refcomp.create_schedule(b)
    s[b].bind(b.op.axis[0], refcomp.thread_axis("threadIdx.x"))
    made = refcomp.lower(s, [a, b], "f")
    for step in OPENCL_STEPS[: OPENCL_STEPS.index(SPLIT) + 1]:
        made = run_step(step, made)
    return made


def test_the_split_makes_a_program_of_a_function():
    program = _program()
    assert isinstance(program, Program)
    assert [kernel.name for kernel in kernels_of([FUNC, program])] == ["f_kernel0"]
    assert print_made([program, FUNC]) == f"{print_program(program)}\n{print_func(FUNC)}"


@pytest.mark.parametrize(
    ("scope", "given"),
    [(Scope.KERNEL, ["f_kernel0"]), (Scope.PROGRAM, ["f_kernel0", "f"])],
)
def test_a_scope_says_what_of_a_program_a_step_is_given(scope, given):
    program = _program()
    step, seen = _named(scope)
    assert run_step(step, program) is program
    assert seen == given


def test_a_function_is_given_whole():
    step, seen = _named(Scope.FUNCTION)
    assert run_step(step, FUNC) is FUNC
    assert seen == ["f"]


def test_limits_are_checked_where_they_are_known():
    program = _program()
    assert run_step(LIMITS, program) is program
    assert run_step(LIMITS, program, DeviceLimits((8, 8, 8), 8, 0)) is program
    with pytest.raises(UserError, match="has 8 threads in threadIdx.x"):
        run_step(LIMITS, program, DeviceLimits((4, 4, 4), 4, 0))


def test_a_step_that_breaks_a_function_is_caught_at_once():
    broken = PipelineStep(lambda func: func.with_body(func.body.body), "nested", "drops a loop")
    with pytest.raises(CompilerBug):
        run_pass(broken, FUNC)
    with refcomp.build_options(verify_steps=False):
        assert run_pass(broken, FUNC) is not FUNC


def test_the_host_of_a_program_is_verified_at_the_level_of_launches():
    text = print_program(_program())

    def as_kernel(func: PrimFunc) -> PrimFunc:
        return parse_program(text).kernels[0] if func.name == "f" else func

    with pytest.raises(CompilerBug):
        run_step(PipelineStep(as_kernel, "device", "", Scope.PROGRAM), _program())


def test_a_step_may_change_kernels_and_launches_together():
    program = _program()
    seen = []

    def keep(whole: Program) -> Program:
        seen.append(whole)
        return whole

    assert run_step(PipelineStep(keep, "flat", "", Scope.LAUNCHES), program) is program
    assert seen == [program]
    # A kernel that launches something is refused at the level of kernels.
    swapped = PipelineStep(
        lambda whole: Program(whole.host, (whole.host,)), "flat", "", Scope.LAUNCHES
    )
    with pytest.raises(CompilerBug):
        run_step(swapped, program)
