"""The programs on the way from lowered loop IR to what is compiled, each of which can run.

A program with threads can run only when virtual threads are in order and barriers in place. So an
early program runs after the passes that ensure both, and after no other passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from refcomp.driver.pipeline import steps_for
from refcomp.driver.steps import (
    CHECK_ACCESSES,
    FuncOrProgram,
    PipelineStep,
    run_pass,
    run_step,
)
from refcomp.foundation.options import build_options
from refcomp.ir.func import PrimFunc, Program
from refcomp.oracle.exact.stand_ins import with_stand_ins

_ORDERING = ("inject_virtual_threads", "inject_double_buffers", "insert_barriers")
# Passes whose result may round differently, within the error bounds of the replaced expressions.
_ROUNDING = ("fuse_multiply_add", "lower_intrinsics", "expand_vector_maths")
# After these passes a program uses the bits of floats, which field elements do not have.
_BITS = ("lower_intrinsics", "lower_bfloat16", "expand_vector_maths")


@dataclass(frozen=True)
class Version:
    """The program after one step of the pipeline."""

    name: str  # the name of the step
    made: FuncOrProgram
    rest: tuple[PipelineStep, ...] = ()  # the following steps
    rounds: bool = False  # True if it may round differently from the version before
    is_exact: bool = True  # True if it also has a meaning on field elements

    @cached_property
    def program(self) -> PrimFunc | Program:
        """Return the program, which can run alone: the functions that it calls have stand-ins."""
        if isinstance(self.made, Program):
            return self.made  # a host that launches kernels calls nothing else
        return with_stand_ins(in_order(self.made, self.rest))


def in_order(func: PrimFunc, steps: Sequence[PipelineStep]) -> PrimFunc:
    """Return `func` after the steps that order virtual threads and insert barriers."""
    for step in steps:
        if step.name in _ORDERING:
            with build_options(verify_steps=True):
                func = run_pass(step, func)
    return func


def versions(func: PrimFunc, kind: str) -> Iterator[Version]:
    """Yield the lowered `func`, and its version after each pass that changes it.

    Each version is verified. The passes are those for targets of `kind`, without `check_accesses`:
    the interpreter itself refuses accesses out of range.
    """
    steps = [step for step in steps_for(kind) if step.name != CHECK_ACCESSES.name]
    yield Version("lowering", func, tuple(steps))
    made: FuncOrProgram = func
    is_exact = True
    for number, step in enumerate(steps, 1):
        with build_options(verify_steps=True):
            changed = run_step(step, made)
        if changed is made:
            continue
        made = changed
        is_exact &= step.name not in _BITS and isinstance(made, PrimFunc)
        rest = tuple(steps[number:])
        yield Version(step.name, made, rest, step.name in _ROUNDING, is_exact)
