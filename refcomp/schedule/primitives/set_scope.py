"""set_scope: which memory a stage is kept in."""

from __future__ import annotations

from typing import Any

from refcomp.foundation.errors import UserError
from refcomp.ir.type_rules import SCOPES
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.extern import ExternOp
from refcomp.te.operation import ComputeOp


def set_scope(stage: Stage, provenance: Provenance, scope: Any) -> None:
    """The stage is kept in `scope`: `global`, `shared` (by the threads of a group) or `local` (one
    thread's own). Without it, the place where a stage is computed decides."""
    checked = checked_scope(scope, stage)
    if stage.is_output or not isinstance(stage.op, ComputeOp):
        what = "an output" if stage.is_output else stage.op.what
        given = "given to others" if isinstance(stage.op, ExternOp) else "the caller's"
        copies = (
            "cache_read or cache_write"
            if isinstance(stage.op, ComputeOp)
            else "cache_read"
        )
        raise UserError(
            f"cannot set the scope of stage {stage.name}",
            where=f"stage {stage.name}",
            why=f"it is {what}: its memory is {given}, and so global",
            remedy=f"use {copies}, which makes a copy in another scope",
        )
    stage.memory.scope = checked


def checked_scope(scope: Any, stage: Stage) -> str:
    """`scope`, if there is one of that name; else UserError."""
    if isinstance(scope, str) and scope in SCOPES:
        return scope
    raise UserError(
        f"{scope!r} is no scope",
        where=f"stage {stage.name}",
        remedy=f"use one of {', '.join(SCOPES)}",
    )
