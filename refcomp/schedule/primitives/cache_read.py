"""cache_read: let some stages read a copy of a tensor in another memory, or in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, FloorDiv, FloorMod
from refcomp.ir.promotion import const
from refcomp.schedule.primitives.set_scope import checked_scope
from refcomp.schedule.stage import Provenance, Stage
from refcomp.schedule.stage_graph import (
    Indices,
    add_stage,
    check_redirection,
    make_operation,
    readers_of,
    redirect_reads,
)
from refcomp.te.maths import if_then_else
from refcomp.te.operation import ComputeOp, ExternOp
from refcomp.te.tensor import DATA_PARALLEL, Tensor, axis


def cache_read(
    stage: Stage,
    provenance: Provenance,
    output: int,
    scope: object,
    readers: Sequence[Stage],
    panel: int = 0,
) -> Tensor:
    """Let stages `readers` read a copy of output number `output` of this stage.

    If this stage is inlined, the copy computes the elements itself.

    With a `panel`, the copy has so many columns of the tensor in one of its first elements, and
    zeros behind the last column.

    Returns:
        The tensor of the copy, whose stage is at the root.
    """
    tensor = stage.op.outputs[output]
    checked = checked_scope(scope, stage)
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
    _check_panel(tensor, panel, readers)
    # All checks are done: from here on, the schedule changes.
    name = f"{tensor.name}.{checked}"
    if panel:
        op = _copy_in_panels(tensor, name, provenance.line, panel)
    else:
        op = _copy(tensor, name, provenance.line)
    copy = add_stage(op, op.name, stage, after=True, provenance=provenance)
    copy.memory.scope = checked
    for reader in readers:
        redirect_reads(reader, tensor, op.outputs[0], lambda at: _in_panel(at, panel))
    return op.outputs[0]


def _copy(tensor: Tensor, name: str, line: str) -> ComputeOp:
    axes = [axis(f"ax{k}", 0, dim, DATA_PARALLEL) for k, dim in enumerate(tensor.shape)]
    return make_operation(name, line, axes, [tensor[tuple(axes)]], [tensor])


def _copy_in_panels(tensor: Tensor, name: str, line: str, panel: int) -> ComputeOp:
    *outer, last = tensor.shape
    columns = as_int(last) or 0
    count = -(-columns // panel)
    shape = (const(count, I64), *outer, const(panel, I64))
    axes = [axis(f"ax{k}", 0, dim, DATA_PARALLEL) for k, dim in enumerate(shape)]
    first, *places, lane = axes
    column = first * panel + lane
    value: Expr = tensor[(*places, column)]
    if columns % panel:
        zero = const(0, tensor.dtype)
        value = if_then_else(column < columns, value, zero)
    op = ComputeOp(name, line, tuple(axes), (value,))
    op.outputs = (Tensor(op, 0, shape, tensor.dtype),)
    return op


def _in_panel(indices: Indices, panel: int) -> Indices:
    """Return the indices of an element of the copy, by those of the tensor."""
    if not panel:
        return indices
    *outer, column = indices
    width = const(panel, column.dtype)
    return (FloorDiv(column, width), *outer, FloorMod(column, width))


def _check_panel(tensor: Tensor, panel: object, readers: Sequence[Stage]) -> None:
    """Raise UserError if the tensor cannot lie in panels that the readers find."""
    if not isinstance(panel, int) or isinstance(panel, bool) or panel < 0:
        _refuse(tensor, f"the panel is {panel!r}", "use an int, the columns of a panel")
    if panel and (not tensor.shape or as_int(tensor.shape[-1]) is None):
        _refuse(
            tensor,
            "panels need a last dimension whose extent is a constant",
            "make a copy without panels",
        )
    for reader in readers:
        if panel and isinstance(reader.op, ExternOp):
            _refuse(
                tensor,
                f"{reader.name} reads a buffer whose order it knows",
                "make a copy without panels",
            )


def _refuse(tensor: Tensor, why: str, remedy: str) -> NoReturn:
    raise UserError(
        f"cannot make a copy of {tensor.name} to read", why=why, remedy=remedy
    )
