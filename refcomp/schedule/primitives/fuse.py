"""fuse: directly nested loops of one kind become one. Of no loops, one of a single iteration."""

from __future__ import annotations

from refcomp.foundation.dtype import I64
from refcomp.ir.expr import IntImm
from refcomp.schedule.relations import Fuse
from refcomp.schedule.stage import Provenance, Stage
from refcomp.schedule.statement_loops import (
    check_fusion,
    fuse_statement,
    fused_extent,
    surround_statement,
)
from refcomp.te.tensor import DATA_PARALLEL, AxisKind, IterVar


def fuse(stage: Stage, provenance: Provenance, *axes: object) -> IterVar:
    """Replace directly nested loops, outermost first, by one loop, and return it."""
    loops = [stage.replaceable_leaf(axis, "fuse") for axis in axes]
    if not loops:
        return _add_single_iteration(stage, provenance)
    _check(stage, loops)
    # Pairs, from the outermost: each relation joins two loops.
    fused = loops[0]
    for inner in loops[1:]:
        outer = fused
        check_fusion(stage, outer, inner)
        extent = fused_extent(stage, outer, inner)
        name = f"{outer.name}.{inner.name}.fused"
        fused = stage.derive_axis(name, extent, outer.kind, provenance)
        relation = Fuse(outer, inner, fused)
        stage.loops.relations.append(relation)
        position = stage.loops.position(outer)
        stage.loops.leaves[position : position + 2] = [fused]
        fuse_statement(stage, relation, provenance)
    return fused


def _add_single_iteration(stage: Stage, provenance: Provenance) -> IterVar:
    """Put a loop of one iteration around all others, and return it."""
    single = stage.derive_axis("single", IntImm(1, I64), DATA_PARALLEL, provenance)
    stage.loops.singles.append(single)
    stage.loops.leaves.insert(0, single)
    surround_statement(stage, single, provenance)
    return single


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
                f"it is {_an(loop.kind)} axis and {loops[0].name} {_an(loops[0].kind)} axis",
                "fuse loops of one kind only",
                earlier=[stage.declaration()],
            )


def _an(kind: AxisKind) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
