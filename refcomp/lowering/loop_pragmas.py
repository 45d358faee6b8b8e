"""The pragmas of loops: those that passes read, and those of parallel loops.

Before (schedule):  s[B].parallel(i); s[B].pragma(i, "parallel_stride_pattern")
After:              pragma parallel_stride_pattern 1 { for i in range(n) parallel { ... } }

Refuses pragmas of parallel loops that are attached to other loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.dtype import I64
from refcomp.ir.expr import IntImm
from refcomp.ir.stmt import PARALLEL, STRIDE_PATTERN, Origin, Pragma, Stmt
from refcomp.schedule.stage import BARRIER_WHEN_FINISH, Stage
from refcomp.te.tensor import IterVar


def check_parallel_pragmas(stages: Sequence[Stage]) -> None:
    """Raise UserError for a pragma of parallel loops that is attached to another loop."""
    for stage in stages:
        for pragma in stage.loops.pragmas:
            is_parallel = stage.loops.marks.get(pragma.axis) == PARALLEL
            if pragma.key in (STRIDE_PATTERN, BARRIER_WHEN_FINISH) and not is_parallel:
                stage.refuse(
                    "pragma",
                    pragma.axis.name,
                    f"{pragma.key} is for parallel loops, and it is not parallel",
                    f"call s[{stage.name}].parallel({pragma.axis.name}), or leave the pragma out",
                    earlier=[stage.declaration()],
                )


def with_pragmas(
    stage: Stage, axis: IterVar, loop: Stmt, origin: Origin | None
) -> Stmt:
    """Return `loop`, which is that of `axis`, inside its pragmas.

    Texts belong to the function (see `hints.imported_texts`). A parallel loop ends with a
    barrier, so that the pragma for it has no statement.
    """
    for pragma in stage.loops.pragmas:
        is_number = isinstance(pragma.value, int)
        if pragma.axis is axis and is_number and pragma.key != BARRIER_WHEN_FINISH:
            loop = Pragma(pragma.key, IntImm(int(pragma.value), I64), loop, origin)
    return loop
