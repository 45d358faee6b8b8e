"""vectorize, unroll and parallel: mark a loop for one kind of execution."""

from __future__ import annotations

from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr
from refcomp.ir.stmt import PARALLEL, UNROLLED, VECTORIZED, VTHREAD
from refcomp.schedule.stage import LoopMark, Provenance, Stage
from refcomp.te.tensor import REDUCTION, IterVar

MAX_LANES = 1024
_ONCE = "mark each loop once"
# Marks of loops that need a constant extent -> the primitive, and the name of the extent.
_CONSTANT: dict[LoopMark, tuple[str, str]] = {
    VECTORIZED: ("vectorize", "vector length"),
    UNROLLED: ("unroll", "number of iterations"),
    VTHREAD: ("bind", "number of virtual threads"),
}


def vectorize(stage: Stage, provenance: Provenance, axis: object) -> None:
    """Execute all iterations of a data-parallel loop of constant extent <= 1024 at once."""
    loop = stage.unmarked_leaf(axis, "vectorize", _ONCE)
    _refuse_reduction(
        stage, loop, "vectorize", "rfactor or reorder so that an output axis is inside"
    )
    _check_extent(stage, loop, VECTORIZED)
    stage.loops.mark(loop, VECTORIZED, provenance)


def unroll(stage: Stage, provenance: Provenance, axis: object) -> None:
    """Write the iterations of a loop of constant extent one after the other."""
    loop = stage.unmarked_leaf(axis, "unroll", _ONCE)
    _check_extent(stage, loop, UNROLLED)
    stage.loops.mark(loop, UNROLLED, provenance)


def parallel(stage: Stage, provenance: Provenance, axis: object) -> None:
    """Share the iterations of a data-parallel loop among threads."""
    loop = stage.unmarked_leaf(axis, "parallel", _ONCE)
    _refuse_reduction(stage, loop, "parallel", "make an output axis parallel instead")
    stage.loops.mark(loop, PARALLEL, provenance)


def _refuse_reduction(stage: Stage, loop: IterVar, primitive: str, remedy: str) -> None:
    if loop.kind == REDUCTION:
        why = "it is a reduction axis: its iterations all update the same elements"
        stage.refuse(primitive, loop.name, why, remedy, earlier=[stage.declaration()])


def _check_extent(stage: Stage, loop: IterVar, mark: LoopMark) -> None:
    """Check the extent, except of attached stages, whose extents only lowering knows."""
    if stage.attach_point is None:
        check_extent(stage, loop, loop.extent, mark)


def check_extent(stage: Stage, loop: IterVar, extent: Expr, mark: LoopMark) -> None:
    """Raise UserError if a loop of `extent` iterations cannot have `mark`."""
    if mark not in _CONSTANT:
        return
    primitive, what = _CONSTANT[mark]
    length = as_int(extent)
    if length is None:
        raise UserError(
            f"cannot {primitive} axis {loop.name} of stage {stage.name}",
            where=f"stage {stage.name}",
            why=f"the {what} is not a constant known when the schedule is made",
            remedy=f"split it by a factor and {primitive} the inner loop",
        )
    if mark == VECTORIZED and length > MAX_LANES:  # a loop of 0 iterations stays serial
        stage.refuse(
            "vectorize",
            loop.name,
            f"the vector length {length} is more than {MAX_LANES}",
            "split the axis first and vectorize the inner part",
        )
