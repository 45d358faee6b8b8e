"""Schedules for NVIDIA GPUs: products in tiles of shared memory, elementwise stages in vectors.

`schedule_cuda` takes any computation made of topi operators, as `schedule_gpu` does. It has its own
schedules for products that a tile divides, and for elementwise stages. All other stages have those
of `schedule_gpu`.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.ir.constants import as_ints
from refcomp.ir.expr import Expr, Var
from refcomp.ir.rewrite import variables_in, walk
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, TensorRead, thread_axis
from refcomp.topi.schedules.blocked_convolution import elementwise_follower
from refcomp.topi.schedules.gpu import schedule_reuse, schedule_stages
from refcomp.topi.schedules.rows import bind_elements
from refcomp.topi.schedules.tiled_product import (
    choose_tile,
    find_product,
    schedule_product,
)

_ACCESS_BYTES = 16  # of the widest access of a thread to memory
_THREADS = 256


def schedule_cuda(outputs: Sequence[Tensor]) -> Schedule:
    """Return a schedule for NVIDIA GPUs of all stages on which `outputs` depend.

    Args:
        outputs: a list of tensors, which topi's operators or your own computes returned.

    Raises:
        UserError: an output is not a tensor.

    Example::

        >>> A = rc.placeholder((1024,), name="A")
        >>> B = rc.topi.relu(A)
        >>> s = rc.topi.schedule_cuda([B])
        >>> print(rc.lower(s, [A, B], "relu"))
        func relu(A: f32[1024], relu: f32[1024] out) {
          for blockIdx.x in range(1) blockIdx.x {
            for threadIdx.x in range(256) threadIdx.x {
              for i0.inner in range(4) vectorized {
                relu[threadIdx.x * 4 + i0.inner] = max(A[threadIdx.x * 4 + i0.inner], 0.0f32)
              }
            }
          }
        }
    """
    schedule = create_schedule(outputs)
    tiled: set[Stage] = set()
    # Over a copy, since a product adds stages.
    stages = tuple(schedule.stages)
    for stage in stages:
        if not isinstance(stage.op, ComputeOp):
            continue
        product = find_product(stage.op)
        if product is not None:
            last = elementwise_follower(schedule, product.op)
            # An output that follows two products has the loops of the first.
            if last is not None and schedule.stage_of(last).loops.relations:
                last = None
            tiled |= schedule_product(schedule, product, choose_tile(product), last)
        else:
            tiled |= schedule_reuse(schedule, stage.op)
    rest = [stage for stage in stages if stage not in tiled]
    schedule_stages(schedule, rest, _bind)
    return schedule


def _bind(handle: StageSchedule, op: ComputeOp) -> None:
    lanes = _lanes(op)
    if lanes == 1:
        bind_elements(handle, op.axis)
    else:
        _bind_vectors(handle, op, lanes)


def _lanes(op: ComputeOp) -> int:
    """Return the number of neighbours of a thread: those of an access of 16 bytes, or 1."""
    extents = as_ints([axis.extent for axis in op.axis])
    if not extents or op.reduce_axis:
        return 1
    reads = _reads_in_vectors(op)
    if reads is None:
        return 1
    widest = max(tensor.dtype.bytes for tensor in (*op.outputs, *reads))
    lanes = max(1, _ACCESS_BYTES // widest)
    return lanes if extents[-1] % lanes == 0 else 1


def _reads_in_vectors(op: ComputeOp) -> list[Tensor] | None:
    """Return the tensors that `op` reads, also through stages that are inlined.

    None if neighbours along the last axis read other elements than neighbours along the last axis
    of a tensor, or the same element.
    """
    last = op.axis[-1].var
    nodes = (node for root in op.body for node in walk(root))
    found: list[Tensor] = []
    for read in (node for node in nodes if isinstance(node, TensorRead)):
        *outer, index = read.indices
        is_neighbour = index is last or not _uses(index, last)
        if not is_neighbour or any(_uses(other, last) for other in outer):
            return None
        producer = read.tensor.op
        inner: list[Tensor] | None = [read.tensor]
        if isinstance(producer, ComputeOp) and producer.tag == INJECTIVE:
            inner = _reads_in_vectors(producer)
        if inner is None:
            return None
        found += inner
    return found


def _uses(expr: Expr, var: Var) -> bool:
    return any(found is var for found in variables_in(expr))


def _bind_vectors(handle: StageSchedule, op: ComputeOp, lanes: int) -> None:
    """Bind vectors of the fused axes to groups and threads."""
    whole = handle.fuse(*op.axis)
    vectors, elements = handle.split(whole, factor=lanes)
    block, thread = handle.split(vectors, factor=_THREADS)
    handle.bind(block, thread_axis("blockIdx.x"))
    handle.bind(thread, thread_axis("threadIdx.x"))
    handle.vectorize(elements)
