"""The programs on the way from lowered loop IR to what is compiled, each of which can be run.

A program with threads has no order in which it can be run until virtual threads are in order and
barriers in place: an early one is run with those passes that see to it, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refcomp.driver.pipeline import steps_for
from refcomp.driver.steps import CHECK_ACCESSES, Made, PipelineStep, run_pass, run_step
from refcomp.ir.func import PrimFunc, Program
from refcomp.oracle.exact.stand_ins import with_stand_ins

_ORDERING = ("inject_virtual_threads", "inject_double_buffers", "insert_barriers")
# These may round in another way, within the bounds of what they replace.
_ROUNDING = ("fuse_multiply_add", "lower_intrinsics")
# Behind these a program looks at the bits of floats, which field elements have not.
_BITS = ("lower_intrinsics", "lower_bfloat16")


@dataclass(frozen=True, slots=True)
class Version:
    """The program that step `name` made; `rest` are the steps to come. `rounds`: it may round in
    another way than the one before. `is_exact`: it has a meaning on field elements, too."""

    name: str
    made: Made
    rest: tuple[PipelineStep, ...] = ()
    rounds: bool = False
    is_exact: bool = True

    @property
    def program(self) -> PrimFunc | Program:
        """The program as it can be run, by itself: the functions that it calls have stand-ins."""
        if isinstance(self.made, Program):
            return self.made  # a host that launches kernels calls nothing else
        return with_stand_ins(in_order(self.made, self.rest))


def in_order(func: PrimFunc, steps: Sequence[PipelineStep]) -> PrimFunc:
    """`func` with virtual threads in order and barriers in place, if that is still to come."""
    for step in steps:
        if step.name in _ORDERING:
            func = run_pass(step, func)
    return func


def versions(func: PrimFunc, kind: str) -> Iterator[Version]:
    """The lowered `func`, and what each pass for targets of `kind` made of it that changed it.

    Bounds are not checked (`check_accesses`): the interpreter itself refuses what leaves a buffer.
    """
    steps = [step for step in steps_for(kind) if step.name != CHECK_ACCESSES.name]
    yield Version("lowering", func, tuple(steps))
    made: Made = func
    is_exact = True
    for number, step in enumerate(steps, 1):
        changed = run_step(step, made)
        if changed is not made:
            is_exact &= step.name not in _BITS and isinstance(changed, PrimFunc)
            rounds = step.name in _ROUNDING
            yield Version(step.name, changed, tuple(steps[number:]), rounds, is_exact)
        made = changed
