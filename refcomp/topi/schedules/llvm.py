"""Schedules for the host: explicit vectors over the last axis, tiles of registers, threads.

`schedule_llvm` takes any computation made of topi operators. It schedules a stage by its tag
(`refcomp.topi.tags`) and its constant extents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from refcomp.foundation.target import Target
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, FloorDiv, FloorMod
from refcomp.ir.rewrite import variables_in, walk
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import IterVar, Tensor
from refcomp.topi.schedules.blocked_convolution import schedule_blocked_convolution
from refcomp.topi.schedules.host_dots import find_host_dot, schedule_host_dot
from refcomp.topi.schedules.host_products import (
    find_host_product,
    find_host_reduction,
    greatest_divisor,
    is_contiguous_along,
    schedule_host_product,
)
from refcomp.topi.schedules.host_rows import (
    schedule_host_rows,
    suits_host_rows,
    vector_lanes,
)
from refcomp.topi.schedules.host_streams import is_streamed, schedule_streamed
from refcomp.topi.schedules.host_threads import share_among_threads
from refcomp.topi.schedules.inlining import is_inlined
from refcomp.topi.schedules.rows import find_rows, reads_of, reduces_neighbours
from refcomp.topi.schedules.vector_registers import VectorRegisters, vector_registers
from refcomp.topi.schedules.winograd import schedule_winograd
from refcomp.topi.tags import CONV2D_NCHWC, CONV2D_WINOGRAD, DEPTHWISE_NCHWC

# Convolutions of channels in blocks.
_BLOCKED = (CONV2D_NCHWC, DEPTHWISE_NCHWC)

# Vector registers that hold sums. With the operands of one step, they fit in the 32 of AVX-512.
_ACCUMULATORS = 16
# Reductions of at most so many steps, such as a 3 x 3 window, are unrolled: their loops would cost
# more than their bodies.
_MAX_UNROLLED_STEPS = 9
# The side of the squares in which a tensor is transposed.
_SQUARE = 8
# Vectors of fewer elements gain less than a gather.
_MIN_STEP = 4


def schedule_llvm(outputs: Sequence[Tensor], target: Target | str = "llvm") -> Schedule:
    """Return a schedule for the host of all stages on which `outputs` depend.

    Args:
        outputs: a list of tensors, which topi's operators or your own computes returned.
        target: the target of the schedule. Tiles of sums fit the vector registers of its `-mcpu`,
            by default of this host.

    Raises:
        UserError: an output is not a tensor, or the target or its processor is unknown.

    Example::

        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.topi.tanh(rc.topi.relu(A))
        >>> s = rc.topi.schedule_llvm([B])
        >>> print(rc.lower(s, [A, B], "fused"))
        func fused(A: f32[64], tanh: f32[64] out) {
          for i0.outer in range(4) {
            for i0.inner in range(16) vectorized {
              tanh[i0.outer * 16 + i0.inner] = tanh(max(A[i0.outer * 16 + i0.inner], 0.0f32))
            }
          }
        }
    """
    schedule = create_schedule(outputs)
    registers = vector_registers(target)
    tiled: set[Stage] = set()
    # These first: a convolution also schedules the stage that follows it. Over a copy, since
    # cache_write adds a stage.
    for stage in tuple(schedule.stages):
        if isinstance(stage.op, ComputeOp) and stage.op.tag in _BLOCKED:
            tiled |= schedule_blocked_convolution(schedule, stage.op, registers)
        elif isinstance(stage.op, ComputeOp) and stage.op.tag == CONV2D_WINOGRAD:
            tiled |= schedule_winograd(schedule, stage.op, registers)
    for stage in tuple(schedule.stages):
        if isinstance(stage.op, ComputeOp) and stage not in tiled:
            tiled |= _schedule_sums(schedule, stage.op, registers)
    rest = {
        stage.op: stage
        for stage in schedule.stages
        if isinstance(stage.op, ComputeOp) and stage not in tiled
    }
    # Consumers first: a chain of rows is found from its last stage.
    for op in reversed(tuple(rest)):
        if op not in rest:
            continue
        stage = rest.pop(op)
        chain = None if is_inlined(stage) else find_rows(schedule, op, rest)
        if chain is not None and suits_host_rows(chain):
            schedule_host_rows(schedule, chain)
            for member in chain.members:
                del rest[member.op]
        else:
            _schedule_alone(schedule[op], op, stage)
    share_among_threads(schedule)
    return schedule


def _schedule_sums(
    schedule: Schedule, op: ComputeOp, registers: VectorRegisters
) -> set[Stage]:
    """Schedule a reduction in tiles of registers. Return the stages that are scheduled now.

    Products come first. Other reductions of neighbours in memory are left to chains of rows, unless
    neighbours of the result read the same elements, as in cumulative sums.
    """
    dot = find_host_dot(op, registers)
    if dot is not None:
        return schedule_host_dot(schedule, dot, registers)
    product = find_host_product(op)
    if (
        product is None
        and op.reduce_axis
        and (not reduces_neighbours(op) or _repeats_reads(op))
    ):
        product = find_host_reduction(op)
    if product is None:
        return set()
    if is_streamed(product, registers):
        return schedule_streamed(schedule, product, registers)
    return schedule_host_product(schedule, product, registers)


def _schedule_alone(handle: StageSchedule, op: ComputeOp, stage: Stage) -> None:
    """Schedule a stage that keeps its memory, or is computed where it is read."""
    if is_inlined(stage):
        handle.compute_inline()
    elif op.reduce_axis:
        _schedule_reduction(handle, op)
    else:
        _vectorize_last(handle, op)


def stored_tensors(schedule: Schedule) -> tuple[Tensor, ...]:
    """Return the computed tensors that need memory of their own and are not outputs, in order."""
    stored: list[Tensor] = []
    for stage in schedule.stages:
        is_stored = stage.placement == "root" and not stage.is_output
        if isinstance(stage.op, ComputeOp) and is_stored:
            stored += stage.op.outputs
    return tuple(stored)


def _constant(axis: IterVar) -> int:
    """Return the extent of the axis, or 0 if it is symbolic."""
    return as_int(axis.extent) or 0


def _lanes(op: ComputeOp, extent: int) -> int:
    """Return the vector length for an axis of `extent`, by the widest output."""
    widest = max(op.outputs, key=lambda tensor: int(tensor.dtype.bytes))
    return vector_lanes(extent, widest)


def _last_wide_axis(op: ComputeOp) -> IterVar | None:
    """Return the last axis with more than one element, or None if its extent is symbolic."""
    wide = [axis for axis in op.axis if _constant(axis) != 1]
    return wide[-1] if wide and _constant(wide[-1]) > 1 else None


def _repeats_reads(op: ComputeOp) -> bool:
    """Return True if all elements along the last axis read the same ones of each tensor."""
    axis = _last_wide_axis(op)
    return axis is not None and not any(
        variable is axis.var
        for read in reads_of(op)
        for index in read.indices
        for variable in variables_in(index)
    )


def _vectorize_last(handle: StageSchedule, op: ComputeOp) -> None:
    axis = _last_wide_axis(op)
    if axis is None:
        return
    across = _axis_across(op, axis)
    if across is None:
        _, inner = handle.split(axis, _lanes_in_steps(op, axis))
        tile = [inner]
    else:
        # A square whose rows and columns both stay in the cache, one vector of each row at a time.
        _, row = handle.split(across, _square_side(_constant(across)))
        _, inner = handle.split(axis, _SQUARE)
        tile = [row, inner]
    # Axes of extent 1 may follow; only the innermost loop can be vectorized.
    outer = [other for other in handle.leaf_iter_vars if other not in tile]
    handle.reorder(*outer, *tile)
    handle.vectorize(inner)


def _square_side(extent: int) -> int:
    """Return the rows of a square for an axis, without a guard for the last square if possible."""
    side = greatest_divisor(extent, _SQUARE)
    return side if side >= _MIN_STEP else _SQUARE


def _axis_across(op: ComputeOp, last: IterVar) -> IterVar | None:
    """Return the axis along which operands are contiguous, if none is along `last`.

    Both axes are longer than the side of a square; otherwise it is None.
    """
    reads = reads_of(op)
    if not reads or any(is_contiguous_along(read, last.var) for read in reads):
        return None
    for axis in op.axis:
        is_along = all(is_contiguous_along(read, axis.var) for read in reads)
        if (
            axis is not last
            and is_along
            and min(_constant(axis), _constant(last)) >= _SQUARE
        ):
            return axis
    return None


def _lanes_in_steps(op: ComputeOp, axis: IterVar) -> int:
    """Return the vector length for an axis, so that no vector crosses a step of an index.

    An index `i // 56` or `i % 56` has steps of 56: within one, neighbours stay neighbours.
    """
    steps = _constant(axis)
    for root in op.body:
        for node in walk(root):
            if isinstance(node, FloorDiv | FloorMod) and _varies(node.a, axis):
                steps = math.gcd(steps, as_int(node.b) or 0)
    return _lanes(op, steps if steps >= _MIN_STEP else _constant(axis))


def _varies(index: Expr, axis: IterVar) -> bool:
    """Return True if an index depends on the axis otherwise than by a quotient, which has steps."""
    nodes = tuple(walk(index))
    is_quotient = any(isinstance(node, FloorDiv) for node in nodes)
    return not is_quotient and any(node is axis.var for node in nodes)


def _schedule_reduction(handle: StageSchedule, op: ComputeOp) -> None:
    """Vectorize the last axis, with several vectors of sums inside the reduction's loops.

    Several sums hide the latency of the additions, which depend on each other within one sum.
    """
    axis = _last_wide_axis(op)
    if axis is not None:
        outer, inner = handle.split(axis, _lanes(op, _constant(axis)))
        vectors = greatest_divisor(_constant(outer), _ACCUMULATORS // 4)
        blocks, several = handle.split(outer, vectors)
        rest = [other for other in op.axis if other is not axis]
        handle.reorder(*rest, blocks, *op.reduce_axis, several, inner)
        handle.unroll(several)
        handle.vectorize(inner)
    steps = math.prod(_constant(axis) for axis in op.reduce_axis)
    if 0 < steps <= _MAX_UNROLLED_STEPS:
        for reduced in op.reduce_axis:
            handle.unroll(reduced)
