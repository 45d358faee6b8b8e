"""Inline stages that are cheap to compute again: elementwise stages, or all but reductions."""

from __future__ import annotations

from collections.abc import Callable

from refcomp.foundation.errors import UserError
from refcomp.ir.rewrite import walk
from refcomp.schedule.schedule import Schedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import TensorRead


def is_injective(op: object) -> bool:
    """Return True if each element depends on some elements of the inputs, without a reduction."""
    return isinstance(op, ComputeOp) and op.reduction is None


def is_elementwise(op: object) -> bool:
    """Return True if each element depends only on the elements of the inputs at its own indices."""
    if not isinstance(op, ComputeOp) or op.reduction is not None:
        return False
    # By identity, since `==` on expressions builds a comparison.
    own = [axis.var for axis in op.axis]
    for node in (node for body in op.body for node in walk(body)):
        if isinstance(node, TensorRead):
            if len(node.indices) != len(own):
                return False
            if any(i is not var for i, var in zip(node.indices, own, strict=True)):
                return False
    return True


def auto_inline_elementwise(schedule: Schedule) -> None:
    """Apply compute_inline to every elementwise stage that is not an output.

    The stage of an elementwise operation reads its inputs only at its own indices. A stage that
    must keep its memory, for example for an extern operation, stays.

    Args:
        schedule: the schedule to change.

    Raises:
        UserError: it is not a schedule.

    Source: TVM, te.schedule.AutoInlineElemWise.

    Example::

        >>> A = rc.placeholder((8,), name="A")
        >>> B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
        >>> C = rc.compute((8,), lambda i: B[7 - i] * 2.0, name="C")
        >>> D = rc.compute((8,), lambda i: C[7 - i] - 1.0, name="D")
        >>> s = rc.create_schedule(D)
        >>> rc.schedule.AutoInlineElemWise(s)
        >>> [step.stage for step in s.steps]
        ['B']
    """
    _inline(schedule, is_elementwise)


def auto_inline_injective(schedule: Schedule) -> None:
    """Apply compute_inline to every stage that is not an output and has no reduction.

    A stage that must keep its memory, for example for an extern operation, stays.

    Args:
        schedule: the schedule to change.

    Raises:
        UserError: it is not a schedule.

    Source: TVM, te.schedule.AutoInlineInjective.

    Example::

        >>> A = rc.placeholder((8,), name="A")
        >>> B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
        >>> C = rc.compute((8,), lambda i: B[7 - i] * 2.0, name="C")
        >>> D = rc.compute((8,), lambda i: C[7 - i] - 1.0, name="D")
        >>> s = rc.create_schedule(D)
        >>> rc.schedule.AutoInlineInjective(s)
        >>> [step.stage for step in s.steps]
        ['B', 'C']
    """
    _inline(schedule, is_injective)


def _inline(schedule: Schedule, is_cheap: Callable[[object], bool]) -> None:
    if not isinstance(schedule, Schedule):
        raise UserError(
            f"{schedule!r} is not a schedule", remedy="pass create_schedule(C.op)"
        )
    for stage in list(schedule.stages):
        if not stage.is_output and stage.placement == "root" and is_cheap(stage.op):
            try:
                schedule[stage.op].compute_inline()
            except UserError:
                continue  # the stage must keep its memory, for example for an extern operation


# The names of the classic API.
AutoInlineElemWise = auto_inline_elementwise
AutoInlineInjective = auto_inline_injective
