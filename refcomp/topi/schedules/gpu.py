"""Schedules for GPUs: a thread for each element, sums in registers, no shared memory.

`schedule_gpu` takes any computation made of topi operators, as `schedule_llvm` does. Each stage
that keeps its memory is a kernel. Neighbouring threads compute neighbouring elements of the last
axis, so that their accesses coalesce.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp, Operation
from refcomp.te.tensor import IterVar, Tensor, thread_axis
from refcomp.topi.schedules.blocked_convolution import elementwise_follower
from refcomp.topi.schedules.inlining import is_inlined

# Threads of a group: the width of the widest waves, so that no wave has idle lanes.
_THREADS = 64


def schedule_gpu(outputs: Sequence[Tensor]) -> Schedule:
    """Return a schedule for GPUs of all stages on which `outputs` depend.

    Args:
        outputs: a list of tensors, which topi's operators or your own computes returned.

    Raises:
        UserError: an output is not a tensor.

    Example::

        >>> A = rc.placeholder((512,), name="A")
        >>> B = rc.topi.relu(A)
        >>> s = rc.topi.schedule_gpu([B])
        >>> print(rc.lower(s, [A, B], "relu"))
        func relu(A: f32[512], relu: f32[512] out) {
          for blockIdx.x in range(8) blockIdx.x {
            for threadIdx.x in range(64) threadIdx.x {
              relu[blockIdx.x * 64 + threadIdx.x] = max(A[blockIdx.x * 64 + threadIdx.x], 0.0f32)
            }
          }
        }
    """
    schedule = create_schedule(outputs)
    schedule_stages(schedule, schedule.stages, bind_elements)
    return schedule


def schedule_stages(
    schedule: Schedule,
    stages: Sequence[Stage],
    bind: Callable[[StageSchedule, ComputeOp], IterVar],
) -> None:
    """Schedule the computes of `stages`, which are in the order of the schedule.

    Cheap stages are inlined. A reduction is attached to the elementwise output that follows it.

    Args:
        schedule: the schedule that has the stages.
        stages: the stages to schedule; others are left as they are.
        bind: divides a stage that keeps its memory among groups and threads, and returns the axis
            of the threads.
    """
    computed = [stage for stage in stages if isinstance(stage.op, ComputeOp)]
    threads: dict[Operation, IterVar] = {}
    # Consumers first: a reduction is attached to the thread of the element that reads it.
    for stage in reversed(computed):
        op = stage.op
        handle = schedule[op]
        assert isinstance(op, ComputeOp)
        follower = elementwise_follower(schedule, op) if op.reduce_axis else None
        if is_inlined(stage):
            handle.compute_inline()
        elif follower is not None and follower.op in threads:
            handle.set_scope("local")
            handle.compute_at(schedule[follower], threads[follower.op])
        else:
            threads[op] = bind(handle, op)


def bind_elements(handle: StageSchedule, op: ComputeOp) -> IterVar:
    """Fuse all axes, bind them to groups and threads, and return the axis of the threads."""
    whole = handle.fuse(*op.axis)
    block, thread = handle.split(whole, factor=_THREADS)
    handle.bind(block, thread_axis("blockIdx.x"))
    handle.bind(thread, thread_axis("threadIdx.x"))
    return thread
