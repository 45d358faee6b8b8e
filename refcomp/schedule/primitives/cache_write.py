"""cache_write: compute a stage into another memory first, and copy it from there."""

from __future__ import annotations

from typing import NoReturn

from refcomp.foundation.errors import UserError
from refcomp.ir.rewrite import substitute
from refcomp.schedule.primitives.set_scope import checked_scope
from refcomp.schedule.stage import Provenance, Stage
from refcomp.schedule.stage_graph import add_stage, make_operation, replace_body
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import DATA_PARALLEL, Tensor, axis


def cache_write(
    stage: Stage, provenance: Provenance, scope: object
) -> tuple[Tensor, ...]:
    """Move the computation of the stage to a new stage, and copy its results here.

    The stage keeps its axes. The axes of its reduction go to the new stage, whose other axes are
    new: `i.c` for `i`.

    Returns:
        The tensors of the new stage.
    """
    op = stage.op
    checked = checked_scope(scope, stage)
    if not isinstance(op, ComputeOp):
        why = f"it is {op.what}, which has no loops of its own"
        _refuse(stage, why, "use cache_read")
    if stage.placement == "inline":
        _refuse(stage, "it is inlined and has no loops", "do not inline it")
    is_reordered = any(
        a is not b for a, b in zip(stage.loops.leaves, stage.roots, strict=False)
    )
    if stage.loops.marks or stage.loops.relations or is_reordered:
        _refuse(stage, "its loops have been changed already", "call cache_write first")
    for attached in stage.attached:
        why = f"stage {attached.name} is computed at one of its loops"
        _refuse(stage, why, "call cache_write first")
    # The computation moves, with fresh axes, and the stage reads its tensors at its own axes.
    axes = [axis(f"{a.name}.c", a.minimum, a.extent, DATA_PARALLEL) for a in op.axis]
    fresh = {old.var: a.var for old, a in zip(op.axis, axes, strict=True)}
    body = [substitute(value, fresh) for value in op.body]
    made_op = make_operation(
        f"{op.name}.{checked}",
        provenance.line,
        axes,
        body,
        like=op.outputs,
        waits_for_scan=op.waits_for_scan,
    )
    made = add_stage(made_op, made_op.name, stage, after=False, provenance=provenance)
    made.memory.scope = checked
    replace_body(stage, [tensor[op.axis] for tensor in made_op.outputs])
    stage.loops.leaves = list(stage.roots)
    return made_op.outputs


def _refuse(stage: Stage, why: str, remedy: str) -> NoReturn:
    raise UserError(
        f"cannot compute stage {stage.name} into another memory",
        where=f"stage {stage.name}",
        why=why,
        remedy=remedy,
    )
