"""Schedules of operators that take further classic arguments, which refcomp does not need."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refcomp.classic.operators.tags import is_injective
from refcomp.foundation.errors import UserError
from refcomp.schedule.schedule import Schedule
from refcomp.te.operation import ComputeOp, Operation
from refcomp.te.tensor import Tensor
from refcomp.topi import generic

Outputs = Tensor | Sequence[Tensor]


def schedule_pool(outs: Outputs, layout: str = "NCHW") -> Schedule:
    """Return a schedule of pooling, by `topi.schedule_pool`, for any layout."""
    del layout  # the computation has it
    return generic.schedule_pool(outs)


def default_schedule(outs: Outputs, auto_inline: bool = True) -> Schedule:
    """Return a schedule of any computation, by `topi.schedule_injective`.

    Cheap stages are computed where they are read, whatever `auto_inline` says.
    """
    del auto_inline
    return generic.schedule_injective(outs)


def traverse_inline(
    s: Schedule, final_op: Operation, callback: Callable[[Operation], object]
) -> None:
    """Compute injective stages where they are read, and call a function for each operation.

    The walk begins at `final_op` and goes on from each injective operation to those that it reads.
    It ends at other operations: their inputs, such as padded images, keep their stages.

    Args:
        s: the schedule.
        final_op: the operation at which the walk begins. Outputs stay as they are.
        callback: gets each operation of the walk that is not a placeholder, after those that it
            reads.

    Raises:
        UserError: `final_op` is not an operation.
    """
    if not isinstance(final_op, Operation):
        raise UserError(
            f"{final_op!r} is not an operation", remedy="pass tensor.op of an output"
        )
    visited: set[Operation] = set()

    def visit(op: Operation) -> None:
        visited.add(op)
        if isinstance(op, ComputeOp) and is_injective(op.tag):
            if not s[op].is_output:
                s[op].compute_inline()
            for tensor in op.input_tensors:
                if tensor.op.input_tensors and tensor.op not in visited:
                    visit(tensor.op)
        callback(op)

    visit(final_op)
