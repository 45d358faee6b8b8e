"""The level of loop-IR text, and the passes that it still needs.

The text is a user's: if it breaks a rule, the functions raise UserError with the guilty statement.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.driver.pipeline import steps_for
from refcomp.driver.steps import PipelineStep, Scope
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.func import PrimFunc
from refcomp.ir.printer import print_stmt
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import BufferStore, LaunchKernel
from refcomp.ir.verify import Level, find_fault


def level_of(func: PrimFunc) -> Level:
    """Return the level of `func`, the last one if several fit.

    Raise UserError if it is legal at none.
    """
    # These nodes exist at one level only. So the error is about that level.
    if any(isinstance(node, BufferLoad | BufferStore) for node in walk(func)):
        check_level(func, Level.NESTED)
        return Level.NESTED
    if any(isinstance(node, LaunchKernel) for node in walk(func)):
        check_level(func, Level.LAUNCH)
        return Level.LAUNCH
    for level in (Level.NESTED, Level.HOST):
        if find_fault(func, level) is None:
            return level
    check_level(func, Level.FLAT)
    return Level.FLAT


def check_level(func: PrimFunc, level: str) -> None:
    """Raise UserError if `func` is not legal at `level`."""
    fault = find_fault(func, level)
    if fault is not None:
        line = print_stmt(fault.stmt).splitlines()[0] if fault.stmt else "its header"
        raise UserError(
            f"{func.name} is not legal at level {level}: {fault.what}",
            where=f"function {func.name}, {line}",
        )


def check_unpassed(funcs: Sequence[PrimFunc], name: str) -> None:
    """Raise UserError if any of `funcs`, which `name` holds, has been through passes."""
    levels = {level_of(func) for func in funcs}
    if levels != {Level.NESTED}:
        raise UserError(
            f"{name} is not at the level that compiling begins with",
            why=f"the levels of its functions: {', '.join(sorted(levels))}",
            remedy="give the text as `refcomp lower` prints it; for the target llvm, passed text "
            "goes on by `refcomp print --all-passes` and `refcomp assemble`",
        )


def steps_left(func: PrimFunc, kind: str) -> tuple[PipelineStep, ...]:
    """Return the steps that `func` still needs for a kind of target, in order. Raise UserError."""
    level = level_of(func)
    if level == Level.LAUNCH:
        raise UserError(
            f"{func.name} launches kernels: no pass takes it any further",
            remedy="`refcomp execute` runs it; start from what `refcomp lower` prints",
        )
    steps = steps_for(kind)
    if level == Level.NESTED:
        return steps
    # The step behind the last one of the nested level is the one that flattens.
    flattened = sum(1 for step in steps if step.level == Level.NESTED) + 1
    if level == Level.FLAT or any(step.scope == Scope.SPLIT for step in steps):
        return steps[flattened:]
    # The host level does not show whether intrinsics are lowered. So try the pass.
    return tuple(
        step
        for step in steps[flattened:]
        if step.name == "lower_intrinsics" and step.function(func) is not func
    )
