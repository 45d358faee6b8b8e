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


def _matmul() -> _Scheduled:
    a = placeholder((5, 7), name="A")
    b = placeholder((7, 6), name="B")
    k = reduce_axis((0, 7), "k")
    c = compute((5, 6), lambda i, j: sum(a[i, k] * b[k, j], axis=k), name="C")
    s = create_schedule(c)
    i, j = c.op.axis
    outer, inner = s[c].split(j, factor=4)
    k_outer, k_inner = s[c].split(k, factor=3)
    s[c].reorder(i, outer, k_outer, k_inner, inner)
    s[c].vectorize(inner)
    s[c].unroll(k_inner)
    s[c].parallel(i)
    return s, (a, b, c)


def _blur() -> _Scheduled:
    a = placeholder((6, 9), name="A")

    def padded(i: Var, j: Var) -> Expr:
        return if_then_else((j >= 1) & (j < 10), a[i, j - 1], 0.0)

    p = compute((6, 11), padded, name="P")
    b = compute(
        (6, 9), lambda i, j: p[i, j] * 0.25 + p[i, j + 1] * 0.5 + p[i, j + 2] * 0.12345
    )
    s = create_schedule(b)
    j = b.op.axis[1]
    outer, inner = s[b].split(j, factor=4)
    s[p].compute_at(s[b], outer)
    s[b].vectorize(inner)
    return s, (a, b)


def _softmax() -> _Scheduled:
    x = placeholder((3, 6), name="X")
    k = reduce_axis((0, 6), "k")
    k_sum = reduce_axis((0, 6), "k")
    largest = compute((3,), lambda i: max(x[i, k], axis=k), name="most")
    power = compute((3, 6), lambda i, j: exp(x[i, j] - largest[i]), name="power")
    total = compute((3,), lambda i: sum(power[i, k_sum], axis=k_sum), name="total")
    y = compute((3, 6), lambda i, j: power[i, j] / total[i], name="Y")
    s = create_schedule(y)
    for stage in (largest, power, total):
        s[stage].compute_at(s[y], y.op.axis[0])
    return s, (x, y)


def _argmax() -> _Scheduled:
    x = placeholder((4, 7), name="X")
    k = reduce_axis((0, 7), "k")

    def combine(a: Sequence[Expr], b: Sequence[Expr]) -> tuple[Expr, Expr]:
        better = (a[1] > b[1]) | ((a[1] == b[1]) & (a[0] < b[0]))
        return select(better, a[0], b[0]), select(better, a[1], b[1])

    argmax = comm_reducer(
        combine, lambda i, v: (const(2**31 - 1, i), const(float("-inf"), v)), "argmax"
    )
    where, best = compute(
        (4,), lambda i: argmax((k.var.astype("int32"), x[i, k]), axis=k)
    )
    s = create_schedule(where)
    s[where].split(where.op.axis[0], factor=3)
    return s, (x, where, best)


def _transpose() -> _Scheduled:
    a = placeholder((7, 10), name="A")
    b = compute((10, 7), lambda i, j: maximum(a[j, i] - 0.37213, 0.0), name="B")
    s = create_schedule(b)
    i, j = b.op.axis
    x, y, x_inner, _ = s[b].tile(i, j, 4, 5)
    s[b].fuse(x, y)
    s[b].unroll(x_inner)
    return s, (a, b)


def _gpu_product() -> _Scheduled:
    a = placeholder((6, 5), name="A")
    b = placeholder((5, 6), name="B")
    k = reduce_axis((0, 5), "k")
    c = compute((6, 6), lambda i, j: sum(a[i, k] * b[k, j], axis=k), name="C")
    s = create_schedule(c)
    local = s.cache_write(c, "local")
    shared = [s.cache_read(t, "shared", [local]) for t in (a, b)]
    i, j = c.op.axis
    y, x, y_inner, x_inner = s[c].tile(i, j, 2, 3)
    tags = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, tag in zip((y, x, y_inner, x_inner), tags, strict=True):
        s[c].bind(loop, thread_axis(tag))
    s[local].compute_at(s[c], x_inner)
    k_outer, _ = s[local].split(local.op.reduce_axis[0], factor=2)
    s[local].reorder(k_outer, *local.op.axis)
    for copy in shared:
        s[copy].compute_at(s[local], k_outer)
        fused = s[copy].fuse(*copy.op.axis)
        rest, thread = s[copy].split(fused, factor=3)
        _, thread_y = s[copy].split(rest, factor=2)
        s[copy].bind(thread, thread_axis("threadIdx.x"))
        s[copy].bind(thread_y, thread_axis("threadIdx.y"))
    return s, (a, b, c)


def _gpu_transpose() -> _Scheduled:
    a = placeholder((5, 6), name="A")
    b = compute((6, 5), lambda i, j: a[j, i] * 1.5, name="B")
    s = create_schedule(b)
    shared = s.cache_read(a, "shared", [b])
    i, j = b.op.axis
    y, x, y_inner, x_inner = s[b].tile(i, j, 3, 3)
    tags = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, tag in zip((y, x, y_inner, x_inner), tags, strict=True):
        s[b].bind(loop, thread_axis(tag))
    s[shared].compute_at(s[b], x)
    for loop, tag in zip(shared.op.axis, tags[2:], strict=True):
        _, inner = s[shared].split(loop, factor=3)
        s[shared].bind(inner, thread_axis(tag))
    return s, (a, b)


_MAKERS: tuple[tuple[str, str, Callable[[], _Scheduled]], ...] = (
    ("product", "llvm", _matmul),
    ("blur", "llvm", _blur),
    ("softmax", "llvm", _softmax),
    ("argmax", "llvm", _argmax),
    ("transpose", "llvm", _transpose),
    ("tiled product", "opencl", _gpu_product),
    ("tiled transpose", "opencl", _gpu_transpose),
)


def subjects() -> list[Subject]:
    """Return all subjects, built anew."""
    return [Subject(name, kind, *make()) for name, kind, make in _MAKERS]
