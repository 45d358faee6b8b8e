"""The peak of a core: the most floating-point operations a second, measured on registers alone.

The kernel is refcomp's own. It adds x[u] * y to `_SUMS` registers of f32, `_STEPS` times. Two units
with a latency of four cycles need eight independent chains of multiply-adds; these are more and fit
in 16 registers with y. Each step rounds, so nothing can be moved out of the loop.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import refcomp
from refcomp.topi.schedules.vector_registers import vector_registers

_SUMS, _LANES, _STEPS = 12, vector_registers().lanes(4), 40_000
PEAK_GFLOP = 2e-9 * _SUMS * _LANES * _STEPS  # of one call


def bind_peak() -> Callable[[], object]:
    """Return a call that does `PEAK_GFLOP` on one thread. Its result is checked first."""
    x = np.full((_SUMS, _LANES), 0.5, np.float32)
    y, sums = np.full(_LANES, 0.25, np.float32), np.zeros((_SUMS, _LANES), np.float32)
    call = _build().entry.bind(x, y, sums)
    call()
    np.testing.assert_array_equal(sums, _STEPS * 0.125)
    return call


def _build() -> refcomp.runtime.Module:
    x = refcomp.placeholder((_SUMS, _LANES), name="x")
    y = refcomp.placeholder((_LANES,), name="y")
    k = refcomp.reduce_axis((0, _STEPS), name="k")
    result = refcomp.compute(
        (_SUMS, _LANES), lambda u, lane: refcomp.sum(x[u, lane] * y[lane], axis=k), name="result"
    )
    schedule = refcomp.create_schedule(result)
    sums = schedule.cache_write(result, "local")
    schedule[sums].reorder(*sums.op.reduce_axis, *sums.op.axis)
    for tensor in (sums, result):
        unit, lane = tensor.op.axis
        schedule[tensor].unroll(unit)
        schedule[tensor].vectorize(lane)
    with refcomp.build_options(contract=True):
        return refcomp.build(schedule, [x, y, result], "llvm", name="fma_peak")
