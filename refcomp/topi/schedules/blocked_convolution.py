"""The host's schedule of convolutions with channels in blocks: `conv2d_nchwc`, and depthwise ones.

A tile has some pixels of a row, and two blocks of output channels. Registers accumulate its sums
over the whole reduction. The operators that follow (bias, ReLU) are applied before a result is
stored.

The sums are local memory that unrolling turns into registers. The sums, the weights of a step and
one element of data must fit in the processor's registers. A block of channels may take several
registers. One schedule serves all sizes: the number of pixels is chosen so that the last tile of a
row has the fewest empty places.

If the weights of a tile do not stay in the first cache, the reduction is divided. All tiles of some
rows then add up one part of the reduction before the next part. Their sums then wait in memory, in
a stage that is attached outside of the loops over rows. LLVM keeps them in registers within a part.

Reference: E. Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures", SC 2018, section II.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from refcomp.ir.constants import as_int
from refcomp.ir.rewrite import walk
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_graph import readers_of
from refcomp.te.operation import ComputeOp, Operation
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import IterVar, Tensor, TensorRead
from refcomp.topi.schedules.vector_registers import VectorRegisters
from refcomp.topi.tags import CONV2D_NCHWC, DEPTHWISE_NCHWC, PAD

_BLOCKS = 2  # blocks of output channels in a tile, if their number is even and they fit; else 1
_MAX_SUMS = 16  # registers of sums in a tile
_MIN_PIXELS = 4  # fewer do not hide the latency of a multiply-add
# Reductions of at most so many steps are unrolled, such as a 3 x 3 window of one channel.
_MAX_UNROLLED_STEPS = 9
# Weights that all tiles of a part of the image read before the next ones, and the sums of that
# part: each takes about half of a first cache of 32 KiB.
_NEAR_BYTES = 16 << 10
# Rows of the image that all output channels read before the next rows: half of a second cache.
_FAR_BYTES = 256 << 10
_RANK = 5  # of images with channels in blocks


@dataclass(frozen=True, slots=True)
class _Tiling:
    """The division of a convolution into tiles, and of its loops into parts.

    Attributes:
        blocks: blocks of output channels in a tile.
        pixels: pixels of a row in a tile.
        depth: blocks of input channels in a part of the reduction; 0 if it is not divided.
        rows: rows of a part of the image. A divided reduction keeps their sums in memory.
        rows_first: True to compute all output channels of these rows before the next rows. The
            rows stay in the second cache meanwhile.
    """

    blocks: int
    pixels: int
    depth: int = 0
    rows: int = 0
    rows_first: bool = False


def schedule_blocked_convolution(
    schedule: Schedule, op: ComputeOp, registers: VectorRegisters
) -> set[Stage]:
    """Schedule `op` in tiles, within the loops of the elementwise output that follows it, if any.

    Returns:
        The stages that are scheduled now.
    """
    last, sums = local_result(schedule, op)
    assert isinstance(sums.op, ComputeOp)
    tiling = _choose_tile(sums.op, registers)
    if op.tag == CONV2D_NCHWC:
        tiling = _divide(tiling, sums.op)
    if tiling.depth:
        _schedule_parts(schedule, last, sums, tiling)
    else:
        _schedule_tiles(schedule, last, sums, tiling)
    scheduled = {schedule.stage_of(last), schedule.stage_of(sums)}
    border = _near_border(schedule, op)
    if border is not None:
        scheduled.add(_attach_border(schedule, border, last))
    return scheduled


def _near_border(schedule: Schedule, op: ComputeOp) -> Tensor | None:
    """Return the data with a border, if one block of channels of it fits in the first cache.

    Only the same block of output channels reads it, so that it is computed once.
    """
    if op.tag != DEPTHWISE_NCHWC:
        return None
    data = next(tensor for tensor in op.inputs if tensor.ndim == _RANK)
    stage = schedule.stage_of(data)
    is_border = isinstance(data.op, ComputeOp) and data.op.tag == PAD
    size = math.prod(as_int(extent) or _FAR_BYTES for extent in data.shape[2:])
    is_near = size * data.dtype.bytes <= 2 * _NEAR_BYTES
    has_one_reader = not stage.is_output and len(readers_of(stage)) == 1
    return data if is_border and is_near and has_one_reader else None


def _attach_border(schedule: Schedule, border: Tensor, last: Tensor) -> Stage:
    """Compute the border of a block of channels just before the block is read."""
    stage = schedule[border]
    # The loop over blocks of channels is behind the one over images.
    stage.compute_at(schedule[last], schedule.stage_of(last).loops.leaves[1])
    lane = _axes(border)[-1]
    stage.vectorize(lane)
    return schedule.stage_of(border)


def _choose_tile(op: ComputeOp, registers: VectorRegisters) -> _Tiling:
    """Return the tile of a convolution whose reduction is not divided."""
    *_, x, lane = op.axis
    # Registers for a block of channels.
    lanes = registers.lanes(op.outputs[0].dtype.bytes)
    parts = -(-(as_int(lane.extent) or 1) // lanes)
    # Channels that are convolved alone share no data with others.
    blocks = 1 if op.tag == DEPTHWISE_NCHWC else _BLOCKS
    # All blocks of a tile read the data of one group, so that a pixel is read once for them.
    is_even = blocks == 1 or _blocks_of_group(op) % blocks == 0
    if not is_even or _most_pixels(blocks * parts, registers) < _MIN_PIXELS:
        blocks = 1
    most = _most_pixels(blocks * parts, registers)
    return _Tiling(blocks, _pixels(as_int(x.extent) or 0, most))


def _blocks_of_group(op: ComputeOp) -> int:
    """Return the number of blocks of output channels that read the same data."""
    own = as_int(op.reduce_axis[0].extent) or 1
    depths = [as_int(read.shape[1]) or own for read in op.inputs if read.ndim == _RANK]
    return (as_int(op.axis[1].extent) or 0) * own // max(depths)


def _divide(tile: _Tiling, op: ComputeOp) -> _Tiling:
    """Divide the reduction of a convolution whose weights do not stay in the first cache.

    Otherwise each tile would read all weights of its channels from a farther cache. Also divide the
    image into rows that stay in the second cache, if this reduces the reads from farther away.
    """
    _, o, y, x, lane = op.axis
    depth, *window, channels = (as_int(axis.extent) or 0 for axis in op.reduce_axis)
    height, width = as_int(y.extent) or 0, as_int(x.extent) or 0
    if not (height and width):
        return tile
    element = int(op.outputs[0].dtype.bytes)
    vector = tile.blocks * (as_int(lane.extent) or 0) * element
    of_block = math.prod(window) * channels * vector
    part = _divisor(depth, max(1, _NEAR_BYTES // max(1, of_block)))
    most = height
    if part < depth:
        most = max(1, _NEAR_BYTES // (width * vector))
    far = _FarBytes(
        height=height,
        image=height * width * depth * channels * element,
        weights=of_block * depth,
        tiles=(as_int(o.extent) or 0) // tile.blocks,
    )
    rows = min(
        (d for d in range(1, min(height, most) + 1) if height % d == 0),
        key=lambda rows: (far.bytes_of_rows(rows), -rows),
    )
    rows_first = far.bytes_of_rows(rows) < far.bytes_of_channels
    if not rows_first:
        rows = _divisor(height, most)
    if part == depth:
        return replace(tile, rows=rows, rows_first=True) if rows_first else tile
    return replace(tile, depth=part, rows=rows, rows_first=rows_first)


@dataclass(frozen=True, slots=True)
class _FarBytes:
    """The bytes of a convolution, and the bytes that its loops read from beyond the second cache.

    Attributes:
        height: rows of the result.
        image: bytes of the image that a tile of channels reads.
        weights: bytes of the weights of a tile of channels.
        tiles: tiles of channels.
    """

    height: int
    image: int
    weights: int
    tiles: int

    @property
    def bytes_of_channels(self) -> int:
        """Return the bytes that are read if each tile of channels computes the whole image."""
        times = self.tiles if self.image > _FAR_BYTES else 1
        return self.tiles * self.weights + times * self.image

    def bytes_of_rows(self, rows: int) -> int:
        """Return the bytes that are read if all channels of some rows are computed together."""
        weights = self.tiles * self.weights
        parts = self.height // rows
        times = self.tiles if self.image > _FAR_BYTES * parts else 1
        return weights * (parts if weights > _FAR_BYTES else 1) + times * self.image


def _divisor(number: int, limit: int) -> int:
    """Return the greatest divisor of `number` up to `limit`, which is at least 1."""
    return max(d for d in range(1, max(1, min(number, limit)) + 1) if number % d == 0)


def _schedule_tiles(
    schedule: Schedule, last: Tensor, sums: Tensor, tiling: _Tiling
) -> None:
    """Compute each tile whole: its sums are in registers over the whole reduction."""
    outer = schedule[last]
    n, o, y, x, lane = _axes(last)
    o_outer, o_inner = outer.split(o, factor=tiling.blocks)
    x_outer, x_inner = outer.split(x, factor=tiling.pixels)
    places = [o_outer]
    if tiling.rows_first:
        y_outer, y = outer.split(y, factor=tiling.rows)
        places = [y_outer, o_outer]
    outer.reorder(n, *places, y, x_outer, o_inner, x_inner, lane)
    if tiling.rows_first:
        outer.fuse(*places)  # one loop, of which threads share the iterations
    outer.unroll(o_inner)
    outer.unroll(x_inner)
    outer.vectorize(lane)
    # The reduction is outside of the tile: each step reads one vector of weights for each block,
    # and one element of data for each pixel.
    inner = schedule[sums]
    inner.compute_at(outer, x_outer)
    n, o, y, x, lanes = _axes(sums)
    assert isinstance(sums.op, ComputeOp)
    inner.reorder(n, y, *sums.op.reduce_axis, o, x, lanes)
    inner.unroll(o)
    inner.unroll(x)
    inner.vectorize(lanes)
    steps = math.prod(as_int(axis.extent) or 0 for axis in sums.op.reduce_axis)
    if 0 < steps <= _MAX_UNROLLED_STEPS:
        for axis in sums.op.reduce_axis:
            inner.unroll(axis)


def _schedule_parts(
    schedule: Schedule, last: Tensor, sums: Tensor, tiling: _Tiling
) -> None:
    """Add up one part of the reduction for all tiles of some rows, before the next part.

    Between two parts, the sums of these rows are in memory. Within a part, they are registers.
    """
    outer = schedule[last]
    n, o, y, x, lane = _axes(last)
    o_outer, o_inner = outer.split(o, factor=tiling.blocks)
    y_outer, y_inner = outer.split(y, factor=tiling.rows)
    places = [y_outer, o_outer] if tiling.rows_first else [o_outer, y_outer]
    outer.reorder(n, *places, o_inner, y_inner, x, lane)
    outer.vectorize(lane)
    # One loop, of which threads share the iterations.
    place = outer.fuse(*places)
    inner = schedule[sums]
    inner.compute_at(outer, place)
    assert isinstance(sums.op, ComputeOp)
    n, o, y, x, lane = _axes(sums)
    blocks, *steps = sums.op.reduce_axis
    part, block = inner.split(blocks, factor=tiling.depth)
    x_outer, x_inner = inner.split(x, factor=tiling.pixels)
    inner.reorder(n, part, y, x_outer, block, *steps, o, x_inner, lane)
    inner.unroll(o)
    inner.unroll(x_inner)
    inner.vectorize(lane)


def local_result(schedule: Schedule, op: ComputeOp) -> tuple[Tensor, Tensor]:
    """Keep the result of a reduction in local memory, inside the loops of what follows it.

    Returns:
        The tensor whose loops are scheduled: the output that follows `op` elementwise, or else the
        result. And the tensor that holds a part of the result within these loops.
    """
    (result,) = op.outputs
    follower = elementwise_follower(schedule, op)
    # An output that follows two reductions has the loops of the first.
    if follower is None or schedule.stage_of(follower).loops.relations:
        return result, schedule.cache_write(result, "local")
    schedule[result].set_scope("local")
    return follower, result


def elementwise_follower(schedule: Schedule, op: ComputeOp) -> Tensor | None:
    """Return the output to which only elementwise computes lead from `op`, or None.

    All paths from `op` lead to this output, such as both of x * sigmoid(x). The computes between
    are to be inlined.
    """
    (result,) = op.outputs
    if schedule.stage_of(result).is_output:
        return None
    reached = [result]
    outputs: list[Tensor] = []
    # Producers come before their readers.
    for stage in schedule.stages:
        read = [tensor for tensor in reached if tensor in stage.op.inputs]
        if not read:
            continue
        if outputs or not all(_is_elementwise(stage.op, tensor) for tensor in read):
            return None
        reached += stage.op.outputs
        if stage.is_output:
            outputs += stage.op.outputs
    return outputs[0] if outputs else None


def _is_elementwise(op: Operation, tensor: Tensor) -> bool:
    """Return True if each element of `op` reads only the element of `tensor` at its own place."""
    if not isinstance(op, ComputeOp) or op.tag != INJECTIVE or len(op.outputs) != 1:
        return False
    if len(op.axis) != len(tensor.shape):
        return False
    extents = [as_int(extent) for extent in tensor.shape]
    for node in walk(op.body[0]):
        if not isinstance(node, TensorRead) or node.tensor is not tensor:
            continue
        places = zip(node.indices, op.axis, extents, strict=True)
        for index, axis, extent in places:
            # By identity: `==` on expressions builds a comparison. Broadcasting reads at 0 where
            # the extent is 1.
            is_only = extent == 1 and as_int(axis.extent) == 1
            if index is not axis.var and not is_only:
                return False
    return True


def _axes(tensor: Tensor) -> tuple[IterVar, ...]:
    assert isinstance(tensor.op, ComputeOp)
    return tensor.op.axis


def _most_pixels(across: int, registers: VectorRegisters) -> int:
    """Return the number of pixels that fit in registers, at `across` registers for each."""
    fitting = (registers.count - 1) // across - 1
    return max(1, min(_MAX_SUMS // across, fitting))


def _pixels(width: int, most: int) -> int:
    """Return the number of pixels in a tile, for rows of `width` pixels (0: symbolic)."""
    most = min(width, most) if width else min(_MIN_PIXELS, most)
    counts = range(min(most, _MIN_PIXELS), most + 1)

    def cost(count: int) -> tuple[int, int]:
        """Return the number of computed pixels; the widest tile wins a tie."""
        tiles = -(-width // count)
        return tiles * count, -count

    return min(counts, key=cost)
