"""The host's schedule of Winograd's convolution on blocks of channels (`conv2d_nchwc_winograd`).

An image is computed in bands of rows of tiles. For a band, all tiles are transformed first. Then,
for a few blocks of output channels at a time, the products of 16 points are computed, and
transformed back on the way to memory, together with the operators that follow (bias, ReLU)::

    for each image and band:
      tiles = transposed B d B                        of all input channels
      for each one or two blocks of output channels:
        products = sums over the input channels       for each of 16 points, in registers
        result = transposed A products A              with what follows

A narrow band of tiles stays in the cache near the core, but each band reads all weights. So images
of many rows and few channels are computed in bands, and all others at once. Then threads share the
blocks of output channels, so that each weight is read once.

The choice follows from an estimate of the bytes that caches exchange (`choose_tiling`).

Reference: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016;
Z. Jia et al., "Optimizing N-dimensional, Winograd-based Convolution for Manycore CPUs", PPoPP 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.ir.constants import as_int
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import IterVar, Tensor
from refcomp.topi.schedules.blocked_convolution import local_result
from refcomp.topi.schedules.vector_registers import VectorRegisters
from refcomp.topi.tags import PAD, SHARED

_EDGE = 2  # rows and columns of results in a tile
_POINTS = 16  # products of a tile
_BLOCKS = 2  # of output channels, whose sums are in registers at once, if they fit
_MAX_SUMS = 16  # registers of sums
_MIN_TILES = 4  # fewer do not hide the latency of a multiply-add
# Transformed tiles of a band: half of the second cache of small cores.
_MAX_BAND_BYTES = 1 << 18
# Bands must save so many times the traffic: threads share many blocks more evenly than few bands.
_LEAST_SAVING = 2


@dataclass(frozen=True, slots=True)
class WinogradTiling:
    """The parts in which a convolution is computed.

    Attributes:
        rows: the rows of tiles in a band.
        is_whole: True if there is one band.
        blocks: the blocks of output channels whose sums are in registers at once.
        tiles: the tiles whose sums are in registers at once.
    """

    rows: int
    is_whole: bool
    blocks: int
    tiles: int


@dataclass(frozen=True, slots=True)
class _Stages:
    """The tensors of a convolution, in the order in which they are computed."""

    padded: Tensor
    rows: Tensor
    tiles: Tensor
    products: Tensor
    halves: Tensor


def schedule_winograd(
    schedule: Schedule, op: ComputeOp, registers: VectorRegisters
) -> set[Stage]:
    """Schedule the stages of a convolution, and the elementwise output that follows it, if any.

    Args:
        schedule: the schedule, in which none of these stages has been changed.
        op: the last stage of `conv2d_nchwc_winograd`.
        registers: the vector registers of the target.

    Returns:
        The stages that are scheduled now.
    """
    stages = _stages_of(op)
    tiling = choose_tiling(stages.tiles, op.outputs[0], registers)
    last, result = local_result(schedule, op)
    sums = schedule.cache_write(stages.products, "local")
    outer = schedule[last]
    n, o, y, x, lane = _axes(last)
    band, row = outer.split(y, factor=_EDGE * tiling.rows)
    row, y = outer.split(row, factor=_EDGE)
    column, x = outer.split(x, factor=_EDGE)
    o, block = outer.split(o, factor=tiling.blocks)
    outer.reorder(n, band, o, block, row, column, y, x, lane)
    _write_out(outer, (y, x, lane))
    _order_result(schedule, stages, result, outer, column)
    _order_products(schedule, stages, sums, tiling, outer, o)
    tiles = schedule[stages.tiles]
    if not tiling.is_whole:
        tiles.compute_at(outer, band)
    elif as_int(n.extent) != 1:
        tiles.compute_at(outer, n)
    across = -(-(as_int(last.shape[3]) or 1) // _EDGE)
    padded = _order_tiles(schedule, stages, across)
    scheduled = (last, result, sums, stages.products, stages.halves, stages.rows)
    return {schedule.stage_of(t) for t in (*scheduled, stages.tiles, *padded)}


def _stages_of(op: ComputeOp) -> _Stages:
    """Return the stages that lead to the last one of `conv2d_nchwc_winograd`."""
    (halves,) = op.inputs
    (products,) = halves.op.inputs
    (tiles,) = [
        read
        for read in products.op.inputs
        if isinstance(read.op, ComputeOp) and read.op.tag == SHARED
    ]
    (rows,) = tiles.op.inputs
    (padded,) = rows.op.inputs
    return _Stages(padded, rows, tiles, products, halves)


def choose_tiling(
    tiles: Tensor, result: Tensor, registers: VectorRegisters
) -> WinogradTiling:
    """Return the parts in which a convolution is computed, by the estimated traffic of memory.

    Args:
        tiles: the transformed tiles [n, 4, 4, C, tile, c].
        result: the images [n, O, h, w, o].
        registers: the vector registers of the target.
    """
    *_, depth, count, lanes = (as_int(extent) or 1 for extent in tiles.shape)
    _, outs, height, width, out = (as_int(extent) or 1 for extent in result.shape)
    down, across = -(-height // _EDGE), -(-width // _EDGE)
    parts = -(-out // registers.lanes(result.dtype.bytes))
    blocks = _BLOCKS
    if outs % blocks or _most_tiles(blocks * parts, registers) < _MIN_TILES:
        blocks = 1
    most = _most_tiles(blocks * parts, registers)
    element = result.dtype.bytes
    row_bytes = _POINTS * across * depth * lanes * element
    # Tiles in registers divide those of a band, which are then computed without conditions.
    fitting = [
        rows
        for rows in range(1, down)
        if down % rows == 0
        and (rows == 1 or rows * row_bytes <= _MAX_BAND_BYTES)
        and _whole_tiles(rows * across, most)
    ]
    if fitting:
        rows = max(fitting)
        # Each band reads all weights.
        in_bands = down // rows * _POINTS * outs * out * depth * lanes * element
        # A single band writes its tiles, and reads them for each of the outer blocks.
        at_once = (1 + outs // blocks) * down * row_bytes
        products_bytes = _POINTS * count * blocks * out * element
        if products_bytes > _MAX_BAND_BYTES:
            at_once += 2 * outs // blocks * products_bytes
        if in_bands * _LEAST_SAVING <= at_once:
            whole_tiles = _whole_tiles(rows * across, most)
            return WinogradTiling(rows, False, blocks, whole_tiles)
    return WinogradTiling(down, True, blocks, _fewest_left_over(count, most))


def _most_tiles(across: int, registers: VectorRegisters) -> int:
    """Return for how many tiles there are registers, if each has `across` registers of sums."""
    fitting = (registers.count - 1) // across - 1
    return max(1, min(_MAX_SUMS // across, fitting))


def _whole_tiles(count: int, most: int) -> int:
    """Return the greatest number from `_MIN_TILES` to `most` that divides `count`, or 0."""
    numbers = range(most, _MIN_TILES - 1, -1)
    return next((number for number in numbers if count % number == 0), 0)


def _fewest_left_over(count: int, most: int) -> int:
    """Return the number of tiles up to `most` with the fewest empty places in the last part."""
    most = min(count, most)

    def cost(number: int) -> tuple[int, int]:
        """Return the number of computed tiles; the most tiles win a tie."""
        return -(-count // number) * number, -number

    return min(range(min(most, _MIN_TILES), most + 1), key=cost)


def _order_result(
    schedule: Schedule,
    stages: _Stages,
    result: Tensor,
    outer: StageSchedule,
    column: IterVar,
) -> None:
    """Transform the products of one tile back, in registers."""
    stage = schedule[result]
    stage.compute_at(outer, column)
    *_, y, x, lane = _axes(result)
    _write_out(stage, (y, x, lane))
    halves = schedule[stages.halves]
    halves.set_scope("local")
    halves.compute_at(stage, y)
    _write_out(halves, _axes(stages.halves))


def _order_products(
    schedule: Schedule,
    stages: _Stages,
    sums: Tensor,
    tiling: WinogradTiling,
    outer: StageSchedule,
    place: IterVar,
) -> None:
    """Compute products within the loop `place`, one point after the other, in tiles of registers.

    The weights of a point and of some output channels stay in the nearest cache for all tiles.
    """
    stage = schedule[stages.products]
    stage.compute_at(outer, place)
    n, y, x, o, tile, lane = _axes(stages.products)
    tile, several = stage.split(tile, factor=tiling.tiles)
    stage.reorder(n, y, x, tile, o, several, lane)
    _write_out(stage, (o, several, lane))
    inner = schedule[sums]
    inner.compute_at(stage, tile)
    assert isinstance(sums.op, ComputeOp)
    n, y, x, *inside = _axes(sums)
    # Each step reads one vector of weights for each block, and one element of each tile.
    inner.reorder(n, y, x, *sums.op.reduce_axis, *inside)
    _write_out(inner, inside)


def _order_tiles(
    schedule: Schedule, stages: _Stages, across: int
) -> tuple[Tensor, ...]:
    """Transform one tile after the other, in registers; return the border, if there is one."""
    stage = schedule[stages.tiles]
    n, y, x, block, tile, lane = _axes(stages.tiles)
    row, column = stage.split(tile, factor=across)
    stage.reorder(n, block, row, column, y, x, lane)
    _write_out(stage, (y, x, lane))
    rows = schedule[stages.rows]
    rows.set_scope("local")
    rows.compute_at(stage, y)
    _write_out(rows, _axes(stages.rows))
    padded = stages.padded
    if not isinstance(padded.op, ComputeOp) or padded.op.tag != PAD:
        return ()
    # The border of a band and of a block of channels stays in the nearest cache.
    border = schedule[padded]
    border.compute_at(stage, block)
    border.vectorize(padded.op.axis[-1])
    return (padded,)


def _axes(tensor: Tensor) -> tuple[IterVar, ...]:
    assert isinstance(tensor.op, ComputeOp)
    return tensor.op.axis


def _write_out(stage: StageSchedule, axes: Sequence[IterVar]) -> None:
    """Write out all loops but the last one, which becomes vectors."""
    *several, lane = axes
    for axis in several:
        stage.unroll(axis)
    stage.vectorize(lane)
