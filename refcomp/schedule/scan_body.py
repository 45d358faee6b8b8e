"""The body of a scan: the stages that compute one row, attached to the loop over rows.

A new schedule attaches these stages, and compute_root attaches them again. The update of a scan
cannot be moved, because it writes the memory of the scan.
"""

from __future__ import annotations

from collections.abc import Iterable

from refcomp.foundation.errors import UserError
from refcomp.schedule.stage import AttachPoint, Stage
from refcomp.te.check_reads import check_reads
from refcomp.te.operation import ComputeOp, ScanOp


def scan_attach_point(stage: Stage) -> AttachPoint | None:
    """Return the loop over rows of the scan whose body has the stage; None outside of scans."""
    made = set(stage.op.outputs)
    for other in stage.siblings:
        op = other.op
        if isinstance(op, ScanOp):
            makers = {t: s.op for s in other.siblings for t in s.op.outputs}
            updates = [makers[tensor] for tensor in op.update]
            body = {t for inner in op.body_operations(updates) for t in inner.outputs}
            if not made.isdisjoint(body) and other is not stage:
                return AttachPoint(other, op.scan_axis, op.line)
    return None


def attach_bodies(stages: Iterable[Stage]) -> None:
    """Attach the stages of scan bodies to the loops over rows.

    Raises:
        UserError: the first rows of a compute cannot be computed, and it belongs to no scan.
    """
    listed = list(stages)
    has_scans = any(isinstance(stage.op, ScanOp) for stage in listed)
    for stage in listed:
        op = stage.op
        point = scan_attach_point(stage) if has_scans else None
        if point is None and isinstance(op, ComputeOp) and op.waits_for_scan:
            # Its reads of earlier rows are legal only in a scan, so this check raises.
            check_reads(op.name, op.axis, op.body, at=stage.declaration())
        stage.placement = point or "root"


def refuse_moving_update(stage: Stage, verb: str) -> None:
    """Raise UserError if the stage is the update of a scan. `verb` names the request."""
    for other in stage.siblings:
        if isinstance(other.op, ScanOp) and any(
            t in other.op.update for t in stage.op.outputs
        ):
            raise UserError(
                f"cannot {verb} stage {stage.name}",
                where=f"stage {stage.name}, the update of scan {other.name}",
                why="it computes each row in the scan's own memory, at its place in the scan",
                remedy="schedule its axes, and the stages that it reads",
                earlier=[other.declaration()],
            )
