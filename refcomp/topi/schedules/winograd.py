"""The host's schedule of Winograd's convolution on blocks of channels (`conv2d_nchwc_winograd`).

An image is computed in bands of rows of tiles. For a band, all tiles are transformed first. Then a
few blocks of output channels at a time are computed. The products of 16 points are transformed back
before they are stored, together with the operators that follow (bias, ReLU)::

    for each image and band:
      tiles = transposed B d B                        of all input channels
      for each group of blocks of output channels:
        products = sums over the input channels       for each of 16 points, in registers
        result = transposed A products A              with what follows

A narrow band of tiles stays in the cache near the core, but each band reads all weights. So images
of many rows and few channels are computed in bands, and all others at once. Then threads share the
groups of output channels, so that each weight is read once.

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
from refcomp.topi.schedules.host_products import greatest_divisor
from refcomp.topi.schedules.vector_registers import VectorRegisters
from refcomp.topi.tags import PAD, SHARED

_EDGE = 2  # rows and columns of results in a tile
_POINTS = 16  # products of a tile
_BLOCKS = 2  # of output channels, whose sums are in registers at once, if they fit
_MAX_SUMS = 16  # registers of sums
_MIN_TILES = 4  # fewer do not hide the latency of a multiply-add
_LATENCY = 8  # multiply-adds that are in flight at once
# Parts of the second cache, which has 512 KiB on small cores. The transformed tiles of a band:
_MAX_BAND_BYTES = 1 << 18
_MAX_GROUP_BYTES = 1 << 19  # the products of a group, if there is one band
_MAX_POINT_BYTES = 1 << 17  # the tiles of a point that all blocks of a group read
# The time of tiles whose weights are read for each of them, in times of others. Measured.
_ALONE = 1.15
_MIN_GROUPS = 4  # if there is one band: for that many threads
# Bands must save so many times the traffic: threads share many blocks more evenly than few bands.
_LEAST_SAVING = 2


@dataclass(frozen=True, slots=True)
class WinogradTiling:
    """The parts in which a convolution is computed.

    Attributes:
        rows: the rows of tiles in a band.
        is_whole: True if there is one band.
        group: the blocks of output channels that are transformed back together.
        blocks: the blocks of output channels whose sums are in registers at once.
        tiles: the tiles whose sums are in registers at once.
        parts: the number of parts, of `tiles` tiles each, that stay in a cache for all blocks of
            the group.
    """

    rows: int
    is_whole: bool
    group: int
    blocks: int
    tiles: int
    parts: int


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
    o, block = outer.split(o, factor=tiling.group)
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
    sizes = _sizes_of(tiles, result)
    across = -(-sizes.out // registers.lanes(result.dtype.bytes))
    blocks = _BLOCKS
    if sizes.outs % blocks or _most_tiles(blocks * across, registers) < _MIN_TILES:
        blocks = 1
    whole = _at_once(sizes, blocks, blocks * across, registers)
    bands = _in_bands(sizes, blocks, _most_tiles(blocks * across, registers))
    if bands is not None:
        saved = sizes.traffic(whole.group)
        if _LEAST_SAVING * sizes.down // bands.rows * sizes.weight_bytes <= saved:
            return bands
    return whole


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The extents of a convolution, and the bytes of its intermediate results.

    Attributes:
        down: rows of tiles.
        across: tiles in a row.
        channels: input channels.
        outs: blocks of output channels.
        out: channels in such a block.
        element_bytes: bytes of an element.
    """

    down: int
    across: int
    channels: int
    outs: int
    out: int
    element_bytes: int

    @property
    def weight_bytes(self) -> int:
        """Return the bytes of all weights."""
        return self.product_bytes * self.outs * self.channels

    @property
    def row_bytes(self) -> int:
        """Return the bytes of a row of transformed tiles."""
        return _POINTS * self.across * self.channels * self.element_bytes

    @property
    def product_bytes(self) -> int:
        """Return the bytes of the products of a tile and a block."""
        return _POINTS * self.out * self.element_bytes

    def traffic(self, group: int) -> int:
        """Return the bytes that leave or enter the near caches if there is one band."""
        # Tiles are written once, and read for each group.
        total = (1 + self.outs // group) * self.down * self.row_bytes
        products = self.down * self.across * self.product_bytes
        if group * products > _MAX_GROUP_BYTES:
            total += 2 * self.outs * products
        return total


def _sizes_of(tiles: Tensor, result: Tensor) -> _Sizes:
    # A symbolic or empty axis counts as 1.
    *_, depth, _, lanes = (as_int(extent) or 1 for extent in tiles.shape)
    _, outs, height, width, out = (as_int(extent) or 1 for extent in result.shape)
    return _Sizes(
        down=-(-height // _EDGE),
        across=-(-width // _EDGE),
        channels=depth * lanes,
        outs=outs,
        out=out,
        element_bytes=result.dtype.bytes,
    )


def _at_once(
    sizes: _Sizes, blocks: int, across: int, registers: VectorRegisters
) -> WinogradTiling:
    """Return the parts of a convolution in one band.

    Args:
        sizes: the extents of the convolution.
        blocks: the blocks of output channels whose sums are in registers at once.
        across: the registers of their sums for one tile.
        registers: the vector registers of the target.
    """
    groups = _groups(sizes.outs, blocks, sizes.outs // _MIN_GROUPS)
    group = min(groups, key=lambda number: (sizes.traffic(number), -number))
    count = sizes.down * sizes.across
    tile_bytes = sizes.channels * sizes.element_bytes
    tiles = _fastest_tiles(count, across, registers, tile_bytes)
    parts = _parts(count, tiles, tile_bytes)
    return WinogradTiling(sizes.down, True, group, blocks, tiles, parts)


def _in_bands(sizes: _Sizes, blocks: int, most: int) -> WinogradTiling | None:
    """Return the parts of a convolution in several bands; None if none suits.

    Args:
        sizes: the extents of the convolution.
        blocks: the blocks of output channels whose sums are in registers at once.
        most: the tiles whose sums fit in registers at once.
    """
    # Tiles in registers divide those of a band, which are then computed without conditions.
    fitting = [
        rows
        for rows in range(1, sizes.down)
        if sizes.down % rows == 0
        and (rows == 1 or rows * sizes.row_bytes <= _MAX_BAND_BYTES)
        and _whole_tiles(rows * sizes.across, most)
    ]
    if not fitting:
        return None
    rows = max(fitting)
    count = rows * sizes.across
    most_blocks = _MAX_BAND_BYTES // (sizes.product_bytes * count)
    group = max(_groups(sizes.outs, blocks, most_blocks))
    tiles = _whole_tiles(count, most)
    return WinogradTiling(rows, False, group, blocks, tiles, count // tiles)


def _groups(outs: int, blocks: int, most: int) -> list[int]:
    """Return the divisors of `outs` up to `most` that are multiples of `blocks`, or `blocks`."""
    numbers = range(blocks, most + 1, blocks)
    return [number for number in numbers if outs % number == 0] or [blocks]


def _most_tiles(across: int, registers: VectorRegisters) -> int:
    """Return the number of tiles that fit in registers, at `across` registers for each."""
    fitting = (registers.count - 1) // across - 1
    return max(1, min(_MAX_SUMS // across, fitting))


def _whole_tiles(count: int, most: int) -> int:
    """Return the greatest number from `_MIN_TILES` to `most` that divides `count`, or 0."""
    numbers = range(most, _MIN_TILES - 1, -1)
    return next((number for number in numbers if count % number == 0), 0)


def _parts(count: int, tiles: int, tile_bytes: int) -> int:
    """Return the number of parts, of `tiles` tiles each, that stay in the cache together."""
    most = max(1, _MAX_POINT_BYTES // (tiles * tile_bytes))
    return greatest_divisor(-(-count // tiles), most)


def _fastest_tiles(
    count: int, across: int, registers: VectorRegisters, tile_bytes: int
) -> int:
    """Return the number of tiles in registers with which `count` tiles take the least time."""

    def time(number: int) -> int:
        """Return the time of a step of the reduction, in quarters of a multiply-add."""
        sums = max(number * across, _LATENCY)
        return 4 * sums + registers.load_time * (number + across)

    def total(number: int) -> tuple[float, int]:
        """Return the time for all tiles; the most tiles win a tie."""
        whole, rest = divmod(count, number)
        border = max(time(rest), registers.border_time * time(number)) if rest else 0
        spent: float = whole * time(number) + border
        if whole > 1 and _parts(count, number, tile_bytes) == 1:
            spent *= _ALONE
        return spent, -number

    return min(range(1, min(count, _most_tiles(across, registers)) + 1), key=total)


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

    The weights of a point and of a block stay in the nearest cache for all tiles. Some tiles of
    the point stay in the next one for all blocks of the group.
    """
    stage = schedule[stages.products]
    stage.compute_at(outer, place)
    n, y, x, o, tile, lane = _axes(stages.products)
    block, o = stage.split(o, factor=tiling.blocks)
    tile, several = stage.split(tile, factor=tiling.tiles)
    part, tile = stage.split(tile, factor=tiling.parts)
    stage.reorder(n, y, x, part, block, tile, o, several, lane)
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
