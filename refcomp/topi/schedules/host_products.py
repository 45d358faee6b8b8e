"""The host's schedule of sums of products: a tile of sums in registers, for any layout.

Of the two factors, the *vector factor* is read in vectors along the last axis of the result, and
the *scalar factor* is the same for a whole vector. A tile has several rows, on which only the
scalar factor depends, and several vectors of columns, on which only the vector factor depends. Each
step of the reduction loads a vector for each of the tile's columns and an element for each of its
rows, and all their products are added to the sums.

A product of pairs of integers (`refcomp.ir.integer_pairs`) counts as a product of its pairs.

So a product of matrices has rows and vectors of columns. In a convolution with the channels before
the pixels, the output channels are the rows, and the pixels the columns.

A product of one row has nothing to reuse but its sums. If its vector factor is larger than the
caches near the core, whole rows of it are read one after the other, a few at once, and the sums are
kept in the nearest cache.

A tile whose rows of the vector factor are narrow reads a new line, and often a new page, at each
step. So does any tile, if the rows lie at a multiple of a page from each other. If several tiles
read the same columns, these are first copied side by side. Constant weights lie in such panels from
the beginning (`refcomp.topi.contraction.packed_dense`).

Reference: K. Goto, R. A. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM
TOMS 34, 2008, section 4; measured figures are in `benchmarks/host_operators`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product as combinations

from refcomp.ir.constants import as_int
from refcomp.ir.expr import Add, Expr, FloorDiv, FloorMod, Mod, Mul, Var
from refcomp.ir.integer_pairs import find_pair_product
from refcomp.ir.rewrite import variables_in
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import IterVar, Tensor, TensorRead
from refcomp.topi.schedules.blocked_convolution import local_result
from refcomp.topi.schedules.vector_registers import VectorRegisters

# Multiply-adds that are in flight at once: 4 cycles of latency, 2 a cycle.
_LATENCY = 8
# A vector at the border has a mask, which keeps its sums in memory. A tile with masks takes so many
# times as long.
_MASKED = 4
# Narrower rows of a tile are packed: they have fewer than two lines of the cache.
_MIN_ROW_BYTES = 128
# Rows of a matrix at a multiple of this distance begin in the same sets of the caches, and each of
# them on a page of its own. So tiles that read them lose most of what the caches hold.
_PAGE_BYTES = 1 << 12
# Packing reads and writes each element once. That costs little if so many tiles read the copy.
_MIN_READERS = 4
# Reductions of few steps in a tile, such as those over a window, have no loops: these would cost
# more than their bodies.
_MAX_UNROLLED = 72
# A vector factor of so many bytes is read from a cache that is shared, or from memory.
_MIN_STREAMED_BYTES = 1 << 20
# Sums of a product of one row: half of the nearest cache.
_MAX_SUMS_BYTES = 1 << 14
# Rows that are added to the sums at once, so that these are loaded and stored less often. Measured.
_ROWS_AT_ONCE = 4
# So many lanes of a sum are added one by one.
_FEW_LANES = 4
# The most rows and columns of dot products that are computed at once.
_MAX_DOT_SIDE = 4


@dataclass(frozen=True, slots=True)
class HostProduct:
    """A sum of products whose result is computed in tiles.

    Attributes:
        op: the compute.
        lanes: the axis of the vectors, the last one that is longer than 1.
        column: another axis on which only the vector factor depends; None if there is none.
        row: the last axis on which only the scalar factor depends; None if there is none.
        vector: the read of the vector factor; None in a sum that is not of products.
        scalar: the read of the scalar factor.
        panel: the columns of a panel, if the vector factor lies in panels; else 0.
        temporaries: registers for products that are not added by the instruction that multiplies.
    """

    op: ComputeOp
    lanes: int
    column: int | None = None
    row: int | None = None
    vector: TensorRead | None = None
    scalar: TensorRead | None = None
    panel: int = 0
    temporaries: int = 0


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """The sums that are in registers at once: `rows` x `columns` x `vectors`, of `lanes` each."""

    rows: int
    columns: int
    vectors: int
    lanes: int

    def time(self, registers: VectorRegisters) -> int:
        """Return the time of a step of the reduction, in quarters of a multiply-add."""
        across = self.columns * self.vectors
        # Vectors of another length are loaded under a mask, or in parts.
        parts = 1 if self.lanes & (self.lanes - 1) == 0 else 3
        sums = max(self.rows * across, _LATENCY)
        return 4 * sums + registers.load_time * (self.rows + parts * across)


def find_host_product(op: ComputeOp) -> HostProduct | None:
    """Return the product that `op` computes, if a tile of vectors suits it."""
    factors = _factors(op)
    lanes = _last_long_axis(op)
    if factors is None or lanes is None:
        return None
    for vector, scalar in (factors, factors[::-1]):
        column = op.axis[lanes].var
        # Vectors of stride 2 are cheap, too (see `refcomp.codegen.llvm.memory`).
        panel = _panel_width(vector, column)
        is_vector = panel > 0 or _stride_along(vector, column) in (1, 2)
        if not is_vector or _depends(scalar, column):
            continue
        rows: list[int] = []
        columns: list[int] = []
        for place, axis in enumerate(op.axis):
            in_vector = _depends(vector, axis.var)
            in_scalar = _depends(scalar, axis.var)
            is_known = as_int(axis.extent) is not None
            if place != lanes and is_known and in_vector != in_scalar:
                (columns if in_vector else rows).append(place)
        return HostProduct(
            op,
            lanes,
            columns[-1] if columns else None,
            rows[-1] if rows else None,
            vector,
            scalar,
            panel,
            temporaries=int(_is_pair_product(op)),
        )
    return None


def find_host_reduction(op: ComputeOp) -> HostProduct | None:
    """Return any other reduction as a tile of one row of vectors, if its last axis is known."""
    lanes = _last_long_axis(op)
    if op.reduction is None or len(op.outputs) != 1 or lanes is None:
        return None
    return HostProduct(op, lanes)


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
    factors = _factors(op)
    if factors is None:
        return None
    depth = op.reduce_axis[-1]
    length = as_int(depth.extent) or 0
    lanes = _vector_length(op, registers)
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
            if _depends(factor, axis.var) and not _depends(other, axis.var)
        ]
        if not places or _extent(op, places[-1]) < 2:
            return None
        own.append(places[-1])
    row, column = own
    return HostDot(op, row, column, lanes) if length % lanes == 0 else None


def _vector_length(op: ComputeOp, registers: VectorRegisters) -> int:
    return registers.lanes(op.outputs[0].dtype.bytes)


def is_contiguous_along(read: TensorRead, variable: Var) -> bool:
    """Return True if neighbours along `variable` are neighbours in memory."""
    return _stride_along(read, variable) == 1


def _stride_along(read: TensorRead, variable: Var) -> int | None:
    """Return the distance in memory of neighbours along `variable`.

    None if it is not a constant, or more than the last dimension depends on the variable.
    """
    if not read.indices:
        return None
    *before, last = read.indices
    if any(variable is other for index in before for other in variables_in(index)):
        return None
    return _coefficient(last, variable)


def _panel_width(read: TensorRead, variable: Var) -> int:
    """Return n if the indices of a read are variable // n, others, and variable % n; else 0."""
    if len(read.indices) < 2:
        return 0
    first, *others, last = read.indices
    if not (isinstance(first, FloorDiv) and isinstance(last, FloorMod | Mod)):
        return 0
    width = as_int(last.b) or 0
    is_panel = as_int(first.b) == width and first.a is variable and last.a is variable
    is_apart = all(_coefficient(index, variable) == 0 for index in others)
    return width if is_panel and is_apart else 0


