"""fuse: two or more directly nested loops of one kind become one."""

from __future__ import annotations

from refcomp.arith import simplify
from refcomp.foundation.errors import UserError
from refcomp.schedule.relations import Fuse
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.tensor import IterVar


def fuse(stage: Stage, provenance: Provenance, *axes: object) -> IterVar:
    """Replace directly nested loops, outermost first, by one loop, and return it."""
    if len(axes) < 2:
        raise UserError(
            f"cannot fuse {len(axes)} axis of stage {stage.name}",
            remedy="name at least two directly nested loops, outer first",
        )
    loops = [stage.replaceable_leaf(axis, "fuse") for axis in axes]
    _check(stage, loops)
    # Pairs, from the outermost: each relation joins two loops.
    fused = loops[0]
    for inner in loops[1:]:
        outer = fused
        extent = simplify(outer.extent * inner.extent)
        name = f"{outer.name}.{inner.name}.fused"
        fused = stage.derive_axis(name, extent, outer.kind, provenance)
        stage.loops.relations.append(Fuse(outer, inner, fused))
        position = stage.loops.position(outer)
        stage.loops.leaves[position : position + 2] = [fused]
    return fused


def _check(stage: Stage, loops: list[IterVar]) -> None:
    positions = [stage.loops.position(loop) for loop in loops]
    for before, after, loop in zip(positions, positions[1:], loops[1:], strict=False):
        if after != before + 1:
            outer = stage.loops.leaves[before].name
            stage.refuse(
                "fuse",
                loop.name,
                f"it is not directly inside {outer}",
                "reorder first, and name the loops from outermost to innermost",
            )
    for loop in loops:
        if loop.kind != loops[0].kind:
            stage.refuse(
                "fuse",
                loop.name,
                f"it is a {loop.kind} axis and {loops[0].name} a {loops[0].kind} axis",
                "fuse loops of one kind only",
                earlier=[stage.declaration()],
            )
