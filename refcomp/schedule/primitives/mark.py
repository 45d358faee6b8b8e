"""vectorize, unroll and parallel: how a loop is to be carried out."""

from __future__ import annotations

from typing import Any

from refcomp.errors import UserError
from refcomp.ir.expr import IntImm
from refcomp.ir.stmt import PARALLEL, UNROLLED, VECTORIZED
from refcomp.schedule.stage import Made, Stage
from refcomp.te.tensor import REDUCTION, IterVar

MAX_LANES = 1024


def vectorize(stage: Stage, made: Made, axis: Any) -> None:
    """The loop, data-parallel and of constant extent 1 to 1024, becomes vector operations."""
    loop = _unmarked_loop(stage, axis, "vectorize")
    _refuse_reduction(
        stage, loop, "vectorize", "rfactor or reorder so that an output axis is inside"
    )
    lanes = _constant_extent(stage, loop, "vectorize", "vector length")
    if not 1 <= lanes <= MAX_LANES:
        stage.refuse(
            "vectorize",
            loop.name,
            f"the vector length {lanes} is not within 1 .. {MAX_LANES}",
            "split the axis first and vectorize the inner part",
        )
    stage.marks[loop], stage.made[loop] = VECTORIZED, made


def unroll(stage: Stage, made: Made, axis: Any) -> None:
    """The loop's iterations are written out one after the other; its extent is constant."""
    loop = _unmarked_loop(stage, axis, "unroll")
    _constant_extent(stage, loop, "unroll", "number of iterations")
    stage.marks[loop], stage.made[loop] = UNROLLED, made


def parallel(stage: Stage, made: Made, axis: Any) -> None:
    """The loop's iterations are shared among threads; it is data-parallel."""
    loop = _unmarked_loop(stage, axis, "parallel")
    _refuse_reduction(stage, loop, "parallel", "make an output axis parallel instead")
    stage.marks[loop], stage.made[loop] = PARALLEL, made


def _unmarked_loop(stage: Stage, axis: Any, primitive: str) -> IterVar:
    loop = stage.leaf(axis, primitive)
    if loop in stage.marks:
        stage.refuse(
            primitive, loop.name, f"it is {stage.marks[loop]} already", "mark each loop once"
        )
    return loop


def _refuse_reduction(stage: Stage, loop: IterVar, primitive: str, remedy: str) -> None:
    if loop.kind == REDUCTION:
        why = "it is a reduction axis: its iterations all update the same elements"
        stage.refuse(primitive, loop.name, why, remedy)


def _constant_extent(stage: Stage, loop: IterVar, primitive: str, what: str) -> int:
    if isinstance(loop.extent, IntImm):
        return loop.extent.value
    raise UserError(
        f"cannot {primitive} axis {loop.name} of stage {stage.name}",
        where=f"stage {stage.name}",
        why=f"the {what} is not a constant known when the schedule is made",
        remedy=f"split it by a factor and {primitive} the inner loop",
    )
