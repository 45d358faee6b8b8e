"""reorder: loops exchange their positions."""

from __future__ import annotations

from refcomp.schedule.stage import Provenance, Stage
from refcomp.schedule.statement_loops import check_order, reorder_statement


def reorder(stage: Stage, provenance: Provenance, *axes: object) -> None:
    """Put the loops `axes` into the given order, at the positions that they hold now."""
    loops = [stage.leaf(axis, "reorder") for axis in axes]
    for k, loop in enumerate(loops):
        if any(loop is other for other in loops[:k]):
            stage.refuse(
                "reorder", loop.name, "it is named twice", "name each loop once"
            )
    if not loops:
        return
    check_order(stage, "reorder", loops)
    positions = sorted(stage.loops.position(loop) for loop in loops)
    # Loops that are not named keep their positions.
    for position, loop in zip(positions, loops, strict=True):
        stage.loops.leaves[position] = loop
        stage.loops.provenance[loop] = stage.loops.provenance.get(loop, provenance)
    reorder_statement(stage)
