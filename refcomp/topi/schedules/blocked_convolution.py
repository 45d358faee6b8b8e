"""The host's schedule of a convolution with channels in blocks (`topi.conv2d_nchwc`).

A tile has some pixels of a row, and two blocks of output channels. Registers accumulate its sums
over the whole reduction. The operators that follow (bias, ReLU) are applied on the way to memory.

The sums are local memory that unrolling turns into registers. With two vectors of weights and one
of data they must fit in the 32 registers of AVX-512. One schedule serves all sizes: the number of
pixels is chosen so that a row leaves the fewest over.
"""

from __future__ import annotations

from refcomp.ir.constants import as_int
from refcomp.ir.rewrite import walk
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.te.operation import ComputeOp, Operation
from refcomp.te.tensor import IterVar, Tensor, TensorRead
from refcomp.topi.tags import INJECTIVE

_BLOCKS = 2  # of output channels in a tile, where their number is even
_MOST_SUMS = 16
_LEAST_PIXELS = 4


def schedule_blocked_convolution(schedule: Schedule, op: ComputeOp) -> set[Stage]:
    """Tiles of `op`, inside the loops of the elementwise output that follows it, if one does; the
    stages that have their loops by now."""
    (result,) = op.outputs
    follower = elementwise_follower(schedule, op)
    if follower is None:
        sums = schedule.cache_write(result, "local")
        last = result
    else:
        sums, last = result, follower
        schedule[sums].set_scope("local")
    n, o, y, x, lane = _axes(last)
    blocks = _BLOCKS if (as_int(o.extent) or 0) % _BLOCKS == 0 else 1
    o_outer, o_inner = schedule[last].split(o, factor=blocks)
    x_outer, x_inner = schedule[last].split(
        x, factor=_pixels(as_int(x.extent) or 0, blocks)
    )
    schedule[last].reorder(n, o_outer, y, x_outer, o_inner, x_inner, lane)
    schedule[sums].compute_at(schedule[last], x_outer)
    n, o, y, x, lanes = _axes(sums)
    assert isinstance(sums.op, ComputeOp)
    schedule[sums].reorder(n, y, *sums.op.reduce_axis, o, x, lanes)
    for tensor, axes, vector in (
        (last, (o_inner, x_inner), lane),
        (sums, (o, x), lanes),
    ):
        for axis in axes:
            schedule[tensor].unroll(axis)
        schedule[tensor].vectorize(vector)
    return {schedule.stage_of(last), schedule.stage_of(sums)}


def elementwise_follower(schedule: Schedule, op: ComputeOp) -> Tensor | None:
    """The elementwise output that the convolution leads to, with nothing else that reads it or
    what lies between, which is to be inlined; None where there is none."""
    tensor = op.outputs[0]
    while not schedule.stage_of(tensor).is_output:
        readers = [s.op for s in schedule.stages if tensor in s.op.inputs]
        if len(readers) != 1 or not _is_elementwise(readers[0], tensor):
            return None
        tensor = readers[0].outputs[0]
    return None if tensor.op is op else tensor


def _is_elementwise(op: Operation, tensor: Tensor) -> bool:
    """Return True if each element of `op` reads only the element of `tensor` at its own place."""
    if not isinstance(op, ComputeOp) or op.tag != INJECTIVE or len(op.outputs) != 1:
        return False
    own = [axis.var for axis in op.axis]
    reads = [node for node in walk(op.body[0]) if isinstance(node, TensorRead)]
    return all(
        list(map(id, read.indices)) == list(map(id, own))
        for read in reads
        if read.tensor is tensor
    )


def _axes(tensor: Tensor) -> tuple[IterVar, ...]:
    assert isinstance(tensor.op, ComputeOp)
    return tensor.op.axis


def _pixels(width: int, blocks: int) -> int:
    """Return the number of pixels of a row in a tile."""
    most = max(1, min(width, _MOST_SUMS // blocks)) if width else _LEAST_PIXELS
    counts = range(min(most, _LEAST_PIXELS), most + 1)
    return min(counts, key=lambda count: (-(-width // count) * count, -count))
