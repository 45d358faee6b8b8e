"""Small scheduled computations whose mutants together cover most mistakes of a compiler.

Extents are constant, and most factors do not divide them, so that guards, masks and tails are
needed. Some schedules are for the host, others for a GPU with shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refcomp.ir.expr import Expr, Var
from refcomp.ir.promotion import const
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.te.maths import exp, if_then_else, maximum, select
from refcomp.te.operation import compute, placeholder
from refcomp.te.reducer import comm_reducer, max, reduce_axis, sum
from refcomp.te.tensor import Tensor, thread_axis


@dataclass(frozen=True, slots=True)
class Subject:
    """A schedule with its arguments."""

    name: str
    kind: str  # of the targets that it is for
    schedule: Schedule
    args: tuple[Tensor, ...]


_Scheduled = tuple[Schedule, tuple[Tensor, ...]]

# Tags of the four loops of a tiled matrix, from the outermost to the innermost.
_TILE_TAGS = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")


def _matrix_product(rows: int, depth: int, columns: int) -> tuple[Tensor, ...]:
    """Return the factors A and B, and the product C."""
    a = placeholder((rows, depth), name="A")
    b = placeholder((depth, columns), name="B")
    k = reduce_axis((0, depth), "k")

    def element(i: Var, j: Var) -> Expr:
        return sum(a[i, k] * b[k, j], axis=k)

    return a, b, compute((rows, columns), element, name="C")


def _matmul() -> _Scheduled:
    a, b, c = _matrix_product(5, 7, 6)
    schedule = create_schedule(c)
    stage = schedule[c]
    i, j = c.op.axis
    k = c.op.reduce_axis[0]
    outer, inner = stage.split(j, factor=4)
    k_outer, k_inner = stage.split(k, factor=3)
    stage.reorder(i, outer, k_outer, k_inner, inner)
    stage.vectorize(inner)
    stage.unroll(k_inner)
    stage.parallel(i)
    return schedule, (a, b, c)


def _blur() -> _Scheduled:
    a = placeholder((6, 9), name="A")

    def padded(i: Var, j: Var) -> Expr:
        is_inside = (j >= 1) & (j < 10)
        return if_then_else(is_inside, a[i, j - 1], 0.0)

    p = compute((6, 11), padded, name="P")

    def weighted(i: Var, j: Var) -> Expr:
        left = p[i, j] * 0.25
        middle = p[i, j + 1] * 0.5
        # A weight that no float holds exactly, so that the order of additions matters.
        right = p[i, j + 2] * 0.12345
        return left + middle + right

    b = compute((6, 9), weighted)
    schedule = create_schedule(b)
    outer, inner = schedule[b].split(b.op.axis[1], factor=4)
    schedule[p].compute_at(schedule[b], outer)
    schedule[b].vectorize(inner)
    return schedule, (a, b)


def _softmax() -> _Scheduled:
    x = placeholder((3, 6), name="X")
    k = reduce_axis((0, 6), "k")
    k_sum = reduce_axis((0, 6), "k")
    largest = compute((3,), lambda i: max(x[i, k], axis=k), name="most")
    power = compute((3, 6), lambda i, j: exp(x[i, j] - largest[i]), name="power")
    total = compute((3,), lambda i: sum(power[i, k_sum], axis=k_sum), name="total")
    y = compute((3, 6), lambda i, j: power[i, j] / total[i], name="Y")
    schedule = create_schedule(y)
    rows = y.op.axis[0]
    for stage in (largest, power, total):
        schedule[stage].compute_at(schedule[y], rows)
    return schedule, (x, y)


def _argmax() -> _Scheduled:
    x = placeholder((4, 7), name="X")
    k = reduce_axis((0, 7), "k")

    def combine(first: Sequence[Expr], second: Sequence[Expr]) -> tuple[Expr, Expr]:
        index, value = first
        other_index, other = second
        # Of equal values the one with the lower index, in whatever order they come.
        is_earlier = (value == other) & (index < other_index)
        is_better = (value > other) | is_earlier
        best_index = select(is_better, index, other_index)
        return best_index, select(is_better, value, other)

    def identity(index: str, value: str) -> tuple[Expr, Expr]:
        return const(2**31 - 1, index), const(float("-inf"), value)

    argmax = comm_reducer(combine, identity, "argmax")
    position = k.var.astype("int32")
    where, best = compute((4,), lambda i: argmax((position, x[i, k]), axis=k))
    schedule = create_schedule(where)
    schedule[where].split(where.op.axis[0], factor=3)
    return schedule, (x, where, best)


def _transpose() -> _Scheduled:
    a = placeholder((7, 10), name="A")
    b = compute((10, 7), lambda i, j: maximum(a[j, i] - 0.37213, 0.0), name="B")
    schedule = create_schedule(b)
    stage = schedule[b]
    i, j = b.op.axis
    x, y, x_inner, _ = stage.tile(i, j, 4, 5)
    stage.fuse(x, y)
    stage.unroll(x_inner)
    return schedule, (a, b)


def _triangle() -> _Scheduled:
    """Return sums over parts of rows, which begin and end where the row says."""
    a = placeholder((7, 7), name="A")
    b = placeholder((7,), name="B")
    scaled = compute((7, 7), lambda i, j: a[i, j] * 0.3 + b[j], name="T")

    def row(i: Var) -> Expr:
        k = reduce_axis((i // 2, i + 1), "k")
        return sum(scaled[i, k] * b[k], axis=k)

    c = compute((7,), row, name="C")
    schedule = create_schedule(c)
    stage = schedule[c]
    outer, _ = stage.split(c.op.axis[0], factor=3)
    k_outer, _ = stage.split(c.op.reduce_axis[0], factor=2)
    schedule[scaled].compute_at(stage, k_outer)
    stage.parallel(outer)
    return schedule, (a, b, c)


def _vectors() -> _Scheduled:
    """Return the product of a matrix of vectors and a vector of scalars."""
    a = placeholder((5, 6), "float32x4", name="A")
    b = placeholder((6,), name="B")
    k = reduce_axis((0, 6), "k")
    c = compute((5,), lambda i: sum(a[i, k] * b[k], axis=k), name="C")
    schedule = create_schedule(c)
    schedule[c].split(c.op.axis[0], factor=2)
    schedule[c].split(k, factor=4)
    return schedule, (a, b, c)


def _gpu_product() -> _Scheduled:
    a, b, c = _matrix_product(6, 5, 6)
    schedule = create_schedule(c)
    local = schedule.cache_write(c, "local")
    shared = [schedule.cache_read(factor, "shared", [local]) for factor in (a, b)]
    i, j = c.op.axis
    loops = schedule[c].tile(i, j, 2, 3)
    for loop, tag in zip(loops, _TILE_TAGS, strict=True):
        schedule[c].bind(loop, thread_axis(tag))
    accumulator = schedule[local]
    accumulator.compute_at(schedule[c], loops[-1])
    k_outer, _ = accumulator.split(local.op.reduce_axis[0], factor=2)
    accumulator.reorder(k_outer, *local.op.axis)
    for copy in shared:
        stage = schedule[copy]
        stage.compute_at(accumulator, k_outer)
        fused = stage.fuse(*copy.op.axis)
        rest, thread_x = stage.split(fused, factor=3)
        _, thread_y = stage.split(rest, factor=2)
        stage.bind(thread_x, thread_axis("threadIdx.x"))
        stage.bind(thread_y, thread_axis("threadIdx.y"))
    return schedule, (a, b, c)


def _gpu_transpose() -> _Scheduled:
    a = placeholder((5, 6), name="A")
    b = compute((6, 5), lambda i, j: a[j, i] * 1.5, name="B")
    schedule = create_schedule(b)
    shared = schedule.cache_read(a, "shared", [b])
    i, j = b.op.axis
    loops = schedule[b].tile(i, j, 3, 3)
    for loop, tag in zip(loops, _TILE_TAGS, strict=True):
        schedule[b].bind(loop, thread_axis(tag))
    stage = schedule[shared]
    stage.compute_at(schedule[b], loops[1])
    for loop, tag in zip(shared.op.axis, _TILE_TAGS[2:], strict=True):
        _, inner = stage.split(loop, factor=3)
        stage.bind(inner, thread_axis(tag))
    return schedule, (a, b)


_MAKERS: tuple[tuple[str, str, Callable[[], _Scheduled]], ...] = (
    ("product", "llvm", _matmul),
    ("blur", "llvm", _blur),
    ("softmax", "llvm", _softmax),
    ("argmax", "llvm", _argmax),
    ("transpose", "llvm", _transpose),
    ("triangle", "llvm", _triangle),
    ("vectors", "llvm", _vectors),
    ("tiled product", "opencl", _gpu_product),
    ("tiled transpose", "opencl", _gpu_transpose),
)


def subjects() -> list[Subject]:
    """Return all subjects, built anew."""
    return [Subject(name, kind, *make()) for name, kind, make in _MAKERS]