def _coefficient(index: Expr, variable: Var) -> int | None:
    """Return the factor of `variable` in a linear index; None if the index is not linear in it."""
    if index is variable:
        return 1
    if all(variable is not other for other in variables_in(index)):
        return 0
    if isinstance(index, Add):
        parts = [_coefficient(part, variable) for part in (index.a, index.b)]
        return None if None in parts else sum(part or 0 for part in parts)
    if isinstance(index, Mul):
        factor = as_int(index.b)
        inner = _coefficient(index.a, variable)
        return None if factor is None or inner is None else factor * inner
    return None


def _factors(op: ComputeOp) -> tuple[TensorRead, TensorRead] | None:
    reduction = op.reduction
    if reduction is None or len(op.outputs) != 1 or as_int(reduction.condition) != 1:
        return None
    source = reduction.sources[0]
    factors = find_pair_product(source)
    if factors is None and isinstance(source, Mul):
        factors = source.a, source.b
    if factors is None:
        return None
    first, second = factors
    if not (isinstance(first, TensorRead) and isinstance(second, TensorRead)):
        return None
    return first, second


def _is_pair_product(op: ComputeOp) -> bool:
    reduction = op.reduction
    return reduction is not None and find_pair_product(reduction.sources[0]) is not None


def _depends(read: TensorRead, variable: Var) -> bool:
    return any(
        variable is other for index in read.indices for other in variables_in(index)
    )


