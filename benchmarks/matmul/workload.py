"""f32 matrix products beside numpy's BLAS, one thread each, then as many as there are cores.

One schedule for all: a tile of 12 x 32 elements stays in registers over the whole reduction, which
LLVM does by itself once the tile is unrolled into vectors. `guarded` computes odd sizes as they
are, with guards inside the tiles; `padded` copies the operands into whole tiles first, and the
result out of them, all within the time. Nothing is packed or blocked for caches.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import refcomp
from benchmarks.fresh import call_fresh
from benchmarks.measure import interleave
from benchmarks.report import Row, Work, row_beside
from refcomp.ir.expr import IntImm
from refcomp.te.tensor import Tensor

_CASES = (
    ("512 x 512 x 512", (512, 512, 512), True),
    ("509 x 521 x 515, guarded", (509, 521, 515), False),
    ("509 x 521 x 515, padded", (509, 521, 515), True),
)
_ROWS, _COLUMNS, _LANES = 12, 32, 16


def measure(is_quick: bool) -> list[Row]:
    """A row for each case and number of threads."""
    rows = []
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        for case, size, is_padded in _CASES:
            times = call_fresh(
                time_size, threads=threads, size=size, is_padded=is_padded, is_quick=is_quick
            )
            work = Work(2e-9 * size[0] * size[1] * size[2], "Gflop")
            title = f"{case}, {threads} thread{'s' * (threads > 1)}"
            rows.append(
                row_beside("matmul", title, times["refcomp"], "numpy", times["numpy"], work=work)
            )
    return rows


def time_size(
    size: tuple[int, int, int], is_padded: bool, is_quick: bool
) -> dict[str, list[float]]:
    """Seconds per product of both, after their results were held against each other."""
    n, m, k = size
    rng = np.random.default_rng(0)
    a = rng.standard_normal((n, k), dtype=np.float32)
    b = rng.standard_normal((k, m), dtype=np.float32)
    ours, theirs = np.zeros((n, m), np.float32), np.zeros((n, m), np.float32)
    call = build(n, m, k, is_padded).entry.bind(a, b, ours)
    call()
    np.matmul(a, b, out=theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    return interleave(
        {"refcomp": call, "numpy": lambda: np.matmul(a, b, out=theirs)},
        rounds=3 if is_quick else 15,
        least_s=0.02 if is_quick else 0.1,
    )


def build(n: int, m: int, k: int, is_padded: bool) -> refcomp.runtime.Module:
    """C[n, m] = A[n, k] B[k, m], scheduled."""
    a = refcomp.placeholder((n, k), name="A")
    b = refcomp.placeholder((k, m), name="B")
    rows, columns = (_whole(n, _ROWS), _whole(m, _COLUMNS)) if is_padded else (n, m)
    product = _product(_enlarged(a, (rows, k)), _enlarged(b, (k, columns)))
    c = product
    if (rows, columns) != (n, m):
        c = refcomp.compute((n, m), lambda i, j: product[i, j], name="C")
    schedule = refcomp.create_schedule(c)
    for stage in schedule.stages:
        if stage.op is not product.op and stage.roots:
            _vectorize(schedule[stage.op])
    _tile(schedule[product], product)
    return refcomp.build(schedule, [a, b, c], "llvm", name="matmul")


def _whole(extent: int, factor: int) -> int:
    return -(-extent // factor) * factor


def _enlarged(tensor: Tensor, shape: tuple[int, int]) -> Tensor:
    """`tensor` with zeros behind its rows and columns; itself where it has that shape."""
    rows, columns = tensor.shape
    if all(
        isinstance(dim, IntImm) and dim.value == n
        for dim, n in zip(tensor.shape, shape, strict=True)
    ):
        return tensor
    larger: Tensor = refcomp.compute(
        shape,
        lambda i, j: refcomp.if_then_else(
            refcomp.all(i < rows, j < columns), tensor[i, j], refcomp.const(0.0, tensor.dtype)
        ),
        name=f"{tensor.name}.padded",
    )
    return larger


def _product(a: Tensor, b: Tensor) -> Tensor:
    r = refcomp.reduce_axis((0, a.shape[1]), name="r")
    product: Tensor = refcomp.compute(
        (a.shape[0], b.shape[1]),
        lambda i, j: refcomp.sum(a[i, r] * b[r, j], axis=r),
        name="product",
    )
    return product


def _vectorize(stage: Any) -> None:
    _, lanes = stage.split(stage.op.axis[-1], factor=_LANES)
    stage.vectorize(lanes)


def _tile(stage: Any, product: Tensor) -> None:
    (r,) = product.op.reduce_axis
    outer_i, outer_j, i, j = stage.tile(*product.op.axis, _ROWS, _COLUMNS)
    middle_j, lanes = stage.split(j, factor=_LANES)
    stage.reorder(outer_i, outer_j, r, i, middle_j, lanes)
    stage.parallel(outer_i)
    stage.unroll(i)
    stage.unroll(middle_j)
    stage.vectorize(lanes)
