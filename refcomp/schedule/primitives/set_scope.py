"""set_scope: choose the memory of a stage."""

from __future__ import annotations

from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import StorageScope, memory_scope
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.operation import ComputeOp, ExternOp


def set_scope(stage: Stage, provenance: Provenance, scope: object) -> None:
    """Keep the stage in memory `scope`: `global`, `shared`, `warp` or `local`."""
    checked = checked_scope(scope, stage)
    if stage.is_output or not isinstance(stage.op, ComputeOp):
        what = "an output" if stage.is_output else stage.op.what
        owner = "others" if isinstance(stage.op, ExternOp) else "the caller"
        copies = (
            "cache_read or cache_write"
            if isinstance(stage.op, ComputeOp)
            else "cache_read"
        )
        raise UserError(
            f"cannot set the scope of stage {stage.name}",
            where=f"stage {stage.name}",
            why=f"it is {what}: its memory is global, since it belongs to {owner}",
            remedy=f"use {copies}, which makes a copy in another scope",
        )
    stage.memory.scope = checked


def checked_scope(scope: object, stage: Stage) -> StorageScope:
    """Return the scope that `scope` names. Raise UserError if it names none."""
    return memory_scope(scope, f"stage {stage.name}")
