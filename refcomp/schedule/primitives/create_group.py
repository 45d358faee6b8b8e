"""create_group: find the stages between two sets of stages, so that they move together."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.errors import UserError
from refcomp.schedule.stage import Provenance, Stage
from refcomp.schedule.stage_graph import depends_on


def create_group(
    stage: Stage,
    provenance: Provenance,
    ends: Sequence[Stage],
    starts: Sequence[Stage],
    include_inputs: bool = False,
) -> tuple[Stage, ...]:
    """Return the stages that `ends` need and that need `starts`, producers first.

    `stage` is one of the schedule that records the call. With `include_inputs`, `starts` are among
    the result.
    """
    found = [
        one
        for one in stage.siblings
        if any(one is end or depends_on(end, one) for end in ends)
        and any(depends_on(one, start) for start in starts)
    ]
    if include_inputs:
        found = [one for one in stage.siblings if one in (*found, *starts)]
    if not found:
        raise UserError(
            "a group without stages",
            why="no stage is needed by the outputs and needs the inputs",
            remedy="pass outputs=[...] that are computed from inputs=[...]",
        )
    return tuple(found)
