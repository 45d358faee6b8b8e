"""At which level loop-IR text stands, and which passes it has still to take.

The text is a user's: a rule that it breaks is a UserError here, with the guilty statement.
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
from refcomp.ir.verify import find_fault


def level_of(func: PrimFunc) -> str:
    """The level of `func`, the last where several fit; UserError when it is legal at none."""
    if any(isinstance(node, BufferLoad | BufferStore) for node in walk(func)):
        check_level(func, "nested")
        return "nested"
    if any(isinstance(node, LaunchKernel) for node in walk(func)):
        check_level(func, "launch")
        return "launch"
    for level in ("nested", "host"):
        if find_fault(func, level) is None:
            return level
    check_level(func, "flat")
    return "flat"


def check_level(func: PrimFunc, level: str) -> None:
    """UserError when `func` is not legal at `level`."""
    fault = find_fault(func, level)
    if fault is not None:
        line = print_stmt(fault.stmt).splitlines()[0] if fault.stmt else "its header"
        raise UserError(
            f"{func.name} is not legal at level {level}: {fault.what}",
            where=f"function {func.name}, {line}",
        )


def check_whole(funcs: Sequence[PrimFunc], name: str) -> None:
    """UserError when passes have been run on any of `funcs`, which the text `name` holds."""
    levels = {level_of(func) for func in funcs}
    if levels != {"nested"}:
        raise UserError(
            f"{name} is not at the level that compiling begins with",
            why=f"the levels of its functions: {', '.join(sorted(levels))}",
            remedy="give the text as `refcomp lower` prints it; for the target llvm, passed text "
            "goes on by `refcomp print --all-passes` and `refcomp assemble`",
        )


def steps_left(func: PrimFunc, kind: str) -> tuple[PipelineStep, ...]:
    """The steps that `func` has still to take for a kind of target, in order. UserError."""
    level = level_of(func)
    if level == "launch":
        raise UserError(
            f"{func.name} launches kernels: no pass takes it any further",
            remedy="`refcomp execute` runs it; start from what `refcomp lower` prints",
        )
    steps = steps_for(kind)
    if level == "nested":
        return steps
    flattened = sum(1 for step in steps if step.level == "nested") + 1
    if level == "flat" or any(step.scope == Scope.SPLIT for step in steps):
        return steps[flattened:]
    # No level tells whether intrinsics are lowered.
    return tuple(
        step
        for step in steps[flattened:]
        if step.name == "lower_intrinsics" and step.function(func) is not func
    )
