"""The pipeline of each kind of target: which steps it has, and running them."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.driver.backends import backend_of, backends
from refcomp.driver.steps import (
    FuncOrProgram,
    Pass,
    PipelineStep,
    Scope,
    run_step,
    verify_made,
)
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.options import current_options
from refcomp.foundation.python_limits import paused_collector
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.verify import Level

_NAME_THE_STEP = (
    "this is a bug of refcomp; set REFCOMP_VERIFY_STEPS to 1, which names the step that is wrong, "
    "and report its message"
)
# Steps that are not passes over one function.
_OF_PROGRAMS = (Scope.SPLIT, Scope.DEVICE_LIMITS, Scope.LAUNCHES)


def steps_for(kind: str) -> tuple[PipelineStep, ...]:
    """Return all steps for a kind of target, in order, as far as the build options license them."""
    options = current_options()
    steps = backend_of(kind).steps
    return tuple(
        step for step in steps if not step.licence or getattr(options, step.licence)
    )


def passes_for(kind: str) -> tuple[PipelineStep, ...]:
    """Return those of `steps_for` that take a function whole and keep it a function."""
    return tuple(step for step in steps_for(kind) if step.scope == Scope.FUNCTION)


def run_pipeline(
    func: PrimFunc, kind: str, limits: DeviceLimits | None = None
) -> FuncOrProgram:
    """Run all steps for `kind`, and verify the result.

    With the build option `verify_steps`, `func` and each result that changed are verified, too.
    Kernels that ask for more than `limits` are refused (UserError); without `limits`, none are.
    """
    return _run_steps(steps_for(kind), func, limits)


def run_passes(func: PrimFunc, kind: str) -> PrimFunc:
    """Run `passes_for(kind)`: all steps of a host's pipeline, those before the split of others.

    Results are verified as by `run_pipeline`.
    """
    made = _run_steps(passes_for(kind), func)
    assert isinstance(made, PrimFunc)
    return made


@paused_collector()
def _run_steps(
    steps: Sequence[PipelineStep], func: PrimFunc, limits: DeviceLimits | None = None
) -> FuncOrProgram:
    made: FuncOrProgram = func
    if current_options().verify_steps:
        verify_made(func, Level.NESTED, after="lowering")
    for step in steps:
        made = run_step(step, made, limits)
    if not current_options().verify_steps:
        last = steps[-1].level if steps else Level.NESTED
        verify_made(made, last, after="all steps", remedy=_NAME_THE_STEP)
    return made


def run_device_passes(func: PrimFunc, kind: str, limits: DeviceLimits) -> Program:
    """Run all steps for a kind of device. Raises UserError for what no device of `limits` can."""
    program = run_pipeline(func, kind, limits)
    assert isinstance(program, Program)
    return program


def all_passes() -> dict[str, Pass]:
    """Return every pass by name, for those who call passes one at a time."""
    passes: dict[str, Pass] = {}
    for step in _all_steps():
        if step.scope not in _OF_PROGRAMS:
            passes.setdefault(step.name, step.function)  # refcomp's own come first
    return passes


def _all_steps() -> list[PipelineStep]:
    return [step for backend in backends() for step in backend.steps]


def find_pass(name: str) -> Pass:
    """Return the pass of that name. Raises UserError that lists all when there is none."""
    passes = all_passes()
    if name in {step.name for step in _all_steps() if step.scope in _OF_PROGRAMS}:
        raise UserError(
            f"the step {name} cannot be run alone",
            why="it makes a program of a function, or needs a program",
            remedy="`refcomp pass --all --target opencl` runs it; `refcomp show` shows it",
        )
    if name not in passes:
        remedy = advise(name, passes, f"passes: {', '.join(passes)}")
        raise UserError(f"{name!r} is not a pass", remedy=remedy)
    return passes[name]
