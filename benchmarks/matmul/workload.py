"""f32 matrix products beside numpy's BLAS and beside the core's peak, on one thread and on all.

The schedule is topi's for the host. Multiply-adds are fused, by licence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

import refcomp
from benchmarks.fma_peak import PEAK_GFLOP, bind_peak
from benchmarks.fresh import call_fresh
from benchmarks.measure import interleave
from benchmarks.report import Bar, Row, Work, row_beside
from refcomp.runtime.host.threads import set_thread_count
from refcomp.te.tensor import Tensor

_EVEN, _ODD = Bar(1 / 0.92, of="ratio"), Bar(1 / 0.88, of="ratio")  # time at the peak over ours
_CASES = (
    ((512, 512, 512), _EVEN),
    ((1024, 1024, 1024), _EVEN),
    ((1000, 1001, 999), _ODD),
    ((509, 521, 515), _ODD),
)


def measure(is_quick: bool) -> list[Row]:
    """Two rows for each case, beside numpy and the peak or, on several threads, one thread."""
    rows = []
    cores = len(os.sched_getaffinity(0))
    for threads in sorted({1, cores}):
        for size, bar in _CASES:
            times = call_fresh(time_size, threads=threads, size=size, is_quick=is_quick)
            work = Work(2e-9 * size[0] * size[1] * size[2], "Gflop")
            title = f"{' x '.join(map(str, size))}, {threads} thread{'s' * (threads > 1)}"
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
                        bar=_at_once(threads),
                    )
                )
    return rows


def _at_once(threads: int) -> Bar:
    """Return the bar for threads: 95 % of linear speed-up, which is 1.9 for two threads."""
    return Bar(1 / (0.95 * threads), of="ratio")


def at_peak(times: Mapping[str, Sequence[float]], work: Work) -> list[float]:
    """Return the seconds that `work` would take at the core's peak, as measured in each round."""
    return [seconds * work.amount / PEAK_GFLOP for seconds in times["peak"]]


def time_size(size: tuple[int, int, int], is_quick: bool) -> dict[str, list[float]]:
    """Return the seconds per product of refcomp and of its peer, after comparing their results.

    The seconds of refcomp on one thread, and of a call of `bind_peak`, are measured beside them.
    """
    n, m, k = size
    rng = np.random.default_rng(0)
    a = rng.standard_normal((n, k), dtype=np.float32)
    b = rng.standard_normal((k, m), dtype=np.float32)
    ours, theirs = np.zeros((n, m), np.float32), np.zeros((n, m), np.float32)
    call = build(n, m, k).entry.bind(a, b, ours)
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


def build(n: int, m: int, k: int) -> refcomp.runtime.Module:
    """C[n, m] = A[n, k] B[k, m], scheduled and compiled."""
    with refcomp.build_options(contract=True):
        return refcomp.build(*describe(n, m, k), "llvm", name="matmul")


def describe(n: int, m: int, k: int) -> tuple[refcomp.Schedule, list[Tensor]]:
    """Return the schedule and its arguments."""
    a = refcomp.placeholder((n, k), name="A")
    b = refcomp.placeholder((k, m), name="B")
    c = refcomp.topi.matmul(a, b)
    return refcomp.topi.schedule_llvm([c]), [a, b, c]
