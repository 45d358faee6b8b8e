"""The host's schedule of a convolution with channels in blocks (`topi.conv2d_nchwc`).

A tile has some pixels of a row, and two blocks of output channels. Registers accumulate its sums
over the whole reduction. The operators that follow (bias, ReLU) are applied on the way to memory.

The sums are local memory that unrolling turns into registers. With the weights of a step and one
element of data they must fit in the processor's registers, of which a block of channels may take
several. One schedule serves all sizes: the number of pixels is chosen so that the last tile of a
row has the fewest empty places.

Reference: E. Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures", SC 2018, section II.
"""

from __future__ import annotations

from refcomp.ir.constants import as_int
from refcomp.ir.rewrite import walk
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.te.operation import ComputeOp, Operation
from refcomp.te.tensor import IterVar, Tensor, TensorRead
from refcomp.topi.schedules.vector_registers import VectorRegisters
from refcomp.topi.tags import INJECTIVE

_BLOCKS = 2  # blocks of output channels in a tile, if their number is even and they fit; else 1
_MAX_SUMS = 16  # registers of sums in a tile
_MIN_PIXELS = 4  # fewer do not hide the latency of a multiply-add


def schedule_blocked_convolution(
    schedule: Schedule, op: ComputeOp, registers: VectorRegisters
) -> set[Stage]:
    """Schedule `op` in tiles, within the loops of the elementwise output that follows it, if any.

    Returns:
        The stages that are scheduled now.
    """
    last, sums = local_result(schedule, op)
    outer = schedule[last]
    n, o, y, x, lane = _axes(last)
    # Registers for a block of channels.
    parts = -(-(as_int(lane.extent) or 1) // registers.lanes(sums.dtype.bytes))
    blocks = _BLOCKS
    is_even = (as_int(o.extent) or 0) % blocks == 0
    if not is_even or _most_pixels(blocks * parts, registers) < _MIN_PIXELS:
        blocks = 1
    o_outer, o_inner = outer.split(o, factor=blocks)
    most = _most_pixels(blocks * parts, registers)
    pixels = _pixels(as_int(x.extent) or 0, most)
    x_outer, x_inner = outer.split(x, factor=pixels)
    outer.reorder(n, o_outer, y, x_outer, o_inner, x_inner, lane)
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
    return {schedule.stage_of(last), schedule.stage_of(sums)}


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
    """Return for how many pixels there are registers, if each has `across` registers of sums."""
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
