"""The host's schedule of sums of products: a tile of sums in registers, for any layout.

The *vector factor* is read in vectors along the last axis of the result. An element of the *scalar
factor* is the same for a whole vector. A tile has several rows, on which only the scalar factor
depends, and several vectors of columns, on which only the vector factor depends. Each step of the
reduction loads a vector for each of the tile's columns, and an element for each of its rows. All
their products are added to the sums.

A product of pairs of integers (`refcomp.ir.integer_pairs`) counts as a product of its pairs.

So a product of matrices has rows and vectors of columns. In a convolution with the channels before
the pixels, the output channels are the rows, and the pixels the columns.

A tile whose rows of the vector factor are narrow reads a new line, and often a new page, at each
step. So does any tile, if the rows lie at a multiple of a page from each other. If several tiles
read the same columns, these are first copied to panels, each as wide as a tile. Constant weights
lie in such panels from the beginning (`refcomp.topi.contraction.packed_dense`). A block of panels
is multiplied by all rows before the next block. It stays in the second cache. The rows of a tile
stay in the first cache until all panels of the block have read them.

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
# Vectors at the border are loaded under masks. A tile with masks takes so many times as long,
# unless panels hold zeros there. Measured.
_MASKED = 2
# Narrower rows of a tile are packed: they have fewer than two lines of the cache.
_MIN_ROW_BYTES = 128
# Rows of a matrix at a multiple of this distance begin in the same sets of the caches. Each row is
# on a page of its own. So tiles that read them lose most of what the caches hold.
_PAGE_BYTES = 1 << 12
# Packing reads and writes each element once. That costs little if so many tiles read the copy.
_MIN_READERS = 4
# Panels that share a block of columns, and their bytes: half of the second cache.
_MAX_PANELS = 7
_BLOCK_BYTES = 1 << 18
# A deeper reduction is added up in parts of so many steps: at most, and at least.
_MAX_PART_STEPS = 512
_MIN_PART_STEPS = 128
# Rows that are copied to a panel before the next panel.
_ROWS_PACKED = 8
# Reductions of few steps in a tile, such as those over a window, have no loops: these would cost
# more than their bodies.
_MAX_UNROLLED = 72


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

    def time(self, registers: VectorRegisters, is_shared: bool = False) -> int:
        """Return the time of a step of the reduction, in quarters of a multiply-add.

        Columns that many tiles share come from the second cache.
        """
        across = self.columns * self.vectors
        # Vectors of another length are loaded under a mask, or in parts.
        parts = 1 if self.lanes & (self.lanes - 1) == 0 else 3
        sums = max(self.rows * across, _LATENCY)
        vector_time = registers.shared_time if is_shared else registers.load_time
        return 4 * sums + registers.load_time * self.rows + vector_time * parts * across


def find_host_product(op: ComputeOp) -> HostProduct | None:
    """Return the product that `op` computes, if a tile of vectors suits it."""
    factors = factors_of(op)
    lanes = _last_long_axis(op)
    if factors is None or lanes is None:
        return None
    for vector, scalar in (factors, factors[::-1]):
        column = op.axis[lanes].var
        # Vectors of stride 2 are cheap, too (see `refcomp.codegen.llvm.memory`).
        panel = _panel_width(vector, column)
        is_vector = panel > 0 or _stride_along(vector, column) in (1, 2)
        if not is_vector or depends_on(scalar, column):
            continue
        rows: list[int] = []
        columns: list[int] = []
        for place, axis in enumerate(op.axis):
            in_vector = depends_on(vector, axis.var)
            in_scalar = depends_on(scalar, axis.var)
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


def vector_length(op: ComputeOp, registers: VectorRegisters) -> int:
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


def factors_of(op: ComputeOp) -> tuple[TensorRead, TensorRead] | None:
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


def depends_on(read: TensorRead, variable: Var) -> bool:
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
    length = extent_of(op, product.lanes)
    rows = extent_of(op, product.row)
    columns = extent_of(op, product.column)
    most = vector_length(op, registers)

    def time(tile: RegisterTile) -> tuple[int, int]:
        across = tile.vectors * tile.lanes
        is_shared = _is_shared(product, tile)
        is_blocked = _is_blocked(product, tile)
        parts = combinations(
            axis_parts(rows, tile.rows),
            axis_parts(columns, tile.columns),
            axis_parts(length, across),
        )
        cost = 0
        for row, column, along in parts:
            vectors = _ceil(along.size, tile.lanes)
            part = RegisterTile(row.size, column.size, vectors, tile.lanes)
            spent = part.time(registers, is_shared)
            if along.size % tile.lanes and not is_blocked:
                spent *= _MASKED
            if part != tile or along.size != across:
                whole = tile.time(registers, is_shared)
                spent = max(spent, registers.border_time * whole)
            cost += row.number * column.number * along.number * spent
        # Of equally fast tiles, the largest: it has the fewest loads.
        return cost, -tile.rows * tile.columns * tile.vectors

    divided = product.panel or length
    tiles = [
        RegisterTile(*counts, lanes)
        for lanes in range(1, most + 1)
        if (lanes == most and not product.panel) or divided % lanes == 0
        for counts in combinations(range(1, 15), (1, 2, 3, 4), range(1, 9))
        if fits_registers(
            counts[0], counts[1] * counts[2], registers, product.temporaries
        )
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


def axis_parts(extent: int, size: int) -> list[_AxisPart]:
    """Return the whole parts of `size`, and the rest, if there is one."""
    whole, rest = divmod(extent, size)
    return [_AxisPart(whole, size), *([_AxisPart(1, rest)] if rest else [])]


def fits_registers(
    rows: int, across: int, registers: VectorRegisters, temporaries: int = 0
) -> bool:
    """Return True for sums that fit beside a step's vectors and an element of the scalar factor."""
    return across * (rows + 1) + temporaries < registers.count


