"""cache_read: let some stages read a copy of a tensor in another memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from refcomp.foundation.errors import UserError
from refcomp.schedule.primitives.set_scope import checked_scope
from refcomp.schedule.stage import Provenance, Stage
from refcomp.schedule.stage_graph import (
    add_stage,
    check_redirection,
    make_operation,
    readers_of,
    redirect_reads,
)
from refcomp.te.tensor import DATA_PARALLEL, Tensor, axis


def cache_read(
    stage: Stage,
    provenance: Provenance,
    output: int,
    scope: object,
    readers: Sequence[Stage],
) -> Tensor:
    """Let stages `readers` read a copy of output number `output` of this stage.

    Returns:
        The tensor of the copy, whose stage is at the root.
    """
    tensor = stage.op.outputs[output]
    checked = checked_scope(scope, stage)
    if stage.placement == "inline":
        _refuse(
            tensor, "its stage is inlined and has no memory to copy", "do not inline it"
        )
    if not readers:
        _refuse(tensor, "no stage is named that reads it", "name the readers: [C]")
    for reader in readers:
        if tensor not in set(reader.op.inputs):
            known = ", ".join(s.name for s in readers_of(stage))
            _refuse(
                tensor,
                f"stage {reader.name} does not read it",
                f"it is read by: {known}",
            )
        check_redirection(reader, tensor)
    # All checks are done: from here on, the schedule changes.
    axes = [axis(f"ax{k}", 0, dim, DATA_PARALLEL) for k, dim in enumerate(tensor.shape)]
    value = tensor[tuple(axes)]
    op = make_operation(
        f"{tensor.name}.{checked}", provenance.line, axes, [value], [tensor]
    )
    copy = add_stage(op, op.name, stage, after=True, provenance=provenance)
    copy.memory.scope = checked
    for reader in readers:
        redirect_reads(reader, tensor, op.outputs[0])
    return op.outputs[0]


def _refuse(tensor: Tensor, why: str, remedy: str) -> NoReturn:
    raise UserError(
        f"cannot make a copy of {tensor.name} to read", why=why, remedy=remedy
    )
