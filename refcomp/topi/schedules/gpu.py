"""Schedules for GPUs: a thread for each element, sums in registers, no shared memory.

`schedule_gpu` takes any computation made of topi operators, as `schedule_llvm` does. Each stage
that keeps its memory is a kernel; neighbouring threads have neighbours of the last axis, so that
what they read and write lies side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp, Operation
from refcomp.te.tensor import IterVar, Tensor, thread_axis
from refcomp.topi.schedules.blocked_convolution import elementwise_follower
from refcomp.topi.tags import INJECTIVE

# Threads of a group: as many as the widest waves have, so that none of them is in part empty.
_THREADS = 64


def schedule_gpu(outputs: Sequence[Tensor]) -> Schedule:
    """A schedule of everything that `outputs` are computed from."""
    schedule = create_schedule(outputs)
    computed = [stage for stage in schedule.stages if isinstance(stage.op, ComputeOp)]
    threads: dict[Operation, IterVar] = {}
    # Consumers first: what is summed up for an element needs the element's thread.
    for stage in reversed(computed):
        op, handle = stage.op, schedule[stage.op]
        assert isinstance(op, ComputeOp)
        follower = elementwise_follower(schedule, op) if op.reduce_axis else None
        if op.tag == INJECTIVE and not stage.is_output:
            handle.compute_inline()
        elif follower is not None and follower.op in threads:
            handle.set_scope("local")
            handle.compute_at(schedule[follower], threads[follower.op])
        elif op.axis:  # what has none is refused where kernels are split off
            threads[op] = _bind(handle, op)
    return schedule


def _bind(handle: StageSchedule, op: ComputeOp) -> IterVar:
    """All axes in one, over groups of threads; the axis of the threads."""
    whole = handle.fuse(*op.axis) if len(op.axis) > 1 else op.axis[0]
    block, thread = handle.split(whole, factor=_THREADS)
    handle.bind(block, thread_axis("blockIdx.x"))
    handle.bind(thread, thread_axis("threadIdx.x"))
    return thread
