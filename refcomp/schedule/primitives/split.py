"""split and tile: one loop becomes two nested ones.

Extents need not divide: iterations beyond the end are guarded.
"""

from __future__ import annotations

from refcomp.foundation.errors import UserError
from refcomp.schedule.relations import Split, split_extents
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.tensor import IterVar


def split(
    stage: Stage,
    provenance: Provenance,
    parent: object,
    factor: int | None = None,
    nparts: int | None = None,
) -> tuple[IterVar, IterVar]:
    """Replace loop `parent` by an outer loop around an inner loop, and return both."""
    loop = stage.replaceable_leaf(parent, "split")
    if (factor is None) == (nparts is None):
        stage.refuse(
            "split",
            loop.name,
            "it needs either factor or nparts",
            "give exactly one of them",
        )
    if factor is not None:
        _check_size(factor, "factor", stage, loop)
    if nparts is not None:
        _check_size(nparts, "nparts", stage, loop)
    outer_extent, inner_extent = split_extents(loop.extent, factor, nparts)
    outer = stage.derive_axis(f"{loop.name}.outer", outer_extent, loop.kind, provenance)
    inner = stage.derive_axis(f"{loop.name}.inner", inner_extent, loop.kind, provenance)
    relation = Split(loop, outer, inner, factor, nparts)
    stage.loops.relations.append(relation)
    position = stage.loops.position(loop)
    stage.loops.leaves[position : position + 1] = [outer, inner]
    if stage.loops.statement is not None:
        # Few programs have a statement.
        from refcomp.schedule.statement_loops import split_statement  # noqa: PLC0415

        split_statement(stage, relation, provenance)
    return outer, inner


def tile(
    stage: Stage,
    provenance: Provenance,
    x: object,
    y: object,
    x_factor: int,
    y_factor: int,
) -> tuple[IterVar, IterVar, IterVar, IterVar]:
    """Replace loops x and y by (x.outer, y.outer, x.inner, y.inner), and return these."""
    loop_x = stage.replaceable_leaf(x, "tile")
    loop_y = stage.replaceable_leaf(y, "tile")
    if stage.loops.position(loop_y) != stage.loops.position(loop_x) + 1:
        stage.refuse(
            "tile",
            loop_x.name,
            f"loop {loop_y.name} is not directly inside it",
            "reorder first",
        )
    _check_size(x_factor, "factor", stage, loop_x)
    _check_size(y_factor, "factor", stage, loop_y)
    from refcomp.schedule.statement_loops import (  # noqa: PLC0415  (as in `split`)
        check_order,
        reorder_statement,
    )

    check_order(stage, "tile", [loop_y, loop_x])  # the parts exchange places like both
    # Both are checked before the first changes the stage.
    x_outer, x_inner = split(stage, provenance, loop_x, x_factor)
    y_outer, y_inner = split(stage, provenance, loop_y, y_factor)
    position = stage.loops.position(x_outer)
    stage.loops.leaves[position : position + 4] = [x_outer, y_outer, x_inner, y_inner]
    reorder_statement(stage)
    return x_outer, y_outer, x_inner, y_inner


def _check_size(value: object, name: str, stage: Stage, loop: IterVar) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return
    raise UserError(
        f"cannot split axis {loop.name} of stage {stage.name} with {name} {value!r}",
        where=f"stage {stage.name}",
        why=f"{name} must be an int of at least 1, known when the schedule is made",
        remedy=f"pass for example {name}=4; guards handle extents that it does not divide",
    )