def _last_long_axis(op: ComputeOp) -> int | None:
    """Return the place of the last axis longer than 1; None if its extent is symbolic."""
    extents = [as_int(axis.extent) for axis in op.axis]
    long = [place for place, extent in enumerate(extents) if extent != 1]
    if 0 in extents or not long or extents[long[-1]] is None:
        return None
    return long[-1]


def choose_register_tile(
    product: HostProduct, registers: VectorRegisters
) -> RegisterTile:
    """Return the tile that computes all sums in the least time."""
    op = product.op
    length = _extent(op, product.lanes)
    rows = _extent(op, product.row)
    columns = _extent(op, product.column)
    most = _vector_length(op, registers)

    def time(tile: RegisterTile) -> tuple[int, int]:
        across = tile.vectors * tile.lanes
        parts = combinations(
            _axis_parts(rows, tile.rows),
            _axis_parts(columns, tile.columns),
            _axis_parts(length, across),
        )
        cost = 0
        for row, column, along in parts:
            vectors = _ceil(along.size, tile.lanes)
            part = RegisterTile(row.size, column.size, vectors, tile.lanes)
            spent = part.time(registers)
            if along.size % tile.lanes:
                spent *= _MASKED
            if part != tile or along.size != across:
                spent = max(spent, registers.border_time * tile.time(registers))
            cost += row.number * column.number * along.number * spent
        # Of equally fast tiles, the largest: it has the fewest loads.
        return cost, -tile.rows * tile.columns * tile.vectors

    divided = product.panel or length
    tiles = [
        RegisterTile(*counts, lanes)
        for lanes in range(1, most + 1)
        if (lanes == most and not product.panel) or divided % lanes == 0
        for counts in combinations(range(1, 15), (1, 2, 3, 4), range(1, 9))
        if _fits(counts[0], counts[1] * counts[2], registers, product.temporaries)
    ]
    fitting = [
        tile
        for tile in tiles
        if tile.rows <= rows
        and tile.columns <= columns
        and _suits_panel(product, tile.vectors * tile.lanes, length)
    ]
    return min(fitting, key=time)


def _suits_panel(product: HostProduct, across: int, length: int) -> bool:
    """Return True if no tile crosses a panel, or, without panels, the end of the result."""
    return product.panel % across == 0 if product.panel else across <= length


@dataclass(frozen=True, slots=True)
class _AxisPart:
    """Parts of an axis that are equally long."""

    number: int
    size: int


