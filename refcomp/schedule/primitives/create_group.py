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
    """Return the stages on the paths from `starts` to `ends`, producers first.

    Args:
        stage: a stage of the schedule, which records the call.
        provenance: the user's line.
        ends: the last stages of the paths. They belong to the result.
        starts: the stages before the paths.
        include_inputs: True if `starts` belong to the result, too.

    Raises:
        UserError: there is no such path.
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
            "the group has no stages",
            why="no stage lies on a path from the inputs to the outputs",
            remedy="pass outputs=[...] that are computed from inputs=[...]",
        )
    return tuple(found)
