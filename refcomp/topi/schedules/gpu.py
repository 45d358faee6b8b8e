"""Schedules for GPUs of any maker: tiles, rows, transposes, and a thread for each element.

`schedule_gpu` takes any computation made of topi operators, as `schedule_llvm` does. Each stage
that keeps its memory is a kernel:

- Products of matrices and convolutions have tiles in shared memory and in registers
  (`refcomp.topi.schedules.register_tiles`).
- Depthwise convolutions and poolings have strips of windows in registers
  (`refcomp.topi.schedules.window_strips`).
- Reductions, and what is computed from them along the same rows, are one kernel
  (`refcomp.topi.schedules.rows`).
- Transposes go through shared memory (`refcomp.topi.schedules.transposes`).
- In all others, neighbouring threads compute neighbouring elements of the last axis, so that their
  accesses coalesce.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import Tensor
from refcomp.topi.schedules.inlining import is_inlined
from refcomp.topi.schedules.register_tiles import find_tiles, schedule_tiles
from refcomp.topi.schedules.rows import bind_elements, find_rows, schedule_rows
from refcomp.topi.schedules.transposes import find_transposes, schedule_transposes
from refcomp.topi.schedules.window_strips import find_strips, schedule_strips


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
    tiled: set[Stage] = set()
    # Over a copy, since a sum in tiles adds stages.
    for stage in tuple(schedule.stages):
        if isinstance(stage.op, ComputeOp):
            tiled |= schedule_reuse(schedule, stage.op)
    rest = [stage for stage in schedule.stages if stage not in tiled]
    schedule_stages(schedule, rest, bind_stage)
    return schedule


def schedule_reuse(schedule: Schedule, op: ComputeOp) -> set[Stage]:
    """Schedule a reduction whose outputs share operands, if `op` is one.

    Returns:
        The stages that are scheduled now.
    """
    tiles = find_tiles(op)
    if tiles is not None:
        return schedule_tiles(schedule, tiles)
    strips = find_strips(op)
    if strips is not None:
        return schedule_strips(schedule, strips)
    return set()


def schedule_stages(
    schedule: Schedule,
    stages: Sequence[Stage],
    bind: Callable[[StageSchedule, ComputeOp], None],
) -> None:
    """Schedule the computes of `stages`, which are in the order of the schedule.

    Cheap stages are inlined. Reductions are computed in the kernel of the stage that reads them, if
    `find_rows` finds that they can be.

    Args:
        schedule: the schedule that has the stages.
        stages: the stages to schedule; others are left as they are.
        bind: divides a stage that keeps its memory among groups and threads.
    """
    rest = {stage.op: stage for stage in stages if isinstance(stage.op, ComputeOp)}
    # Consumers first: a chain is found from its last stage.
    for op in reversed(tuple(rest)):
        stage = rest.pop(op, None)
        if stage is None:
            continue
        if is_inlined(stage):
            schedule[op].compute_inline()
            continue
        chain = find_rows(schedule, op, rest)
        transposes = find_transposes(schedule, op)
        if chain is not None:
            schedule_rows(schedule, chain)
            for member in chain.members:
                del rest[member.op]
        elif transposes is not None:
            schedule_transposes(schedule, transposes)
        else:
            bind(schedule[op], op)


def bind_stage(handle: StageSchedule, op: ComputeOp) -> None:
    """Let each thread compute an element of a stage."""
    bind_elements(handle, op.axis)