def _axis_parts(extent: int, size: int) -> list[_AxisPart]:
    """Return the whole parts of `size`, and the rest, if there is one."""
    whole, rest = divmod(extent, size)
    return [_AxisPart(whole, size), *([_AxisPart(1, rest)] if rest else [])]


def _fits(
    rows: int, across: int, registers: VectorRegisters, temporaries: int = 0
) -> bool:
    """Return True for sums that fit beside a step's vectors and an element of the scalar factor."""
    return across * (rows + 1) + temporaries < registers.count


def greatest_divisor(number: int, limit: int) -> int:
    """Return the greatest divisor of `number` up to `limit`; 1 if `number` is 0."""
    return next((d for d in range(min(number, limit), 0, -1) if number % d == 0), 1)


def _ceil(extent: int, part: int) -> int:
    return -(-extent // part)


def _extent(op: ComputeOp, place: int | None) -> int:
    return 1 if place is None else as_int(op.axis[place].extent) or 1


def schedule_host_product(
    schedule: Schedule, product: HostProduct, registers: VectorRegisters
) -> set[Stage]:
    """Schedule `product` in tiles, within the loops of the elementwise output that follows it.

    Returns:
        The stages that are scheduled now.
    """
    tile = choose_register_tile(product, registers)
    last, sums = local_result(schedule, product.op)
    outer = schedule[last]
    inside = _split_tile(outer, last, product, tile)
    others = [axis for axis in outer.leaf_iter_vars if axis not in inside]
    # The columns outside: their part of the vector factor stays in the cache for all rows.
    row = others.pop(product.row) if product.row is not None else None
    if row is not None:
        others.append(row)
    outer.reorder(*others, *inside)
    _unroll_tile(outer, inside)
    inner = schedule[sums]
    inner.compute_at(outer, others[-1])
    assert isinstance(sums.op, ComputeOp)
    lanes = sums.op.axis[product.lanes]
    vectors, lane = inner.split(lanes, factor=tile.lanes)
    places = [axis for axis in sums.op.axis if axis is not lanes]
    inner.reorder(*sums.op.reduce_axis, *places, vectors, lane)
    _unroll_tile(inner, [*places, vectors, lane])
    steps = math.prod(as_int(axis.extent) or 0 for axis in sums.op.reduce_axis)
    if 0 < steps * tile.rows * tile.columns * tile.vectors <= _MAX_UNROLLED:
        for axis in sums.op.reduce_axis:
            inner.unroll(axis)
    packed: set[Stage] = set()
    if len(others) > 1 and _is_packed(product, tile):
        packed.add(_pack(schedule, product, tile, sums, last, others[-2]))
    return {schedule.stage_of(last), schedule.stage_of(sums)} | packed


def is_streamed(product: HostProduct, registers: VectorRegisters) -> bool:
    """Return True for a large product of one row, whose vectors need no mask."""
    op, vector = product.op, product.vector
    if vector is None or product.column is not None or len(op.reduce_axis) != 1:
        return False
    sizes = [as_int(extent) or 0 for extent in vector.tensor.shape]
    size = math.prod(sizes) * vector.tensor.dtype.bytes
    has_rows = vector.indices[-1] is op.axis[product.lanes].var
    is_whole = _extent(op, product.lanes) % _vector_length(op, registers) == 0
    is_one_row = _extent(op, product.row) == 1
    return has_rows and is_whole and is_one_row and size >= _MIN_STREAMED_BYTES


def schedule_streamed(
    schedule: Schedule, product: HostProduct, registers: VectorRegisters
) -> set[Stage]:
    """Schedule a product of one row: a few rows of the vector factor are added to all sums at once.

    Returns:
        The stage that is scheduled now.
    """
    op = product.op
    stage = schedule[op]
    lanes = _vector_length(op, registers)
    # Parts divide their axes, so that no vector has a mask.
    vectors = _extent(op, product.lanes) // lanes
    most = greatest_divisor(vectors, _MAX_SUMS_BYTES // registers.bytes)
    rows = greatest_divisor(as_int(op.reduce_axis[0].extent) or 1, _ROWS_AT_ONCE)
    part, vector = stage.split(op.axis[product.lanes], factor=lanes)
    block, part = stage.split(part, factor=most)
    outer, several = stage.split(op.reduce_axis[0], factor=rows)
    others = [axis for axis in op.axis if axis is not op.axis[product.lanes]]
    stage.reorder(*others, block, outer, part, several, vector)
    _unroll_tile(stage, [several, vector])
    return {schedule.stage_of(op.outputs[0])}


def _is_packed(product: HostProduct, tile: RegisterTile) -> bool:
    """Return True if a tile reads its columns badly, and tiles of several rows read the same.

    They are narrow, or their rows lie at a multiple of a page from each other.

    The vector factor is a matrix, or several: its last axis is that of the lanes, and its other
    axes are those of the result or of the reduction.
    """
    op, vector, scalar = product.op, product.vector, product.scalar
    if vector is None or scalar is None or vector.tensor is scalar.tensor:
        return False
    known = [axis.var for axis in (*op.axis, *op.reduce_axis)]
    if not all(any(index is axis for axis in known) for index in vector.indices):
        return False
    element_bytes = vector.tensor.dtype.bytes
    row_bytes = tile.vectors * tile.lanes * element_bytes
    distance = _extent(op, product.lanes) * element_bytes
    is_scattered = row_bytes < _MIN_ROW_BYTES or distance % _PAGE_BYTES == 0
    tiles = _extent(op, product.row) // tile.rows
    return (
        vector.indices[-1] is op.axis[product.lanes].var
        and product.column is None
        and is_scattered
        and tiles >= _MIN_READERS
    )


def _pack(
    schedule: Schedule,
    product: HostProduct,
    tile: RegisterTile,
    sums: Tensor,
    last: Tensor,
    place: IterVar,
) -> Stage:
    """Copy the columns of the vector factor that the tiles within the loop `place` read."""
    assert product.vector is not None
    copy = schedule.cache_read(product.vector.tensor, "global", [sums])
    stage = schedule[copy]
    stage.compute_at(schedule[last], place)
    assert isinstance(stage.op, ComputeOp)
    vectors, lane = stage.split(stage.op.axis[-1], factor=tile.lanes)
    _unroll_tile(stage, [vectors, lane])
    return schedule.stage_of(copy)


def choose_dot_tile(dot: HostDot, registers: VectorRegisters) -> tuple[int, int]:
    """Return the rows and columns of dot products that are computed at once."""
    rows = _extent(dot.op, dot.row)
    columns = _extent(dot.op, dot.column)

    def time(sides: tuple[int, int]) -> int:
        tile = RegisterTile(*sides, vectors=1, lanes=dot.lanes)
        cost = 0
        for row, column in combinations(
            _axis_parts(rows, tile.rows), _axis_parts(columns, tile.columns)
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
        if row <= rows and column <= columns and _fits(row, column, registers)
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
    _unroll_tile(stage, [*([] if has_loop else reduced), *places, lane])


def _split_tile(
    outer: StageSchedule, last: Tensor, product: HostProduct, tile: RegisterTile
) -> list[IterVar]:
    """Split the loops of the result; return those inside a tile, in order."""
    assert isinstance(last.op, ComputeOp)
    inside: list[IterVar] = []
    for place, factor in ((product.row, tile.rows), (product.column, tile.columns)):
        if place is not None:
            _, inner = outer.split(last.op.axis[place], factor=factor)
            inside.append(inner)
    _, across = outer.split(
        last.op.axis[product.lanes], factor=tile.vectors * tile.lanes
    )
    vectors, lane = outer.split(across, factor=tile.lanes)
    return [*inside, vectors, lane]


def _unroll_tile(stage: StageSchedule, loops: list[IterVar]) -> None:
    *several, lane = loops
    for loop in several:
        stage.unroll(loop)
    stage.vectorize(lane)
