"""Tiles of sums of products for GPUs: matrix products, and convolutions with the channels last.

A group of threads computes a tile of rows and columns. In each step along the reduction it copies a
tile of both operands to shared memory. Each tile has two buffers: while one is used, the other one
is filled. A thread accumulates `thread_rows` x `thread_columns` sums in registers.

A warp has 4 x 8 threads. The rows of a thread lie 4 apart, its columns in vectors of 4. So the
threads of a warp read 128 bytes of neighbouring columns at once, and 4 neighbouring rows. Rows in
shared memory are `_STEP` + 4 elements long, so that 4 rows lie in different banks. Virtual threads
state this order of rows and columns.

Requires constant extents that the tile divides; `find_product` returns None for all others.

Reference: V. Volkov, J. Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", SC 2008; NVIDIA,
"CUTLASS: Efficient GEMM in CUDA" (documentation), for the tiles of warps and threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.foundation.dtype import F32
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Mul
from refcomp.ir.rewrite import variables_in
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import IterVar, Tensor, TensorRead, thread_axis
from refcomp.topi.tags import PAD

_WARP_ROWS, _WARP_COLUMNS = 4, 8  # threads of a warp
_LANES = 4  # f32 of an access of 128 bits
_STEP = 16  # of the reduction, in each filling of shared memory


@dataclass(frozen=True, slots=True)
class ProductTile:
    """The sums of a group of threads, and of each thread."""

    rows: int
    columns: int
    thread_rows: int
    thread_columns: int  # a multiple of 4

    @property
    def warps(self) -> tuple[int, int]:
        """Return the number of warps along the rows and along the columns."""
        rows = self.rows // (_WARP_ROWS * self.thread_rows)
        return rows, self.columns // (_WARP_COLUMNS * self.thread_columns)


# From the most reuse of each element that is read to the most groups.
TILES = (
    ProductTile(128, 128, 8, 8),
    ProductTile(128, 64, 8, 8),
    ProductTile(64, 64, 4, 8),
    ProductTile(32, 64, 4, 4),
    ProductTile(32, 32, 4, 4),
)
# Three groups for each multiprocessor of a large card. With fewer, larger tiles gain less than
# idle multiprocessors lose.
_ENOUGH_GROUPS = 384


@dataclass(frozen=True, slots=True)
class SumOfProducts:
    """A compute that adds up products of elements of two operands.

    Attributes:
        left: the operand whose elements depend on the row.
        right: the operand whose elements depend on the column.
        batch: axes on which both depend.
        rows: axes on which only `left` depends.
        column: the last axis, on which only `right` depends.
    """

    op: ComputeOp
    left: Tensor
    right: Tensor
    batch: tuple[IterVar, ...]
    rows: tuple[IterVar, ...]
    column: IterVar

    def fits(self, tile: ProductTile) -> bool:
        """Return True if `tile` divides the rows and columns."""
        return _extent(self.column) % tile.columns == 0 and bool(self.factors(tile))

    def factors(self, tile: ProductTile) -> list[int]:
        """Return for each axis of the rows its extent in a tile, or [] if none fits."""
        rest = tile.rows
        factors: list[int] = []
        for axis in reversed(self.rows):
            factors.insert(0, math.gcd(_extent(axis), rest))
            rest //= factors[0]
        return factors if rest == 1 else []

    def groups(self, tile: ProductTile) -> int:
        """Return the number of groups of threads."""
        return math.prod(map(_extent, self.op.axis)) // (tile.rows * tile.columns)


def find_product(op: ComputeOp) -> SumOfProducts | None:
    """Return the product that `op` computes, if a tile fits it."""
    reads = _factors_of_sum(op)
    if reads is None:
        return None
    for left, right in (reads, reads[::-1]):
        product = _as_product(op, left, right)
        if product is not None and any(map(product.fits, TILES)):
            return product
    return None


def choose_tile(product: SumOfProducts) -> ProductTile:
    """Return the largest tile that makes enough groups, or the smallest one that fits."""
    fitting = [tile for tile in TILES if product.fits(tile)]
    enough = [tile for tile in fitting if product.groups(tile) >= _ENOUGH_GROUPS]
    return enough[0] if enough else fitting[-1]


def _factors_of_sum(op: ComputeOp) -> tuple[TensorRead, TensorRead] | None:
    reduction = op.reduction
    if reduction is None or len(op.outputs) != 1 or op.outputs[0].dtype != F32:
        return None
    source = reduction.sources[0]
    if not isinstance(source, Mul) or as_int(reduction.condition) != 1:
        return None
    a, b = source.a, source.b
    if not (isinstance(a, TensorRead) and isinstance(b, TensorRead)):
        return None
    return None if a.tensor is b.tensor else (a, b)


def _as_product(
    op: ComputeOp, left: TensorRead, right: TensorRead
) -> SumOfProducts | None:
    seen = [
        {id(v) for i in read.indices for v in variables_in(i)} for read in (left, right)
    ]
    of_rows = [a for a in op.axis if id(a.var) in seen[0] and id(a.var) not in seen[1]]
    of_columns = [
        a for a in op.axis if id(a.var) in seen[1] and id(a.var) not in seen[0]
    ]
    batch = [a for a in op.axis if id(a.var) in seen[0] and id(a.var) in seen[1]]
    # A product has both; a scalar product of two vectors has no axes at all.
    if not of_rows or of_columns != [op.axis[-1]]:
        return None
    (column,) = of_columns
    step = op.reduce_axis[-1]
    is_known = all(map(_extent, (*op.axis, *op.reduce_axis)))
    # Accesses of 128 bits need neighbours along the step and along the column.
    is_vector = _ends_in(left, step) and _ends_in(right, column)
    if not (is_known and is_vector and _extent(step) % _STEP == 0):
        return None
    return SumOfProducts(
        op, left.tensor, right.tensor, tuple(batch), tuple(of_rows), column
    )


def _ends_in(read: TensorRead, axis: IterVar) -> bool:
    last = read.indices[-1]
    if last is not axis.var:
        return False
    before = read.indices[:-1]
    return all(axis.var is not var for index in before for var in variables_in(index))


def _extent(axis: IterVar) -> int:
    """Return the extent of the axis, or 0 if it is symbolic."""
    return as_int(axis.extent) or 0


def schedule_product(
    schedule: Schedule,
    product: SumOfProducts,
    tile: ProductTile,
    last: Tensor | None = None,
) -> set[Stage]:
    """Schedule `product`, which fits `tile`, and its operands.

    Args:
        schedule: the schedule that the product is in.
        product: the product.
        tile: the tile of a group.
        last: the output to which only elementwise computes lead from the product, if any. They are
            applied on the way to memory.

    Returns:
        The stages that are scheduled now.
    """
    (result,) = product.op.outputs
    if last is None:
        sums = schedule.cache_write(result, "local")
        last = result
    else:
        sums = result
        schedule[sums].set_scope("local")
    operands = _shared_operands(schedule, product, sums)
    registers = [schedule.cache_read(t, "local", [sums]) for t in operands]
    place = _schedule_groups(schedule[last], product, tile)
    step, vectors, element = _schedule_sums(schedule[sums], schedule[last], place)
    for copy, where in zip(registers, (vectors, element), strict=True):
        schedule[copy].compute_at(schedule[sums], where)
        _vectorize_copy(schedule[copy])
    rows, columns = (schedule[operand] for operand in operands)
    for stage, share in ((rows, _share_rows), (columns, _share_columns)):
        stage.compute_at(schedule[sums], step)
        share(stage, tile)
        stage.double_buffer()
    # Rows of 80 bytes: 4 neighbouring rows lie in different banks.
    rows.storage_align(_axes(rows)[-2], _STEP, _LANES)
    return {schedule.stage_of(tensor) for tensor in (last, sums, *operands)}


def _shared_operands(
    schedule: Schedule, product: SumOfProducts, sums: Tensor
) -> list[Tensor]:
    """Return the stages that hold a tile of each operand in shared memory."""
    operands = []
    for tensor in (product.left, product.right):
        stage = schedule.stage_of(tensor)
        op = stage.op
        is_cheap = isinstance(op, ComputeOp) and op.tag in (INJECTIVE, PAD)
        readers = [other for other in schedule.stages if tensor in other.op.inputs]
        if is_cheap and not stage.is_output and len(readers) == 1:
            schedule[tensor].set_scope("shared")  # computed on the way to shared memory
            operands.append(tensor)
        else:
            operands.append(schedule.cache_read(tensor, "shared", [sums]))
    return operands


def _schedule_groups(
    stage: StageSchedule, product: SumOfProducts, tile: ProductTile
) -> IterVar:
    """Divide the output among groups, warps and threads; return the innermost loop of threads."""
    axes = _axes(stage)
    batch, rows, column = _places(product)
    outer, inner = [], []
    for number, factor in zip(rows, product.factors(tile), strict=True):
        pair = stage.split(axes[number], factor=factor)
        outer.append(pair[0])
        inner.append(pair[1])
    group_column, in_columns = stage.split(axes[column], factor=tile.columns)
    groups = [axes[number] for number in batch]
    stage.reorder(*groups, *outer, group_column, *inner, in_columns)
    group_row = _fused(stage, outer)
    in_rows = _fused(stage, inner)

    warps = tile.warps
    warp_row, in_rows = stage.split(in_rows, nparts=warps[0])
    row, lane_row = stage.split(in_rows, factor=_WARP_ROWS)
    warp_column, in_columns = stage.split(in_columns, nparts=warps[1])
    column_vector, in_columns = stage.split(in_columns, factor=_WARP_COLUMNS * _LANES)
    lane_column, vector = stage.split(in_columns, factor=_LANES)
    stage.reorder(
        *(group_row, group_column, row, column_vector),
        *(warp_row, warp_column, lane_row, lane_column, vector),
    )
    if groups:
        stage.bind(_fused(stage, groups), thread_axis("blockIdx.z"))
    stage.bind(group_row, thread_axis("blockIdx.y"))
    stage.bind(group_column, thread_axis("blockIdx.x"))
    for virtual in (row, column_vector):
        stage.bind(virtual, thread_axis("vthread"))
    _bind_threads(stage, stage.fuse(warp_row, warp_column), lane_row, lane_column)
    stage.vectorize(vector)
    return lane_column


def _places(product: SumOfProducts) -> tuple[list[int], list[int], int]:
    """Return the numbers of the axes of the batch, of the rows, and of the column."""
    axes = product.op.axis
    batch = [k for k, axis in enumerate(axes) if axis in product.batch]
    rows = [k for k, axis in enumerate(axes) if axis in product.rows]
    return batch, rows, len(axes) - 1


def _axes(stage: StageSchedule) -> tuple[IterVar, ...]:
    assert isinstance(stage.op, ComputeOp)
    return stage.op.axis


def _fused(stage: StageSchedule, axes: Sequence[IterVar]) -> IterVar:
    return stage.fuse(*axes) if len(axes) > 1 else axes[0]


def _schedule_sums(
    sums: StageSchedule, output: StageSchedule, place: IterVar
) -> tuple[IterVar, IterVar, IterVar]:
    """Order the loops of the sums. Return the loops in which operands are copied to nearer memory.

    Returns:
        A step along the reduction, a vector of elements of a row, and one element of it.
    """
    sums.compute_at(output, place)
    assert isinstance(sums.op, ComputeOp)
    *before, depth = sums.op.reduce_axis
    step, inside = sums.split(depth, factor=_STEP)
    vectors, element = sums.split(inside, factor=_LANES)
    sums.reorder(*before, step, vectors, element, *sums.op.axis)
    for axis in (vectors, element, *sums.op.axis):
        sums.unroll(axis)
    # One loop over all steps: the first filling of each inner loop would not be hidden.
    return _fused(sums, [*before, step]), vectors, element


def _vectorize_copy(copy: StageSchedule) -> None:
    *others, last = _axes(copy)
    outer, lanes = copy.split(last, factor=_LANES)
    for axis in (*others, outer):
        copy.unroll(axis)
    copy.vectorize(lanes)


def _share_rows(stage: StageSchedule, tile: ProductTile) -> None:
    """Divide the filling of the left tile among all threads, in vectors.

    Eight threads store to eight rows, which lie in different banks.
    """
    *rows, depth = _axes(stage)
    vector, lanes = stage.split(depth, factor=_LANES)
    rest, row = stage.split(_fused(stage, rows), factor=_WARP_COLUMNS)
    turns, warp = stage.split(rest, factor=math.prod(tile.warps))
    stage.reorder(turns, warp, row, vector, lanes)
    _bind_threads(stage, warp, vector, row)
    stage.vectorize(lanes)
    stage.unroll(turns)


def _share_columns(stage: StageSchedule, tile: ProductTile) -> None:
    """Divide the filling of the right tile among all threads, in vectors."""
    whole = _fused(stage, _axes(stage))
    rest, lanes = stage.split(whole, factor=_LANES)
    rest, lane_column = stage.split(rest, factor=_WARP_COLUMNS)
    rest, lane_row = stage.split(rest, factor=_WARP_ROWS)
    turns, warp = stage.split(rest, factor=math.prod(tile.warps))
    _bind_threads(stage, warp, lane_row, lane_column)
    stage.vectorize(lanes)
    stage.unroll(turns)


def _bind_threads(stage: StageSchedule, z: IterVar, y: IterVar, x: IterVar) -> None:
    stage.bind(z, thread_axis("threadIdx.z"))
    stage.bind(y, thread_axis("threadIdx.y"))
    stage.bind(x, thread_axis("threadIdx.x"))
