"""f32 matrix products beside numpy's BLAS and beside the core's peak, on one thread and on all.

One schedule for all sizes: B is copied into panels, within the time; a tile of 6 rows of sums
stays in registers over the whole reduction; panels are shared among threads. A panel is as wide as
a tile: 16 columns with AVX2, 64 with AVX-512. Multiply-adds are fused, by licence. `unpacked` is
the same tile straight from B, and so its odd sizes have guards in every tile, which the compiler
must divide off.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import refcomp
from benchmarks.fma_peak import PEAK_GFLOP, bind_peak
from benchmarks.fresh import call_fresh
from benchmarks.measure import interleave
from benchmarks.report import Bar, Row, Work, row_beside
from refcomp.ir.expr import Expr
from refcomp.runtime.host.threads import set_thread_count
from refcomp.te.tensor import Tensor
from refcomp.topi.schedules.vector_registers import vector_registers

_REGISTERS = vector_registers()
_ROWS, _LANES = 6, _REGISTERS.lanes(4)
_COLUMNS = _LANES * (_REGISTERS.count // 8)  # so that the sums take three quarters of the registers
_EVEN, _ODD = Bar(1 / 0.92, of="ratio"), Bar(1 / 0.88, of="ratio")  # time at the peak over ours
_CASES = (
    ("512 x 512 x 512", (512, 512, 512), True, _EVEN),
    ("1024 x 1024 x 1024", (1024, 1024, 1024), True, _EVEN),
    ("1000 x 1001 x 999", (1000, 1001, 999), True, _ODD),
    ("509 x 521 x 515, unpacked", (509, 521, 515), False, None),
)


def measure(is_quick: bool) -> list[Row]:
    """Two rows for each case, beside numpy and the peak or, on several threads, one thread."""
    rows = []
    cores = len(os.sched_getaffinity(0))
    for threads in sorted({1, cores}):
        for case, size, is_packed, bar in _CASES:
            times = call_fresh(
                time_size, threads=threads, size=size, is_packed=is_packed, is_quick=is_quick
            )
            work = Work(2e-9 * size[0] * size[1] * size[2], "Gflop")
            title = f"{case}, {threads} thread{'s' * (threads > 1)}"
            ours = times["refcomp"]
            rows.append(row_beside("matmul", title, ours, "numpy", times["numpy"], work=work))
            if threads == 1:
                rows.append(
                    row_beside(
                        "matmul", title, ours, "peak", at_peak(times, work), work=work, bar=bar
                    )
                )
            else:
                rows.append(
                    row_beside(
                        "matmul",
                        title,
                        ours,
                        "1 thread",
                        times["serial"],
                        bar=_at_once(threads) if is_packed else None,
                    )
                )
    return rows


def _at_once(threads: int) -> Bar:
    """Return the bar for threads: 95 % of linear speed-up, which is 1.9 for two threads."""
    return Bar(1 / (0.95 * threads), of="ratio")


def at_peak(times: Mapping[str, Sequence[float]], work: Work) -> list[float]:
    """Return the seconds that `work` would take at the core's peak, as measured in each round."""
    return [seconds * work.amount / PEAK_GFLOP for seconds in times["peak"]]


def time_size(
    size: tuple[int, int, int], is_packed: bool, is_quick: bool
) -> dict[str, list[float]]:
    """Return the seconds per product of refcomp and of its peer, after comparing their results.

    The seconds of refcomp on one thread, and of a call of `bind_peak`, are measured beside them.
    """
    n, m, k = size
    rng = np.random.default_rng(0)
    a = rng.standard_normal((n, k), dtype=np.float32)
    b = rng.standard_normal((k, m), dtype=np.float32)
    ours, theirs = np.zeros((n, m), np.float32), np.zeros((n, m), np.float32)
    call = build(n, m, k, is_packed).entry.bind(a, b, ours)
    call()
    np.matmul(a, b, out=theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)

    def call_serial() -> None:
        set_thread_count(1)
        call()
        set_thread_count(None)

    return interleave(
        {
            "refcomp": call,
            "serial": call_serial,
            "numpy": lambda: np.matmul(a, b, out=theirs),
            "peak": bind_peak(),
        },
        rounds=3 if is_quick else 15,
        least_s=0.02 if is_quick else 0.1,
    )


def build(n: int, m: int, k: int, is_packed: bool) -> refcomp.runtime.Module:
    """C[n, m] = A[n, k] B[k, m], scheduled and compiled."""
    with refcomp.build_options(contract=True):
        return refcomp.build(*describe(n, m, k, is_packed), "llvm", name="matmul")


def describe(
    n: int, m: int, k: int, is_packed: bool = True
) -> tuple[refcomp.Schedule, list[Tensor]]:
    """Return the schedule and its arguments."""
    a = refcomp.placeholder((n, k), name="A")
    b = refcomp.placeholder((k, m), name="B")
    panels = _panels(b)
    c = _product(a, panels if is_packed else b, m)
    schedule = refcomp.create_schedule(c)
    if is_packed:
        _schedule_panels(schedule[panels], panels)
    _tile(schedule, c)
    return schedule, [a, b, c]


def _panels(b: Tensor) -> Tensor:
    """Return `b` in panels of whole tiles, with zeros behind its last column."""
    k, m = b.shape

    def element(p: Expr, r: Expr, j: Expr) -> Expr:
        inside = p * _COLUMNS + j < m
        return refcomp.if_then_else(inside, b[r, p * _COLUMNS + j], refcomp.const(0.0, b.dtype))

    count = (m + _COLUMNS - 1) // _COLUMNS
    panels: Tensor = refcomp.compute((count, k, _COLUMNS), element, name="panels")
    return panels


def _product(a: Tensor, b: Tensor, columns: int) -> Tensor:
    """Return the product with `b`, a matrix or its panels."""
    r = refcomp.reduce_axis((0, a.shape[1]), name="r")

    def term(i: Expr, j: Expr) -> Any:
        if len(b.shape) == 2:
            return a[i, r] * b[r, j]
        return a[i, r] * b[j // _COLUMNS, r, j % _COLUMNS]

    product: Tensor = refcomp.compute(
        (a.shape[0], columns), lambda i, j: refcomp.sum(term(i, j), axis=r), name="C"
    )
    return product


def _schedule_panels(stage: Any, panels: Tensor) -> None:
    vectors, lanes = stage.split(panels.op.axis[2], factor=_LANES)
    stage.unroll(vectors)
    stage.vectorize(lanes)
    stage.parallel(panels.op.axis[0])


def _tile(schedule: refcomp.Schedule, c: Tensor) -> None:
    """Split the loops into panels outside and rows inside.

    The sums of a tile are local and their loops unrolled, so that LLVM keeps them in registers.
    """
    sums = schedule.cache_write(c, "local")
    outer_i, outer_j, i, j = schedule[c].tile(*c.op.axis, _ROWS, _COLUMNS)
    schedule[c].reorder(outer_j, outer_i, i, j)
    schedule[c].parallel(outer_j)
    schedule[sums].compute_at(schedule[c], outer_i)
    for tensor, row, column in ((c, i, j), (sums, *sums.op.axis)):
        vectors, lanes = schedule[tensor].split(column, factor=_LANES)
        if tensor is sums:
            schedule[sums].reorder(*sums.op.reduce_axis, row, vectors, lanes)
        schedule[tensor].unroll(row)
        schedule[tensor].unroll(vectors)
        schedule[tensor].vectorize(lanes)