def greatest_divisor(number: int, limit: int) -> int:
    """Return the greatest divisor of `number` up to `limit`; 1 if `number` is 0."""
    return next((d for d in range(min(number, limit), 0, -1) if number % d == 0), 1)


def _ceil(extent: int, part: int) -> int:
    return -(-extent // part)


def extent_of(op: ComputeOp, place: int | None) -> int:
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
    inside = _split_tile(outer, product, tile)
    others = [axis for axis in outer.leaf_iter_vars if axis not in inside]
    # The columns outside: their part of the vector factor stays in the cache for all rows.
    row = others.pop(product.row) if product.row is not None else None
    if row is not None:
        others.append(row)
    block = None
    if len(others) > 1 and _is_blocked(product, tile):
        factor = _panels_of_block(product, tile)
        block, panel = outer.split(others.pop(-2), factor=factor)
        others = [*others[:-1], block, others[-1], panel]
    outer.reorder(*others, *inside)
    unroll_tile(outer, inside)
    steps = 0 if block is None else _part_steps(product, tile)
    if block is not None and steps:
        return _schedule_parts(schedule, product, tile, last, sums, block, steps)
    inner = schedule[sums]
    inner.compute_at(outer, others[-1])
    assert isinstance(sums.op, ComputeOp)
    lanes = sums.op.axis[product.lanes]
    vectors, lane = inner.split(lanes, factor=tile.lanes)
    places = [axis for axis in sums.op.axis if axis is not lanes]
    inner.reorder(*sums.op.reduce_axis, *places, vectors, lane)
    unroll_tile(inner, [*places, vectors, lane])
    unrolled = math.prod(as_int(axis.extent) or 0 for axis in sums.op.reduce_axis)
    if 0 < unrolled * tile.rows * tile.columns * tile.vectors <= _MAX_UNROLLED:
        for axis in sums.op.reduce_axis:
            inner.unroll(axis)
    packed: set[Stage] = set()
    if block is not None and not product.panel:
        packed.add(_pack(schedule, product, tile, sums, outer, block))
    return {schedule.stage_of(last), schedule.stage_of(sums)} | packed


def _is_shared(product: HostProduct, tile: RegisterTile) -> bool:
    """Return True if tiles of several rows read the same columns of a matrix, or of panels."""
    tiles = extent_of(product.op, product.row) // tile.rows
    is_matrix = _is_matrix(product) or product.panel > 0
    return tiles >= _MIN_READERS and product.column is None and is_matrix


def _is_matrix(product: HostProduct) -> bool:
    """Return True if the vector factor is a matrix, or several.

    Its last axis is that of the lanes. Its other axes are those of the result or of the reduction,
    with at least one of the reduction.
    """
    op, vector, scalar = product.op, product.vector, product.scalar
    if vector is None or scalar is None or vector.tensor is scalar.tensor:
        return False
    known = [axis.var for axis in (*op.axis, *op.reduce_axis)]
    is_simple = all(any(index is axis for axis in known) for index in vector.indices)
    has_rows = any(depends_on(vector, axis.var) for axis in op.reduce_axis)
    has_lanes = vector.indices[-1] is op.axis[product.lanes].var
    return is_simple and has_rows and has_lanes


def _is_blocked(product: HostProduct, tile: RegisterTile) -> bool:
    """Return True if shared columns lie in panels of a tile's width, or are copied to panels."""
    if not _is_shared(product, tile):
        return False
    across = tile.vectors * tile.lanes
    return product.panel == across or (
        not product.panel and _reads_badly(product, across)
    )


def _reads_badly(product: HostProduct, across: int) -> bool:
    """Return True if a tile's rows of a matrix are narrow, or at a multiple of a page."""
    assert product.vector is not None
    element_bytes = product.vector.tensor.dtype.bytes
    distance = extent_of(product.op, product.lanes) * element_bytes
    return across * element_bytes < _MIN_ROW_BYTES or distance % _PAGE_BYTES == 0


def _panels_of_block(product: HostProduct, tile: RegisterTile) -> int:
    """Return the number of panels by which all rows are multiplied before the next panels.

    They stay in the second cache, while a tile's rows of the scalar factor stay in the first.
    """
    op = product.op
    assert product.vector is not None
    across = tile.vectors * tile.lanes
    depth = _part_steps(product, tile) or _depth(op)
    panel_bytes = depth * across * product.vector.tensor.dtype.bytes
    most = min(_MAX_PANELS, _BLOCK_BYTES // max(1, panel_bytes))
    # As many in each block: a loop of another length would need code of its own.
    return greatest_divisor(_ceil(extent_of(op, product.lanes), across), max(1, most))


def _depth(op: ComputeOp) -> int:
    return math.prod(as_int(axis.extent) or 1 for axis in op.reduce_axis)


def _part_steps(product: HostProduct, tile: RegisterTile) -> int:
    """Return the steps of a part of the reduction; 0 if a panel stays in the second cache whole."""
    op = product.op
    assert product.vector is not None
    across = tile.vectors * tile.lanes
    panel_bytes = _depth(op) * across * product.vector.tensor.dtype.bytes
    if len(op.reduce_axis) != 1 or panel_bytes < _BLOCK_BYTES:
        return 0
    steps = greatest_divisor(_depth(op), _MAX_PART_STEPS)
    return steps if steps >= _MIN_PART_STEPS else 0


def _schedule_parts(
    schedule: Schedule,
    product: HostProduct,
    tile: RegisterTile,
    last: Tensor,
    sums: Tensor,
    block: IterVar,
    steps: int,
) -> set[Stage]:
    """Add up parts of a deep reduction one after the other, each for all rows of a block.

    Sums of a part are in registers, those of all parts in memory. So errors of rounding grow with
    the steps of a part and with the number of parts, not with their product.
    """
    total = schedule[sums]
    assert isinstance(total.op, ComputeOp)
    number, _ = total.split(total.op.reduce_axis[0], factor=steps)
    partial: Tensor = schedule.rfactor(sums, number, factor_axis=0)
    total.set_scope("global")
    total.compute_at(schedule[last], block)
    inside = _split_tile(total, product, tile)
    (number,) = total.op.reduce_axis
    *others, row, panel = [
        axis for axis in total.leaf_iter_vars if axis not in (*inside, number)
    ]
    total.reorder(*others, number, row, panel, *inside)
    unroll_tile(total, inside)
    part = schedule[partial]
    part.set_scope("local")
    part.compute_at(total, panel)
    assert isinstance(part.op, ComputeOp)
    lanes = part.op.axis[product.lanes + 1]
    places = [axis for axis in part.op.axis if axis is not lanes]
    vectors, lane = part.split(lanes, factor=tile.lanes)
    reduced = [
        axis for axis in part.leaf_iter_vars if axis not in (*places, vectors, lane)
    ]
    part.reorder(*reduced, *places, vectors, lane)
    unroll_tile(part, [*places, vectors, lane])
    scheduled = {schedule.stage_of(tensor) for tensor in (last, sums, partial)}
    if not product.panel:
        scheduled.add(_pack(schedule, product, tile, partial, total, number))
    return scheduled


def _pack(
    schedule: Schedule,
    product: HostProduct,
    tile: RegisterTile,
    sums: Tensor,
    reader: StageSchedule,
    block: IterVar,
) -> Stage:
    """Copy the columns of the vector factor that the loop `block` reads to panels."""
    vector = product.vector
    assert vector is not None
    width = tile.vectors * tile.lanes
    copy = schedule.cache_read(vector.tensor, "global", [sums], panel=width)
    stage = schedule[copy]
    stage.compute_at(reader, block)
    assert isinstance(stage.op, ComputeOp)
    panel, *places, column = stage.op.axis
    # Some rows of all panels, then the next rows: so a row is read from its beginning to its end.
    reduced = [axis.var for axis in product.op.reduce_axis]
    row = next(
        axis
        for index, axis in zip(vector.indices, places, strict=False)
        if any(index is var for var in reduced)
    )
    rows, several = stage.split(row, factor=_ROWS_PACKED)
    vectors, lane = stage.split(column, factor=tile.lanes)
    others = [axis for axis in places if axis is not row]
    stage.reorder(*others, rows, panel, several, vectors, lane)
    unroll_tile(stage, [vectors, lane])
    return schedule.stage_of(copy)


def _split_tile(
    outer: StageSchedule, product: HostProduct, tile: RegisterTile
) -> list[IterVar]:
    """Split the loops of the result; return those inside a tile, in order."""
    op = outer.op
    assert isinstance(op, ComputeOp)
    inside: list[IterVar] = []
    for place, factor in ((product.row, tile.rows), (product.column, tile.columns)):
        if place is not None:
            _, inner = outer.split(op.axis[place], factor=factor)
            inside.append(inner)
    _, across = outer.split(op.axis[product.lanes], factor=tile.vectors * tile.lanes)
    vectors, lane = outer.split(across, factor=tile.lanes)
    return [*inside, vectors, lane]


def unroll_tile(stage: StageSchedule, loops: list[IterVar]) -> None:
    *several, lane = loops
    for loop in several:
        stage.unroll(loop)
    stage.vectorize(lane)
