"""The rule of all schedules for cheap stages: they are inlined, unless only memory can be read."""

from __future__ import annotations

from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_graph import readers_of
from refcomp.te.operation import ComputeOp, ExternOp, ScanOp
from refcomp.te.tag import INJECTIVE


def is_inlined(stage: Stage) -> bool:
    """Return True for a stage that is computed where it is read.

    It is elementwise and not an output. An extern operation or a scan reads memory, so a stage that
    it reads is stored.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.relu(A)
        >>> s = rc.create_schedule(rc.topi.tanh(B))
        >>> from refcomp.topi.schedules.inlining import is_inlined
        >>> is_inlined(s[B].stage)
        True
    """
    op = stage.op
    if not isinstance(op, ComputeOp) or op.tag != INJECTIVE or stage.is_output:
        return False
    readers = [reader.op for reader in readers_of(stage)]
    return not any(isinstance(reader, ExternOp | ScanOp) for reader in readers)
