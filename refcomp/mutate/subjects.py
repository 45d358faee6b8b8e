"""Small scheduled computations, which together use most of what can go wrong.

Extents are constant, and most factors do not divide them: so guards, masks and tails are needed.
Arguments are scheduled for the host, or for a GPU with shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from refcomp.ir.promotion import const
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.te.maths import exp, if_then_else, maximum, select
from refcomp.te.operation import compute, placeholder
from refcomp.te.reducer import comm_reducer, max, reduce_axis, sum
from refcomp.te.tensor import thread_axis


@dataclass(frozen=True, slots=True)
class Subject:
    """A schedule with its arguments, for targets of `kind`."""

    name: str
    kind: str
    schedule: Schedule
    args: tuple[Any, ...]


def _matmul() -> tuple[Schedule, list[Any]]:
    a, b = placeholder((5, 7), name="A"), placeholder((7, 6), name="B")
    k = reduce_axis((0, 7), "k")
    c = compute((5, 6), lambda i, j: sum(a[i, k] * b[k, j], axis=k), name="C")
    s: Any = create_schedule(c)
    i, j = s[c].op.axis
    outer, inner = s[c].split(j, factor=4)
    k_outer, k_inner = s[c].split(k, factor=3)
    s[c].reorder(i, outer, k_outer, k_inner, inner)
    s[c].vectorize(inner)
    s[c].unroll(k_inner)
    s[c].parallel(i)
    return s, [a, b, c]


def _blur() -> tuple[Schedule, list[Any]]:
    a = placeholder((6, 9), name="A")

    def padded(i: Any, j: Any) -> Any:
        return if_then_else((j >= 1) & (j < 10), a[i, j - 1], 0.0)

    p = compute((6, 11), padded, name="P")
    b = compute(
        (6, 9), lambda i, j: p[i, j] * 0.25 + p[i, j + 1] * 0.5 + p[i, j + 2] * 0.12345
    )
    s: Any = create_schedule(b)
    j = s[b].op.axis[1]
    outer, inner = s[b].split(j, factor=4)
    s[p].compute_at(s[b], outer)
    s[b].vectorize(inner)
    return s, [a, b]


def _softmax() -> tuple[Schedule, list[Any]]:
    x = placeholder((3, 6), name="X")
    k, k_sum = reduce_axis((0, 6), "k"), reduce_axis((0, 6), "k")
    most = compute((3,), lambda i: max(x[i, k], axis=k), name="most")
    power = compute((3, 6), lambda i, j: exp(x[i, j] - most[i]), name="power")
    total = compute((3,), lambda i: sum(power[i, k_sum], axis=k_sum), name="total")
    y = compute((3, 6), lambda i, j: power[i, j] / total[i], name="Y")
    s: Any = create_schedule(y)
    for stage in (most, power, total):
        s[stage].compute_at(s[y], s[y].op.axis[0])
    return s, [x, y]


def _argmax() -> tuple[Schedule, list[Any]]:
    x = placeholder((4, 7), name="X")
    k = reduce_axis((0, 7), "k")

    def combine(a: Any, b: Any) -> Any:
        better = (a[1] > b[1]) | ((a[1] == b[1]) & (a[0] < b[0]))
        return select(better, a[0], b[0]), select(better, a[1], b[1])

    argmax = comm_reducer(
        combine, lambda i, v: (const(2**31 - 1, i), const(float("-inf"), v)), "argmax"
    )
    where, best = compute(
        (4,), lambda i: argmax((k.var.astype("int32"), x[i, k]), axis=k)
    )
    s: Any = create_schedule(where)
    s[where].split(s[where].op.axis[0], factor=3)
    return s, [x, where, best]


def _transpose() -> tuple[Schedule, list[Any]]:
    a = placeholder((7, 10), name="A")
    b = compute((10, 7), lambda i, j: maximum(a[j, i] - 0.37213, 0.0), name="B")
    s: Any = create_schedule(b)
    x, y, x_inner, _ = s[b].tile(*s[b].op.axis, 4, 5)
    s[b].fuse(x, y)
    s[b].unroll(x_inner)
    return s, [a, b]


def _gpu_product() -> tuple[Schedule, list[Any]]:
    a, b = placeholder((6, 5), name="A"), placeholder((5, 6), name="B")
    k = reduce_axis((0, 5), "k")
    c = compute((6, 6), lambda i, j: sum(a[i, k] * b[k, j], axis=k), name="C")
    s: Any = create_schedule(c)
    local = s.cache_write(c, "local")
    shared = [s.cache_read(t, "shared", [local]) for t in (a, b)]
    y, x, y_inner, x_inner = s[c].tile(*s[c].op.axis, 2, 3)
    tags = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, tag in zip((y, x, y_inner, x_inner), tags, strict=True):
        s[c].bind(loop, thread_axis(tag))
    s[local].compute_at(s[c], x_inner)
    k_outer, _ = s[local].split(s[local].op.reduce_axis[0], factor=2)
    s[local].reorder(k_outer, *s[local].op.axis)
    for copy in shared:
        s[copy].compute_at(s[local], k_outer)
        fused = s[copy].fuse(*s[copy].op.axis)
        rest, thread = s[copy].split(fused, factor=3)
        _, thread_y = s[copy].split(rest, factor=2)
        s[copy].bind(thread, thread_axis("threadIdx.x"))
        s[copy].bind(thread_y, thread_axis("threadIdx.y"))
    return s, [a, b, c]


def _gpu_transpose() -> tuple[Schedule, list[Any]]:
    a = placeholder((5, 6), name="A")
    b = compute((6, 5), lambda i, j: a[j, i] * 1.5, name="B")
    s: Any = create_schedule(b)
    shared = s.cache_read(a, "shared", [b])
    y, x, y_inner, x_inner = s[b].tile(*s[b].op.axis, 3, 3)
    tags = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, tag in zip((y, x, y_inner, x_inner), tags, strict=True):
        s[b].bind(loop, thread_axis(tag))
    s[shared].compute_at(s[b], x)
    for loop, tag in zip(s[shared].op.axis, tags[2:], strict=True):
        _, inner = s[shared].split(loop, factor=3)
        s[shared].bind(inner, thread_axis(tag))
    return s, [a, b]


_MADE: tuple[tuple[str, str, Callable[[], tuple[Schedule, list[Any]]]], ...] = (
    ("product", "llvm", _matmul),
    ("blur", "llvm", _blur),
    ("softmax", "llvm", _softmax),
    ("argmax", "llvm", _argmax),
    ("transpose", "llvm", _transpose),
    ("tiled product", "opencl", _gpu_product),
    ("tiled transpose", "opencl", _gpu_transpose),
)


def subjects() -> list[Subject]:
    """All of them, made anew."""
    return [Subject(name, kind, *_frozen(make())) for name, kind, make in _MADE]


def _frozen(made: tuple[Schedule, list[Any]]) -> tuple[Schedule, tuple[Any, ...]]:
    return made[0], tuple(made[1])
