"""The host's schedule of rows: reductions along contiguous axes, and computes of their results.

A chain such as softmax or layer normalization (see `rows.find_rows`) is computed row by row, so
that a row stays in the cache. Each reduction adds up vectors along the row. It has several sums at
once, since each addition waits for the one before it. At the end of a row the vectors are added,
and then the elements of one vector.
"""

from __future__ import annotations

from refcomp.ir.constants import as_int
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import IterVar, Tensor
from refcomp.topi.schedules.rows import RowChain

# Bytes of the widest vector register, that of AVX-512. LLVM splits vectors for narrower machines.
_VECTOR_BYTES = 64
# Vectors that are added up at once hide the latency of an addition.
_MAX_VECTORS = 5
# So many lanes of a vector are combined one by one.
_FEW_LANES = 4
# Shorter rows gain nothing from vectors along them.
_MIN_LENGTH = 4


def suits_host_rows(chain: RowChain) -> bool:
    """Return True if all reductions of a chain run over neighbours in memory, of constant number.

    The root has elements, and a single output.
    """
    extents = [as_int(axis.extent) for axis in chain.root.axis]
    if 0 in extents or len(chain.root.outputs) != 1:
        return False
    lengths = [as_int(op.reduce_axis[-1].extent) or 0 for op in chain.reductions]
    return min(lengths) >= _MIN_LENGTH and chain.reduces_neighbours


def schedule_host_rows(schedule: Schedule, chain: RowChain) -> None:
    """Schedule all stages of `chain` within the loops of its root."""
    (result,) = chain.root.outputs
    reductions = [
        member.op.outputs[0] for member in chain.members if member.op.reduce_axis
    ]
    if chain.root.reduce_axis:
        # Sums are kept in registers, and stored once.
        reductions.append(schedule.cache_write(result, "local"))
    root = schedule[result]
    place = _order_root(root, chain)
    for member in chain.members:
        stage = schedule[member.op]
        if member.op.reduce_axis:
            continue
        if member.op.tag == INJECTIVE:
            stage.compute_inline()
        else:
            stage.compute_at(root, place)
            vectorize_row(stage, member.row)
    for tensor in reductions:
        for part in (*_split_reduction(schedule, tensor), tensor):
            schedule[part].set_scope("local")
            schedule[part].compute_at(root, place)


def _order_root(root: StageSchedule, chain: RowChain) -> IterVar:
    """Order the loops of the root. Return the loop over rows, which contains all others."""
    op = root.op
    assert isinstance(op, ComputeOp)
    if not chain.row:
        return op.axis[-1] if op.axis else root.fuse()
    root.reorder(*chain.kept, *chain.row)
    place = chain.kept[-1] if chain.kept else None
    row = chain.row
    if place is None:
        # A single row: a loop of one iteration holds it.
        place, first = root.split(row[0], nparts=1)
        row = (first, *row[1:])
    vectorize_row(root, row)
    return place


def vectorize_row(stage: StageSchedule, row: tuple[IterVar, ...]) -> None:
    """Vectorize the last axis of a row, if it is longer than 1."""
    long = [axis for axis in row if as_int(axis.extent) != 1]
    if not long or as_int(long[-1].extent) is None:
        return
    lanes = vector_lanes(as_int(long[-1].extent) or 1, stage.op.outputs[0])
    _, lane = stage.split(long[-1], factor=lanes)
    rest = [axis for axis in stage.leaf_iter_vars if axis is not lane]
    stage.reorder(*rest, lane)
    stage.vectorize(lane)


def vector_lanes(length: int, tensor: Tensor) -> int:
    """Return the number of lanes for an axis of `length`: one that divides it, if possible."""
    most: int = max(1, _VECTOR_BYTES // tensor.dtype.bytes)
    if length <= most:
        return length
    # First the lengths of registers, then those that fill most of one.
    candidates: list[int] = [most, most // 2, *range(most, most // 4, -1), most // 4]
    fitting = [lanes for lanes in candidates if lanes > 1 and length % lanes == 0]
    return fitting[0] if fitting else most


def _split_reduction(schedule: Schedule, tensor: Tensor) -> list[Tensor]:
    """Divide a reduction: vectors along the row, then their sum, then its elements.

    Returns:
        The tensors of the new stages.
    """
    stage = schedule[tensor]
    assert isinstance(stage.op, ComputeOp)
    last = stage.op.reduce_axis[-1]
    length = as_int(last.extent) or 1
    lanes = vector_lanes(length, tensor)
    vectors = max(
        n for n in range(1, _MAX_VECTORS + 1) if length % (n * lanes) == 0 or n == 1
    )
    _, part = stage.split(last, factor=lanes * vectors)
    stages = [_factored(schedule, tensor, part, lanes)]
    # The vectors are combined, then a vector with its other half, until few lanes are left.
    kept = lanes if vectors > 1 else _half(lanes)
    while kept:
        (rest,) = _reduce_axes(schedule[tensor])
        _, lane = schedule[tensor].split(rest, factor=kept)
        stages.append(_factored(schedule, tensor, lane, kept))
        # Without a loop over them, the vectors are registers.
        for axis in _reduce_axes(schedule[stages[-1]]):
            schedule[stages[-1]].unroll(axis)
        kept = _half(kept)
    for axis in _reduce_axes(schedule[tensor]):
        schedule[tensor].unroll(axis)
    return stages


def _half(lanes: int) -> int:
    """Return the length of half a vector, or 0 if its lanes are combined one by one."""
    return lanes // 2 if lanes % 2 == 0 and lanes > _FEW_LANES else 0


def _factored(schedule: Schedule, tensor: Tensor, axis: IterVar, lanes: int) -> Tensor:
    """Keep the results along `axis` apart, in a stage that has them as vectors."""
    factored: Tensor = schedule.rfactor(tensor, axis, factor_axis=-1)
    stage = schedule[factored]
    assert isinstance(stage.op, ComputeOp)
    *outer, parts = stage.op.axis
    vectors, lane = stage.split(parts, factor=lanes)
    reduced = [
        axis for axis in stage.leaf_iter_vars if axis not in (*outer, vectors, lane)
    ]
    stage.reorder(*outer, *reduced, vectors, lane)
    stage.unroll(vectors)
    stage.vectorize(lane)
    return factored


def _reduce_axes(stage: StageSchedule) -> tuple[IterVar, ...]:
    assert isinstance(stage.op, ComputeOp)
    return stage.op.reduce_axis
