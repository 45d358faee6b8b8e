"""Share the outer loops of stages among the threads of the host.

A stage is shared if it does enough work, and if a loop that iterates over its result is the first
one with several iterations. Each element is still computed by one thread in the same order. So
results have the same bits for any number of threads.
"""

from __future__ import annotations

import math

from refcomp.ir.constants import as_int
from refcomp.ir.stmt import SERIAL
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import REDUCTION, IterVar

# Steps of a stage that take some 10 microseconds. To start and to join threads takes about 2 if
# they still wait for the region before. Stages between two shared ones are worth it, too: what
# each thread wrote is in the cache of its core.
MIN_STEPS = 1 << 15
# Of one iteration of a loop of unknown length. A single iteration gains nothing from threads.
_MIN_STEPS_OF_ITERATION = 1 << 17
# Of an iteration whose own loops are shared, since it is worth to start threads for each.
_MANY_STEPS = 1 << 21


def share_among_threads(schedule: Schedule) -> None:
    """Make the outer loops of all stages with enough work parallel.

    Args:
        schedule: a schedule for the host, whose other primitives have been applied.
    """
    for stage in schedule.stages:
        if not isinstance(stage.op, ComputeOp) or stage.placement != "root":
            continue
        loop = _shared_loop(stage, _steps(schedule, stage))
        if loop is not None:
            schedule[stage.op].parallel(loop)


def _shared_loop(stage: Stage, steps: int) -> IterVar | None:
    """Return the loop whose iterations threads share; None if none is worth it.

    Args:
        stage: a stage.
        steps: its steps, where extents that are not constant count as 1.
    """
    unknown = None
    for loop in stage.loops.leaves:
        is_serial = stage.loops.marks.get(loop, SERIAL) == SERIAL
        if loop.kind == REDUCTION or not is_serial:
            break
        extent = as_int(loop.extent)
        if extent is None and unknown is None:
            unknown = loop
        elif extent != 1:
            least = MIN_STEPS if unknown is None else _MANY_STEPS
            if steps >= least:
                return loop
            break
    return unknown if steps >= _MIN_STEPS_OF_ITERATION else None


def _steps(schedule: Schedule, stage: Stage) -> int:
    """Return the steps of a stage, or of the busiest stage that is computed in its loops.

    Extents that are not constant count as 1.
    """
    steps = 0
    for other in schedule.stages:
        if isinstance(other.op, ComputeOp) and _is_inside(other, stage):
            axes = (*other.op.axis, *other.op.reduce_axis)
            steps = max(steps, math.prod(as_int(axis.extent) or 1 for axis in axes))
    return steps


def _is_inside(stage: Stage, outer: Stage) -> bool:
    """Return True if a stage is `outer`, or is attached to its loops, directly or not."""
    while stage is not outer:
        if stage.attach_point is None:
            return False
        stage = stage.attach_point.stage
    return True
