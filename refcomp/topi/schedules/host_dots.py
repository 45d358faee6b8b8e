"""The host's schedule of dot products: both factors are read in vectors along the reduction.

Each sum has a vector of partial sums. At the end of the reduction their lanes are added, by halves.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as combinations

from refcomp.ir.constants import as_int
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import IterVar, Tensor
from refcomp.topi.schedules.blocked_convolution import local_result
from refcomp.topi.schedules.host_products import (
    RegisterTile,
    axis_parts,
    depends_on,
    extent_of,
    factors_of,
    fits_registers,
    is_contiguous_along,
    unroll_tile,
    vector_length,
)
from refcomp.topi.schedules.vector_registers import VectorRegisters

# So many lanes of a sum are added one by one.
_FEW_LANES = 4
# The most rows and columns of dot products that are computed at once.
_MAX_DOT_SIDE = 4


@dataclass(frozen=True, slots=True)
class HostDot:
    """A sum of products both of whose factors are read in vectors along the reduction.

    Attributes:
        op: the compute.
        row: the last axis on which only the first factor depends.
        column: the last axis on which only the second factor depends.
        lanes: the elements of a vector. They divide the last axis of the reduction.
    """

    op: ComputeOp
    row: int
    column: int
    lanes: int


def find_host_dot(op: ComputeOp, registers: VectorRegisters) -> HostDot | None:
    """Return the dot products that `op` computes, if several share their factors."""
    factors = factors_of(op)
    if factors is None:
        return None
    depth = op.reduce_axis[-1]
    length = as_int(depth.extent) or 0
    lanes = vector_length(op, registers)
    if (
        not all(is_contiguous_along(factor, depth.var) for factor in factors)
        or not length
    ):
        return None
    own = []
    for factor, other in (factors, factors[::-1]):
        places = [
            place
            for place, axis in enumerate(op.axis)
            if depends_on(factor, axis.var) and not depends_on(other, axis.var)
        ]
        if not places or extent_of(op, places[-1]) < 2:
            return None
        own.append(places[-1])
    row, column = own
    return HostDot(op, row, column, lanes) if length % lanes == 0 else None


def choose_dot_tile(dot: HostDot, registers: VectorRegisters) -> tuple[int, int]:
    """Return the rows and columns of dot products that are computed at once."""
    rows = extent_of(dot.op, dot.row)
    columns = extent_of(dot.op, dot.column)

    def time(sides: tuple[int, int]) -> int:
        tile = RegisterTile(*sides, vectors=1, lanes=dot.lanes)
        cost = 0
        for row, column in combinations(
            axis_parts(rows, tile.rows), axis_parts(columns, tile.columns)
        ):
            part = RegisterTile(row.size, column.size, vectors=1, lanes=dot.lanes)
            spent = part.time(registers)
            if part != tile:
                spent = max(spent, registers.border_time * tile.time(registers))
            cost += row.number * column.number * spent
        return cost

    sides = range(1, _MAX_DOT_SIDE + 1)
    fitting = [
        (row, column)
        for row, column in combinations(sides, sides)
        if row <= rows and column <= columns and fits_registers(row, column, registers)
    ]
    return min(fitting, key=time)


def schedule_host_dot(
    schedule: Schedule, dot: HostDot, registers: VectorRegisters
) -> set[Stage]:
    """Schedule `dot` in tiles, within the loops of the elementwise output that follows it.

    Returns:
        The stages that are scheduled now.
    """
    last, sums = local_result(schedule, dot.op)
    partial = [_keep_lanes(schedule, sums, dot.lanes)]
    # A vector is added to its other half, until few lanes are left to be added one by one.
    lanes = dot.lanes // 2
    while lanes >= _FEW_LANES:
        partial.append(_keep_lanes(schedule, sums, lanes))
        lanes //= 2
    outer = schedule[last]
    assert isinstance(last.op, ComputeOp)
    inside: list[IterVar] = []
    sides = choose_dot_tile(dot, registers)
    for place, factor in zip((dot.row, dot.column), sides, strict=True):
        inside.append(outer.split(last.op.axis[place], factor=factor)[1])
    others = [axis for axis in outer.leaf_iter_vars if axis not in inside]
    outer.reorder(*others, *inside)
    for axis in inside:
        outer.unroll(axis)
    for tensor in (*partial, sums):
        stage = schedule[tensor]
        stage.set_scope("local")
        stage.compute_at(outer, others[-1])
    for tensor in partial:
        _order_lanes(schedule[tensor], has_loop=tensor is partial[0])
    for axis in schedule[sums].leaf_iter_vars:
        schedule[sums].unroll(axis)
    return {schedule.stage_of(tensor) for tensor in (last, sums, *partial)}


def _keep_lanes(schedule: Schedule, sums: Tensor, lanes: int) -> Tensor:
    """Keep sums of every `lanes`-th element apart, in a stage that has them as vectors."""
    op = schedule[sums].op
    assert isinstance(op, ComputeOp)
    _, lane = schedule[sums].split(op.reduce_axis[-1], factor=lanes)
    kept: Tensor = schedule.rfactor(sums, lane, factor_axis=-1)
    return kept


def _order_lanes(stage: StageSchedule, has_loop: bool) -> None:
    """Order the loops of sums of lanes; only the first of these stages has a long reduction."""
    assert isinstance(stage.op, ComputeOp)
    *places, lane = stage.op.axis
    reduced = [axis for axis in stage.leaf_iter_vars if axis not in stage.op.axis]
    stage.reorder(*reduced, *places, lane)
    unroll_tile(stage, [*([] if has_loop else reduced), *places, lane])
