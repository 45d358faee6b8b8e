"""Products and convolutions for GPUs of any maker: tiles in shared memory and in registers.

The element of such a compute is a sum of products of an element of either operand. Output axes on
which only one operand depends are *rows*. The other operand depends on the *columns*, among which
is the last axis. A group of threads computes a tile of rows and columns:

- It walks along the deepest reduction axis in steps. Each step copies a tile of both operands to
  shared memory. Many threads then read each element of a tile. The elements of a convolution's
  windows overlap; shared memory has each of them once.
- Neighbouring threads have neighbouring columns, so that their stores coalesce. Each thread
  accumulates several rows and columns in registers. Its columns are as far apart as there are
  threads along them.

Rows of an operand that ends in the reduction have an odd length in shared memory, so that
neighbouring rows lie in different banks. Tiles that do not divide an extent have guards.

Requires constant extents. `find_tiles` returns None for a compute that is too small.

Reference: V. Volkov, J. Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", SC 2008; S.
Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Cast, Expr, IntImm, Mul, Var
from refcomp.ir.rewrite import substitute, variables_in
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_graph import readers_of
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import IterVar, Tensor, TensorRead, thread_axis
from refcomp.topi.schedules.blocked_convolution import local_result
from refcomp.topi.tags import PAD

_THREADS = 256  # of a group, at most
_COLUMN_LANES = 32
# Of rows and of columns: from the most reuse of each element to the least shared memory.
_REGISTERS = ((8, 4), (4, 4), (4, 2))
_VECTOR = 2  # neighbours in memory, for instructions that multiply and add pairs
_MAX_SHARED_BYTES = 48 << 10  # of a group, which the GPUs of all makers have
_ROOM = 1 << 10  # of these bytes, which rows take that begin in other banks
_STEP = 32  # of the reduction: a segment of 128 bytes of f32
_UNROLLED = 4  # steps that are written out
_MIN_SUMS = 256  # outputs of a tile, and the depth below, that are worth the way there
_MIN_DEPTH = 8
_MAX_BYTES = 4  # of an element


@dataclass(frozen=True, slots=True)
class AxisTile:
    """The part of an output axis that a group computes."""

    axis: IterVar
    lanes: int  # threads along the axis
    registers: int  # elements of a thread along the axis
    vector: int = 1  # neighbours among these elements

    @property
    def size(self) -> int:
        """Return the elements of a group along the axis."""
        return self.lanes * self.registers * self.vector


@dataclass(frozen=True, slots=True)
class TiledSum:
    """A sum of products, and its tiles.

    Attributes:
        op: the compute.
        by_row: the operand that depends on the rows.
        by_column: the operand that depends on the columns.
        rows: the tile of the rows, one part for each axis, the outermost first.
        columns: the tile of the columns likewise.
        deep: the reduction axis of the greatest extent.
    """

    op: ComputeOp
    by_row: TensorRead
    by_column: TensorRead
    rows: tuple[AxisTile, ...]
    columns: tuple[AxisTile, ...]
    deep: IterVar

    @property
    def window(self) -> tuple[IterVar, ...]:
        """Return the reduction axes inside the deep one, with more than one element."""
        axes = self.op.reduce_axis
        inner = axes[axes.index(self.deep) + 1 :]
        return tuple(axis for axis in inner if _extent(axis) > 1)

    @property
    def has_windows(self) -> tuple[bool, bool]:
        """Return, for the operands of rows and of columns, if elements of windows overlap."""
        own = {axis.var for axis in self.op.axis}
        reduced = {axis.var for axis in self.op.reduce_axis}
        return (
            any(mixes_axes(index, own, reduced) for index in self.by_row.indices),
            any(mixes_axes(index, own, reduced) for index in self.by_column.indices),
        )

    def tile_shape(self, read: TensorRead, step: int) -> list[int]:
        """Return the extents of an operand's tile for `step` elements of the deep axis."""
        overlaps = self.has_windows[0 if read is self.by_row else 1]
        axes = self.op.reduce_axis
        place = axes.index(self.deep)
        sizes = {tile.axis.var: tile.size for tile in (*self.rows, *self.columns)}
        sizes |= {axis.var: _extent(axis) for axis in axes[place + 1 :]}
        if overlaps:
            sizes |= {axis.var: _extent(axis) for axis in axes[:place]}
        is_nearer = overlaps and bool(self.window)
        deep = min(step, _UNROLLED) if is_nearer else step
        sizes[self.deep.var] = min(deep, _extent(self.deep))
        return [index_width(index, sizes) for index in read.indices]

    def uneven(self, read: TensorRead) -> range:
        """Return the dimensions of an operand's tile whose strides are odd.

        Neighbouring threads read along the last of these dimensions, so their elements lie in
        different banks. All dimensions inside of it are uneven, too. Otherwise its stride could not
        be odd. If threads read along the last dimension of the tile, the result is empty.
        """
        reduced = {axis.var for axis in self.op.reduce_axis}
        kept = [
            number
            for number, index in enumerate(read.indices)
            if not reduced.issuperset(variables_in(index))
        ]
        last = len(read.indices) - 1
        return range(kept[-1] if kept else last, last)

    def shared_bytes(self, step: int, *, is_padded: bool = False) -> int:
        """Return the bytes of shared memory for steps of `step` elements of the deep axis.

        Those between rows, which let strides be odd, count if `is_padded`.
        """
        total = 0
        for read in (self.by_row, self.by_column):
            shape = self.tile_shape(read, step)
            for dim in self.uneven(read) if is_padded else ():
                shape[dim + 1] |= 1
            total += math.prod(shape) * read.tensor.dtype.bytes
        return total

    @property
    def step(self) -> int:
        """Return the elements of the deep axis in a step; 0 if shared memory is too small."""
        for step in [_STEP >> number for number in range(6)]:
            padded = self.shared_bytes(step, is_padded=True)
            if max(self.shared_bytes(step) + _ROOM, padded) <= _MAX_SHARED_BYTES:
                return step
        return 0

    @property
    def threads(self) -> tuple[int, int]:
        """Return the number of threads along the columns (x) and along the rows (y)."""
        return _lanes(self.columns), _lanes(self.rows)


