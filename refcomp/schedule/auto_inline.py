"""Inlines what costs nothing to compute again: elementwise stages, or all but reductions."""

from __future__ import annotations

from collections.abc import Callable

from refcomp.foundation.errors import UserError
from refcomp.ir.rewrite import walk
from refcomp.schedule.schedule import Schedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import TensorRead


def is_injective(op: object) -> bool:
    """Whether each element is computed from some elements of the inputs, without a reduction."""
    return isinstance(op, ComputeOp) and op.reduction is None


def is_elementwise(op: object) -> bool:
    """Whether each element is computed from the elements of the inputs at its own indices."""
    if not (isinstance(op, ComputeOp) and is_injective(op)):
        return False
    own = [axis.var for axis in op.axis]
    reads = (
        node for body in op.body for node in walk(body) if isinstance(node, TensorRead)
    )
    return all(
        len(read.indices) == len(own)
        and all(index is var for index, var in zip(read.indices, own, strict=True))
        for read in reads
    )


def auto_inline_elementwise(schedule: Schedule) -> None:
    """Inlines every elementwise stage that is no output, as compute_inline does."""
    _inline(schedule, is_elementwise)


def auto_inline_injective(schedule: Schedule) -> None:
    """Inlines every stage without a reduction that is no output, as compute_inline does."""
    _inline(schedule, is_injective)


def _inline(schedule: Schedule, is_cheap: Callable[[object], bool]) -> None:
    if not isinstance(schedule, Schedule):
        raise UserError(
            f"{schedule!r} is no schedule", remedy="pass create_schedule(C.op)"
        )
    for stage in list(schedule.stages):
        if not stage.is_output and stage.placement == "root" and is_cheap(stage.op):
            try:
                schedule[stage.op].compute_inline()
            except UserError:
                continue  # what must keep its memory, such as an input of an extern operation


# The names of the classic API.
AutoInlineElemWise, AutoInlineInjective = auto_inline_elementwise, auto_inline_injective
