"""compute_inline and compute_root: replace the reads of a stage, or give it a loop nest."""

from __future__ import annotations

from refcomp.foundation.errors import UserError
from refcomp.schedule.scan_body import refuse_moving_update, scan_attach_point
from refcomp.schedule.stage import Provenance, Stage
from refcomp.schedule.stage_graph import readers_of
from refcomp.te.operation import ComputeOp, ExternOp, ScanOp


def compute_inline(stage: Stage, provenance: Provenance) -> None:
    """Replace every read of the stage by its expression, so that it needs no memory."""
    refuse_moving_update(stage, "inline")
    why, remedy = None, "leave it at the root"
    earlier = []
    if not isinstance(stage.op, ComputeOp):
        why = (
            f"it is {stage.op.what}, which has no expression that could replace a read"
        )
    elif stage.is_output:
        why = "it is an output of the schedule and needs memory"
    elif stage.op.reduction is not None:
        why = "it is a reduction, which needs a loop of its own"
        earlier = [stage.declaration()]
    elif stage.attached:
        attached = stage.attached[0]
        why = f"stage {attached.name} is computed at one of its loops"
        remedy = (
            f"inline it first, and compute {attached.name} at a loop of what reads it"
        )
        if attached.attach_point is not None:
            earlier = [attached.attach_point.snippet(f"stage {attached.name}")]
    else:
        # These read memory by statements of their own, which no expression can enter.
        for reader in readers_of(stage):
            if isinstance(reader.op, ExternOp | ScanOp):
                why = f"stage {reader.name} is {reader.op.what}, which reads its memory"
                earlier = [reader.declaration()]
    if why is not None:
        raise UserError(
            f"cannot inline stage {stage.name}",
            where=f"stage {stage.name}",
            why=why,
            remedy=remedy,
            earlier=earlier,
        )
    stage.placement = "inline"


def compute_root(stage: Stage, provenance: Provenance) -> None:
    """Give the stage a loop nest of its own, or return it to the loop of its scan."""
    stage.placement = scan_attach_point(stage) or "root"
