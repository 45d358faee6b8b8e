"""f32 matrix products beside numpy's BLAS, one thread each, then as many as there are cores.

The schedule tiles rows and columns and unrolls within the tile. It is what this schedule language
can say; it keeps no accumulators in registers and packs nothing, as BLAS does.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import refcomp
from benchmarks.fresh import call_fresh
from benchmarks.measure import interleave
from benchmarks.report import Row, Work, row_beside

_SIZES = ((512, 512, 512), (509, 521, 515))
_ROWS, _COLUMNS, _LANES, _STEPS = 4, 64, 16, 4


def measure(is_quick: bool) -> list[Row]:
    """A row for each size and number of threads."""
    rows = []
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        for size in _SIZES:
            times = call_fresh(
                time_size, threads=threads, n=size[0], m=size[1], k=size[2], is_quick=is_quick
            )
            case = f"{size[0]} x {size[1]} x {size[2]}, {threads} thread{'s' * (threads > 1)}"
            work = Work(2e-9 * size[0] * size[1] * size[2], "Gflop")
            rows.append(
                row_beside("matmul", case, times["refcomp"], "numpy", times["numpy"], work=work)
            )
    return rows


def time_size(n: int, m: int, k: int, is_quick: bool) -> dict[str, list[float]]:
    """Seconds per product of both, after their results were held against each other."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((n, k), dtype=np.float32)
    b = rng.standard_normal((k, m), dtype=np.float32)
    ours, theirs = np.zeros((n, m), np.float32), np.zeros((n, m), np.float32)
    call = build(n, m, k).entry.bind(a, b, ours)
    call()
    np.matmul(a, b, out=theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    return interleave(
        {"refcomp": call, "numpy": lambda: np.matmul(a, b, out=theirs)},
        rounds=3 if is_quick else 15,
        least_s=0.02 if is_quick else 0.1,
    )


def build(n: int, m: int, k: int) -> refcomp.runtime.Module:
    """C[n, m] = A[n, k] B[k, m], scheduled."""
    a = refcomp.placeholder((n, k), name="A")
    b = refcomp.placeholder((k, m), name="B")
    r = refcomp.reduce_axis((0, k), name="r")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, r] * b[r, j], axis=r), name="C")
    return refcomp.build(_schedule(c, r), [a, b, c], "llvm", name="matmul")


def _schedule(c: Any, r: Any) -> refcomp.Schedule:
    schedule = refcomp.create_schedule(c)
    stage = schedule[c]
    outer_i, outer_j, i, j = stage.tile(*c.op.axis, _ROWS, _COLUMNS)
    middle_j, lanes = stage.split(j, factor=_LANES)
    outer_r, inner_r = stage.split(r, factor=_STEPS)
    stage.reorder(outer_i, outer_j, outer_r, i, middle_j, inner_r, lanes)
    stage.vectorize(lanes)
    stage.unroll(inner_r)
    stage.parallel(outer_i)
    return schedule
