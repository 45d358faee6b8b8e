"""vectorize, unroll and parallel: how a loop is to be carried out."""

from __future__ import annotations

from typing import Any

from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr
from refcomp.ir.stmt import PARALLEL, UNROLLED, VECTORIZED, VTHREAD
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.tensor import REDUCTION, IterVar

MAX_LANES = 1024
_ONCE = "mark each loop once"
# The marks of loops of constant extent: their primitive, and what the extent is.
_CONSTANT = {
    VECTORIZED: ("vectorize", "vector length"),
    UNROLLED: ("unroll", "number of iterations"),
    VTHREAD: ("bind", "number of virtual threads"),
}


def vectorize(stage: Stage, provenance: Provenance, axis: Any) -> None:
    """The loop, data-parallel and of constant extent 1 to 1024, becomes vector operations."""
    loop = stage.unmarked_leaf(axis, "vectorize", _ONCE)
    _refuse_reduction(
        stage, loop, "vectorize", "rfactor or reorder so that an output axis is inside"
    )
    _check_extent(stage, loop, VECTORIZED)
    stage.loops.mark(loop, VECTORIZED, provenance)


def unroll(stage: Stage, provenance: Provenance, axis: Any) -> None:
    """The loop's iterations are written out one after the other; its extent is constant."""
    loop = stage.unmarked_leaf(axis, "unroll", _ONCE)
    _check_extent(stage, loop, UNROLLED)
    stage.loops.mark(loop, UNROLLED, provenance)


def parallel(stage: Stage, provenance: Provenance, axis: Any) -> None:
    """The loop's iterations are shared among threads; it is data-parallel."""
    loop = stage.unmarked_leaf(axis, "parallel", _ONCE)
    _refuse_reduction(stage, loop, "parallel", "make an output axis parallel instead")
    stage.loops.mark(loop, PARALLEL, provenance)


def _refuse_reduction(stage: Stage, loop: IterVar, primitive: str, remedy: str) -> None:
    if loop.kind == REDUCTION:
        why = "it is a reduction axis: its iterations all update the same elements"
        stage.refuse(primitive, loop.name, why, remedy)


def _check_extent(stage: Stage, loop: IterVar, mark: str) -> None:
    """An attached stage has the extents of what is needed of it: these are known to lowering."""
    if stage.attach_point is None:
        check_extent(stage, loop, loop.extent, mark)


def check_extent(stage: Stage, loop: IterVar, extent: Expr, mark: str) -> None:
    """UserError unless a loop of `extent` can be carried out as `mark` says."""
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
