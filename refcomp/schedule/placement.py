"""Placement of stages: the loops around each stage, and whether all readers are inside them.

The *path* of a stage begins with the path of the stage that it is attached to, up to the attach
point; its own loops follow. A stage may be attached where the paths of all its readers pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from refcomp.foundation.errors import UserError
from refcomp.foundation.provenance import declared_at
from refcomp.foundation.snippets import Snippet
from refcomp.schedule.stage import Stage
from refcomp.te.tensor import IterVar


@dataclass(frozen=True, slots=True, eq=False)
class NestLoop:
    """A loop in the nest of a stage."""

    stage: Stage
    axis: IterVar

    def is_same(self, other: NestLoop) -> bool:
        """Return True if both are the same loop of the same stage."""
        return self.stage is other.stage and self.axis is other.axis


def loops_around(stage: Stage) -> list[NestLoop]:
    """Return the loops of other stages around the stage, outermost first."""
    point = stage.attach_point
    if point is None:
        return []
    loops = point.stage.loops
    inside = loops.leaves[: loops.position(point.axis) + 1]
    return [
        *loops_around(point.stage),
        *(NestLoop(point.stage, leaf) for leaf in inside),
    ]


def path(stage: Stage) -> list[NestLoop]:
    """Return all loops around one element of the stage, outermost first."""
    return [
        *loops_around(stage),
        *(NestLoop(stage, leaf) for leaf in stage.loops.leaves),
    ]


def place_text(stage: Stage) -> str:
    """Describe for messages where the stage is computed."""
    point = stage.attach_point
    if point is None:
        return f"stage {stage.name}"
    return f"stage {stage.name}, computed at axis {point.axis.name} of stage {point.stage.name}"


def placement_lines(stage: Stage) -> list[Snippet]:
    """Return the line that attached the stage, for messages; empty if no line did."""
    point = stage.attach_point
    return [] if point is None else [point.snippet(f"stage {stage.name}")]


def loops_between(stage: Stage, reader: Stage) -> list[NestLoop]:
    """Return the loops around an element of `reader` that are not around the attached `stage`."""
    return path(reader)[len(loops_around(stage)) :]


def check_attachments(
    stages: Iterable[Stage], readers: Mapping[Stage, Sequence[Stage]]
) -> None:
    """Raise UserError if an attached stage is read outside the loop that computes it."""
    for stage in stages:
        around = loops_around(stage)
        for reader in readers[stage]:
            outer = path(reader)[: len(around)]
            if len(outer) < len(around) or not all(
                map(NestLoop.is_same, around, outer)
            ):
                _refuse(stage, reader)


def _refuse(stage: Stage, reader: Stage) -> None:
    point = stage.attach_point
    assert point is not None
    raise UserError(
        f"stage {stage.name} is computed inside loop {point.axis.name} of stage "
        f"{point.stage.name}, but stage {reader.name} reads it outside",
        at=point.snippet(f"stage {stage.name}"),
        earlier=[declared_at(reader.op.line, f"stage {reader.name}")],
        why="the memory of an attached stage exists only during an iteration of that loop",
        remedy=f"compute {reader.name} inside that loop too, or {stage.name} further outside",
    )
