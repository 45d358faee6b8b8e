"""Reductions over small windows on GPUs: each thread computes a strip of windows that overlap.

The windows of a depthwise convolution or of a pooling overlap. A thread computes some windows below
each other. It reads their common rows once, and keeps them in registers. It reads so few elements
that shared memory would not help. Neighbouring threads have neighbours of the last axis, so that
their accesses coalesce.

    for each thread:   near[6, 3] = data[y * 4 .., x ..]        a strip of four windows of 3 x 3
                       for i in 0 .. 3: sums[i] = sum over (ky, kx) of near[i + ky, kx] * w[ky, kx]

A border around the data is computed with the elements that are read, and has no memory of its own.
All loops of a thread are written out.

Requires a window of constant extents, and indices that are sums of axes and their multiples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from refcomp.ir.constants import as_int
from refcomp.ir.expr import Add, Cast, Expr, IntImm, Mul, Sub, Var
from refcomp.ir.rewrite import variables_in, walk
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_graph import readers_of
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import IterVar, Tensor, TensorRead
from refcomp.topi.schedules.blocked_convolution import local_result
from refcomp.topi.schedules.register_tiles import index_width, mixes_axes
from refcomp.topi.schedules.rows import bind_elements, reads_of
from refcomp.topi.tags import PAD

_MAX_STRIP = 8  # windows of a thread
_MAX_STEPS = 128  # of a thread, which are written out


@dataclass(frozen=True, slots=True)
class WindowStrips:
    """A reduction over windows, and the strips in which threads compute it.

    Attributes:
        op: the compute.
        data: the tensor that has the windows.
        axis: the axis of `op` along a strip; None if no windows overlap along any.
        windows: the number of windows of a strip.
    """

    op: ComputeOp
    data: Tensor
    axis: IterVar | None
    windows: int


def find_strips(op: ComputeOp) -> WindowStrips | None:
    """Return the strips of a reduction over windows; None for other computes.

    A strip has one window if windows do not overlap, or only along the last axis. That is still
    worthwhile if the data has a border.
    """
    steps = math.prod(as_int(axis.extent) or 0 for axis in op.reduce_axis)
    if not op.reduce_axis or len(op.outputs) != 1 or not 1 < steps <= _MAX_STEPS:
        return None
    moving = [read for read in reads_of(op) if _has_windows(read, op)]
    data = {read.tensor for read in moving}
    if len(data) != 1:
        return None
    wide = [axis for axis in op.axis if as_int(axis.extent) != 1]
    axis = next((a for a in wide[:-1] if _overlaps(moving[0], op, a)), None)
    extent = 1 if axis is None else as_int(axis.extent) or 1
    strips = -(-extent // min(_MAX_STRIP, _MAX_STEPS // steps))
    windows = -(-extent // strips)  # the strips are about equally long
    (tensor,) = data
    if windows == 1 and not _is_border(tensor):
        return None
    return WindowStrips(op, tensor, axis if windows > 1 else None, windows)


def _is_border(tensor: Tensor) -> bool:
    return isinstance(tensor.op, ComputeOp) and tensor.op.tag == PAD


def _has_windows(read: TensorRead, op: ComputeOp) -> bool:
    """Return True if an index depends on an output axis and on a reduction axis."""
    own = {axis.var for axis in op.axis}
    reduced = {axis.var for axis in op.reduce_axis}
    return any(mixes_axes(index, own, reduced) for index in read.indices)


def _overlaps(read: TensorRead, op: ComputeOp, axis: IterVar) -> bool:
    """Return True if neighbouring windows along `axis` share elements."""
    reduced = {axis.var: as_int(axis.extent) or 1 for axis in op.reduce_axis}
    for index in read.indices:
        found = set(variables_in(index))
        if axis.var not in found or found.isdisjoint(reduced):
            continue
        if not _is_affine(index):
            return False
        window = index_width(index, reduced)
        stride = index_width(index, {**reduced, axis.var: 2}) - window
        return 0 < stride < window
    return False


def _is_affine(index: Expr) -> bool:
    """Return True for a sum of variables and of constant multiples of them."""
    for node in walk(index):
        if isinstance(node, Mul) and as_int(node.a) is None and as_int(node.b) is None:
            return False
        if not isinstance(node, Add | Sub | Mul | Cast | Var | IntImm):
            return False
    return True


def schedule_strips(schedule: Schedule, found: WindowStrips) -> set[Stage]:
    """Schedule the reduction, its border, and the elementwise output that follows it, if any.

    Returns:
        The stages that are scheduled now.
    """
    last, sums = local_result(schedule, found.op)
    near = _local_data(schedule, found.data, sums)
    outer = schedule[last]
    assert isinstance(last.op, ComputeOp)
    places = list(last.op.axis)
    strip: list[IterVar] = []
    if found.axis is not None:
        number = found.op.axis.index(found.axis)
        places[number], own = outer.split(places[number], factor=found.windows)
        strip = [own]
    outer.reorder(*places, *strip)
    thread = bind_elements(outer, places)
    for axis in strip:
        outer.unroll(axis)
    for tensor in (near, sums):
        stage = schedule[tensor]
        stage.compute_at(outer, thread)
        assert isinstance(stage.op, ComputeOp)
        stage.reorder(*stage.op.reduce_axis, *stage.op.axis)
        for axis in (*stage.op.reduce_axis, *stage.op.axis):
            stage.unroll(axis)
    return {schedule.stage_of(tensor) for tensor in (last, sums, near)}


def _local_data(schedule: Schedule, data: Tensor, sums: Tensor) -> Tensor:
    """Return the stage that holds the elements that a thread reads: the border, or a copy."""
    stage = schedule.stage_of(data)
    if _is_border(data) and not stage.is_output and len(readers_of(stage)) == 1:
        schedule[data].set_scope("local")
        return data
    return schedule.cache_read(data, "local", [sums])