def find_tiles(op: ComputeOp) -> TiledSum | None:
    """Return the tiles of the sum of products that `op` computes; None for other computes."""
    factors = _factors(op)
    axes = (*op.axis, *op.reduce_axis)
    if factors is None or not all(map(_extent, axes)):
        return None
    seen = [{id(v) for i in read.indices for v in variables_in(i)} for read in factors]
    wide = [axis for axis in op.axis if _extent(axis) > 1]
    alone = [
        [axis for axis in wide if id(axis.var) in own and id(axis.var) not in other]
        for own, other in (seen, seen[::-1])
    ]
    if not all(alone):
        return None
    by_column = 1 if wide[-1] in alone[1] else 0
    by_row = 1 - by_column
    deep = max(op.reduce_axis, key=_extent)
    choices = []
    for row_registers, column_registers in _REGISTERS:
        columns = _tile(alone[by_column], _COLUMN_LANES, column_registers)
        columns = (*columns[:-1], _paired(columns[-1], factors[by_column]))
        row_lanes = 1 << (_THREADS // _lanes(columns)).bit_length() - 1
        rows = _tile(alone[by_row], row_lanes, row_registers)
        found = TiledSum(op, factors[by_row], factors[by_column], rows, columns, deep)
        if _is_worthwhile(found):
            choices.append(found)
    # The first of those with the longest step, whose accesses use whole segments of memory.
    return max(choices, key=lambda found: found.step, default=None)


def _paired(tile: AxisTile, read: TensorRead) -> AxisTile:
    """Return a tile whose elements are pairs of neighbours, if `read` has them side by side."""
    sizes = (tile.registers, _extent(tile.axis))
    if read.indices[-1] is not tile.axis.var or any(s % _VECTOR for s in sizes):
        return tile
    return replace(tile, registers=tile.registers // _VECTOR, vector=_VECTOR)


def _factors(op: ComputeOp) -> tuple[TensorRead, TensorRead] | None:
    """Return the reads whose product is summed; None for other computes."""
    reduction = op.reduction
    if reduction is None or len(op.outputs) != 1 or reduction.reducer.name != "sum":
        return None
    source = reduction.sources[0]
    if not isinstance(source, Mul) or as_int(reduction.condition) != 1:
        return None
    a, b = _read(source.a), _read(source.b)
    return None if a is None or b is None or a.tensor is b.tensor else (a, b)


def _read(factor: Expr) -> TensorRead | None:
    value = factor.value if isinstance(factor, Cast) else factor
    return value if isinstance(value, TensorRead) else None


def _extent(axis: IterVar) -> int:
    """Return the extent of the axis, or 0 if it is symbolic."""
    return as_int(axis.extent) or 0


def _lanes(tiles: Sequence[AxisTile]) -> int:
    return math.prod(tile.lanes for tile in tiles)


def _elements(tiles: Sequence[AxisTile]) -> int:
    return math.prod(tile.size for tile in tiles)


def mixes_axes(index: Expr, own: Set[Var], reduced: Set[Var]) -> bool:
    """Return True if an index depends on an output axis and on a reduction axis."""
    found = set(variables_in(index))
    return not (found.isdisjoint(own) or found.isdisjoint(reduced))


def index_width(index: Expr, sizes: Mapping[Var, int]) -> int:
    """Return the values of an index while each variable takes as many values as stated."""
    known = {variable: sizes.get(variable, 1) for variable in variables_in(index)}
    last = {variable: IntImm(size - 1, I64) for variable, size in known.items()}
    first = dict.fromkeys(known, IntImm(0, I64))
    ends = [as_int(simplify(substitute(index, end))) or 0 for end in (first, last)]
    return ends[1] - ends[0] + 1


def _tile(axes: Sequence[IterVar], lanes: int, registers: int) -> tuple[AxisTile, ...]:
    """Divide axes, the last one first, among at most `lanes` threads and their registers.

    The parts divide the extents, unless only parts of less than half the size do.
    """
    tiles: list[AxisTile] = []
    for axis in reversed(axes):
        extent = _extent(axis)
        own = _divisor(extent, lanes)
        if own * 2 <= min(extent, lanes):
            own = min(extent, lanes)
        several = _divisor(-(-extent // own), registers)
        tiles.insert(0, AxisTile(axis, own, several))
        lanes //= own
        registers //= several
    return tuple(tiles)


def _divisor(number: int, limit: int) -> int:
    """Return the greatest divisor of `number` up to `limit`."""
    return next(d for d in range(min(number, limit), 0, -1) if number % d == 0)


def _is_worthwhile(found: TiledSum) -> bool:
    """Return True unless the tile is too small, or does not fit in shared memory."""
    elements = [read.tensor.dtype.bytes for read in (found.by_row, found.by_column)]
    depth = math.prod(map(_extent, found.op.reduce_axis))
    sums = _elements(found.rows) * _elements(found.columns)
    if max(elements) > _MAX_BYTES or depth < _MIN_DEPTH or sums < _MIN_SUMS:
        return False
    return found.step > 0


def schedule_tiles(schedule: Schedule, found: TiledSum) -> set[Stage]:
    """Schedule the sum, its operands, and the elementwise output that follows it, if any.

    Returns:
        The stages that are scheduled now.
    """
    last, sums = local_result(schedule, found.op)
    row_copy = _shared(schedule, found.by_row.tensor, sums)
    column_copy = _shared(schedule, found.by_column.tensor, sums)
    place = _bind_tiles(schedule[last], found)
    schedule[sums].compute_at(schedule[last], place)
    row_step, column_step = _order_sums(schedule[sums], found)
    for read, copy, step in (
        (found.by_row, row_copy, row_step),
        (found.by_column, column_copy, column_step),
    ):
        stage = schedule[copy]
        stage.compute_at(schedule[sums], step)
        _fill(stage, read, found)
    return {schedule.stage_of(t) for t in (last, sums, row_copy, column_copy)}


def _shared(schedule: Schedule, tensor: Tensor, sums: Tensor) -> Tensor:
    """Return the stage that holds a tile of an operand in shared memory."""
    stage = schedule.stage_of(tensor)
    op = stage.op
    is_cheap = isinstance(op, ComputeOp) and op.tag in (INJECTIVE, PAD)
    if is_cheap and not stage.is_output and len(readers_of(stage)) == 1:
        schedule[tensor].set_scope("shared")  # computed on the way to shared memory
        return tensor
    return schedule.cache_read(tensor, "shared", [sums])


def _bind_tiles(stage: StageSchedule, found: TiledSum) -> IterVar:
    """Divide the output among groups and threads; return the innermost axis of threads."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    row_axes, column_axes = (
        [op.axis[found.op.axis.index(tile.axis)] for tile in tiles]
        for tiles in (found.rows, found.columns)
    )
    groups: list[IterVar] = []
    several: list[IterVar] = []
    virtual: list[IterVar] = []
    vectors: list[IterVar] = []
    row_lanes: list[IterVar] = []
    column_lanes: list[IterVar] = []
    for axis in op.axis:
        if axis in row_axes:
            tile = found.rows[row_axes.index(axis)]
            group, rest = stage.split(axis, factor=tile.lanes * tile.registers)
            lane, own = stage.split(rest, factor=tile.registers)
            row_lanes.append(lane)
            several.append(own)
        elif axis in column_axes:
            tile = found.columns[column_axes.index(axis)]
            rest, vector = stage.split(axis, factor=tile.vector)
            rest, lane = stage.split(rest, factor=tile.lanes)
            group, own = stage.split(rest, factor=tile.registers)
            vectors.append(vector)
            column_lanes.append(lane)
            virtual.append(own)
        else:
            group = axis
        groups.append(group)
    stage.reorder(*groups, *virtual, *row_lanes, *column_lanes, *several, *vectors)
    stage.bind(stage.fuse(*groups), thread_axis("blockIdx.x"))
    for own in virtual:
        stage.bind(own, thread_axis("vthread"))
    x = stage.fuse(*column_lanes)
    stage.bind(stage.fuse(*row_lanes), thread_axis("threadIdx.y"))
    stage.bind(x, thread_axis("threadIdx.x"))
    for own in (*several, *vectors[:-1]):
        stage.unroll(own)
    stage.vectorize(vectors[-1])
    return x


def _order_sums(stage: StageSchedule, found: TiledSum) -> tuple[IterVar, IterVar]:
    """Order the loops of the sums. Return the loops in which the operands' tiles are filled.

    An operand whose windows overlap is copied outside of the loops over the windows.
    """
    op = stage.op
    assert isinstance(op, ComputeOp)
    axes = op.reduce_axis
    place = found.op.reduce_axis.index(found.deep)
    before = axes[:place]
    after = axes[place + 1 :]
    outer, inner = stage.split(axes[place], factor=found.step)
    steps, several = stage.split(inner, factor=_UNROLLED)
    column = op.axis[found.op.axis.index(found.columns[-1].axis)]
    others = [axis for axis in op.axis if axis is not column]
    rest, vector = stage.split(column, factor=found.columns[-1].vector)
    stage.reorder(outer, *before, steps, several, *after, *others, rest, vector)
    # A window that is written out is long enough by itself.
    written_out = after if found.window else (several, *after)
    for axis in (*written_out, *others, rest):
        stage.unroll(axis)
    stage.vectorize(vector)
    row_overlaps, column_overlaps = found.has_windows
    innermost = before[-1] if before else outer
    overlapping = steps if found.window else outer
    return (
        overlapping if row_overlaps else innermost,
        overlapping if column_overlaps else innermost,
    )


def _fill(stage: StageSchedule, read: TensorRead, found: TiledSum) -> None:
    """Divide the filling of a tile among all threads, of which neighbours have neighbours."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    columns, rows = found.threads
    for dim in found.uneven(read):
        stage.storage_align(op.axis[dim], 2, 1)
    shape = found.tile_shape(read, found.step)
    if len(shape) > 1 and shape[-1] % columns == 0 and shape[-2] >= rows:
        # Without divisions: threads along x have the last axis, those along y the one before.
        _, x = stage.split(op.axis[-1], factor=columns)
        _, y = stage.split(op.axis[-2], factor=rows)
    else:
        rest, x = stage.split(stage.fuse(*op.axis), factor=columns)
        _, y = stage.split(rest, factor=rows)
    stage.bind(y, thread_axis("threadIdx.y"))
    stage.bind(x, thread_axis("threadIdx.x"))
