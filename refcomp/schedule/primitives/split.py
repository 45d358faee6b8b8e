"""split and tile: one loop becomes two nested ones.

Extents need not divide: iterations beyond the end are guarded.
"""

from __future__ import annotations

from typing import Any

from refcomp.foundation.errors import UserError
from refcomp.schedule.relations import Split, split_extents
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.tensor import IterVar


def split(
    stage: Stage,
    provenance: Provenance,
    parent: Any,
    factor: int | None = None,
    nparts: int | None = None,
) -> tuple[IterVar, IterVar]:
    """Loop `parent` becomes (outer, inner) of extents (ceil(extent / factor), factor), or
    (nparts, ceil(extent / nparts)). Exactly one of factor and nparts, an int of at least 1."""
    loop = stage.replaceable_leaf(parent, "split")
    if (factor is None) == (nparts is None):
        stage.refuse(
            "split",
            loop.name,
            "it needs either factor or nparts",
            "give exactly one of them",
        )
    checked_factor = (
        None if factor is None else _positive(factor, "factor", stage, loop)
    )
    checked_nparts = (
        None if nparts is None else _positive(nparts, "nparts", stage, loop)
    )
    outer_extent, inner_extent = split_extents(
        loop.extent, checked_factor, checked_nparts
    )
    outer = stage.derive_axis(f"{loop.name}.outer", outer_extent, loop.kind, provenance)
    inner = stage.derive_axis(f"{loop.name}.inner", inner_extent, loop.kind, provenance)
    stage.loops.relations.append(
        Split(loop, outer, inner, checked_factor, checked_nparts)
    )
    position = stage.loops.position(loop)
    stage.loops.leaves[position : position + 1] = [outer, inner]
    return outer, inner


def tile(
    stage: Stage, provenance: Provenance, x: Any, y: Any, x_factor: int, y_factor: int
) -> tuple[IterVar, IterVar, IterVar, IterVar]:
    """Loops x and y, x directly around y, become (x.outer, y.outer, x.inner, y.inner)."""
    loop_x, loop_y = (
        stage.replaceable_leaf(x, "tile"),
        stage.replaceable_leaf(y, "tile"),
    )
    if stage.loops.position(loop_y) != stage.loops.position(loop_x) + 1:
        stage.refuse(
            "tile",
            loop_x.name,
            f"loop {loop_y.name} is not directly inside it",
            "reorder first",
        )
    for loop, factor in ((loop_x, x_factor), (loop_y, y_factor)):
        _positive(factor, "factor", stage, loop)
    x_outer, x_inner = split(stage, provenance, loop_x, x_factor)
    y_outer, y_inner = split(stage, provenance, loop_y, y_factor)
    position = stage.loops.position(x_outer)
    stage.loops.leaves[position : position + 4] = [x_outer, y_outer, x_inner, y_inner]
    return x_outer, y_outer, x_inner, y_inner


def _positive(value: Any, name: str, stage: Stage, loop: IterVar) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise UserError(
        f"cannot split axis {loop.name} of stage {stage.name} with {name} {value!r}",
        where=f"stage {stage.name}",
        why=f"{name} must be an int of at least 1, known when the schedule is made",
        remedy=f"pass for example {name}=4; extents that it does not divide are guarded",
    )
