"""Schedules for the host: explicit vectors over the last axis, a tile of registers, no threads.

`schedule_llvm` takes any computation made of topi operators; what it does with a stage follows
from the stage's tag (`refcomp.topi.tags`) and its constant extents.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.ir.constants import as_int
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import IterVar, Tensor
from refcomp.topi.schedules.blocked_convolution import schedule_blocked_convolution
from refcomp.topi.tags import CONV2D_NCHWC, CONV2D_NHWC, INJECTIVE

# Bytes of the widest vector register, and how many registers hold accumulators: with the operands
# of one step they fit in the 32 registers of AVX-512. Narrower machines split the vectors.
_VECTOR_BYTES = 64
_ACCUMULATORS = 16
# Reductions of at most so many steps are written out: a loop would cost more than its body.
_UNROLLED_STEPS = 9


def schedule_llvm(outputs: Sequence[Tensor]) -> Schedule:
    """A schedule of everything that `outputs` are computed from."""
    schedule = create_schedule(outputs)
    tiled: set[Stage] = set()
    for stage in tuple(schedule.stages):
        if isinstance(stage.op, ComputeOp) and stage.op.tag == CONV2D_NCHWC:
            tiled |= schedule_blocked_convolution(schedule, stage.op)
    for stage in schedule.stages:
        op = stage.op
        if not isinstance(op, ComputeOp) or stage in tiled:
            continue
        handle = schedule[op]
        if op.tag == INJECTIVE and not stage.is_output:
            handle.compute_inline()
        elif op.tag == CONV2D_NHWC:
            _schedule_convolution(handle, op)
        elif op.reduce_axis:
            _schedule_reduction(handle, op)
        else:
            _vectorize_last(handle, op)
    return schedule


def stored_tensors(schedule: Schedule) -> tuple[Tensor, ...]:
    """Return the workspaces: computed tensors that need memory and are not outputs, in order."""
    return tuple(
        tensor
        for stage in schedule.stages
        if isinstance(stage.op, ComputeOp)
        and stage.placement == "root"
        and not stage.is_output
        for tensor in stage.op.outputs
    )


def _constant(axis: IterVar) -> int:
    """The axis' extent, 0 when it is symbolic."""
    return as_int(axis.extent) or 0


def _greatest_divisor(number: int, limit: int) -> int:
    return next((d for d in range(min(number, limit), 1, -1) if number % d == 0), 1)


def _lanes(op: ComputeOp, extent: int) -> int:
    """The vector length for an axis of `extent`: a power of two that divides it if one does."""
    most = max(1, _VECTOR_BYTES // max(tensor.dtype.bytes for tensor in op.outputs))
    if extent <= most:
        return max(1, extent)
    return next(
        (n for n in (most, most // 2, most // 4) if n > 1 and extent % n == 0), most
    )


def _last_wide_axis(op: ComputeOp) -> IterVar | None:
    """The last axis with more than one element, if its extent is constant and it is worth it."""
    wide = [axis for axis in op.axis if _constant(axis) != 1]
    return wide[-1] if wide and _constant(wide[-1]) > 1 else None


def _vectorize_last(handle: StageSchedule, op: ComputeOp) -> None:
    axis = _last_wide_axis(op)
    if axis is None:
        return
    _, inner = handle.split(axis, _lanes(op, _constant(axis)))
    handle.reorder(*[a for a in handle.leaf_iter_vars if a is not inner], inner)
    handle.vectorize(inner)


def _schedule_reduction(handle: StageSchedule, op: ComputeOp) -> None:
    """Vectors over the last axis, several at once, inside the reduction's loops."""
    axis = _last_wide_axis(op)
    if axis is not None:
        outer, inner = handle.split(axis, _lanes(op, _constant(axis)))
        vectors = _constant(outer)
        blocks, several = handle.split(
            outer, _greatest_divisor(vectors, _ACCUMULATORS // 4)
        )
        rest = [a for a in op.axis if a is not axis]
        handle.reorder(*rest, blocks, *op.reduce_axis, several, inner)
        handle.unroll(several)
        handle.vectorize(inner)
    _unroll_short_reduction(handle, op)


def _unroll_short_reduction(handle: StageSchedule, op: ComputeOp) -> None:
    steps = 1
    for axis in op.reduce_axis:
        steps *= _constant(axis)
    if 0 < steps <= _UNROLLED_STEPS:
        for axis in op.reduce_axis:
            handle.unroll(axis)


def _schedule_convolution(handle: StageSchedule, op: ComputeOp) -> None:
    """A tile of pixels and of vectors of output channels, kept over the whole reduction."""
    n, y, x, o = op.axis
    o_vectors, o_lanes = handle.split(o, _lanes(op, _constant(o)))
    depth = _greatest_divisor(_constant(o_vectors), 2)
    o_blocks, o_several = handle.split(o_vectors, depth)
    width = _greatest_divisor(_constant(x), _ACCUMULATORS // depth)
    height = _greatest_divisor(_constant(y), _ACCUMULATORS // (depth * width))
    y_outer, y_inner = handle.split(y, height)
    x_outer, x_inner = handle.split(x, width)
    tile = (y_inner, x_inner, o_several)
    handle.reorder(n, o_blocks, y_outer, x_outer, *op.reduce_axis, *tile, o_lanes)
    for axis in tile:
        handle.unroll(axis)
    handle.vectorize(o_lanes)
