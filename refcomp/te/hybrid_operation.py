"""HybridOp: an extern operation whose statement is Python source, so that its loops are known.

`refcomp.hybrid.loop_axes` finds the axes.
"""

from __future__ import annotations

from typing import ClassVar

from refcomp.foundation.records import record
from refcomp.te.operation import ExternOp


@record(eq=False, frozen=False)
class HybridOp(ExternOp):
    """An operation that a hybrid function computes. `hybrid.script` makes it.

    Attributes:
        name: the name of the function, and of its first output.
        line: `file:line` of the user's call.
        axis: the loops of the statement in the order of the source, without those over `bind`.
        reads: the inputs, one for each parameter that is a tensor.
        in_buffers: the buffers that stand for `reads` in the statement, one for each.
        out_buffers: the buffers that stand for the outputs, one for each.
        body: the statement, which is loop IR.
        tag: a label for schedules: `hybrid`.
        requires: conditions that asserts state, which each call must meet.
        conflicts: for each axis, why its iterations may depend on each other; empty if they cannot.

    Source: TVM, te.HybridOp.

    Example::

        >>> @rc.hybrid.script
        ... def row_sums(a):
        ...     s = output_tensor((a.shape[0],), "float32")
        ...     for i in range(a.shape[0]):
        ...         s[i] = 0.0
        ...         for k in range(a.shape[1]):
        ...             s[i] += a[i, k]
        ...     return s
        >>> S = row_sums(rc.placeholder((4, 8), name="A"))
        >>> S.op.axis
        (data_parallel axis i, ordered axis k)
        >>> S.op.conflicts
        ('', 'no index of s keeps apart what they access')
    """

    what: ClassVar[str] = "a hybrid function"
    conflicts: tuple[str, ...] = ()
