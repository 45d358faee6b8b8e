"""The peaks of this machine, measured: operations and bytes a second.

Both kernels are refcomp's own, and are checked before they are timed.

*Operations*: the kernel adds x[u] * y[v] to a register of f32 for each u and v, `_STEPS` times. Two
units with a latency of four cycles need eight independent chains of multiply-adds. These are more,
and with x and y they fit in the registers. Operands in memory would not do: if the stack is not
aligned to a vector, such loads take longer than the sums. Each step rounds, so that nothing can be
moved out of the loop.

*Bytes*: the triad a = b + s * c of STREAM (J. McCalpin, "Memory Bandwidth and Machine Balance in
Current High Performance Computers", 1995), on arrays that are larger than the caches. It counts 12
bytes an element, as STREAM does. Processors may also read what is overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refcomp.building import build
from refcomp.foundation.errors import CompilerBug
from refcomp.foundation.options import build_options
from refcomp.foundation.target import Target, as_target
from refcomp.ir.promotion import const
from refcomp.runtime.arrays.ndarray import empty
from refcomp.runtime.device import cpu
from refcomp.runtime.host.threads import thread_count
from refcomp.runtime.module import Module
from refcomp.runtime.timing import seconds_of, without_collection
from refcomp.schedule.schedule import create_schedule
from refcomp.te.operation import compute, placeholder
from refcomp.te.reducer import reduce_axis
from refcomp.te.reducer import sum as te_sum
from refcomp.topi.schedules.vector_registers import has_fma, vector_registers

_MANY_REGISTERS = 32
_X, _Y = (5, 4) if vector_registers().count >= _MANY_REGISTERS else (3, 3)
_LANES, _STEPS = vector_registers().lanes(4), 400_000
FMA_GFLOP = 2e-9 * _X * _Y * _LANES * _STEPS  # of one thread in one call
_ROUNDS = 20

# Bytes of one array of the triad.
_LEAST_ARRAY = 64 << 20
_MOST_ARRAY = 512 << 20
_BLOCK = 1 << 14  # elements of an iteration that threads share


@dataclass(frozen=True, slots=True)
class Peaks:
    """The most that a machine does.

    Attributes:
        gflops: operations on f32, in 10^9 a second.
        gbytes: bytes to and from memory, in 10^9 a second.
        threads: the greatest number of threads that were tried.
    """

    gflops: float
    gbytes: float
    threads: int


def measure_peaks(target: Target | str = "llvm") -> Peaks:
    """Return the peaks of this machine, which takes a second or two.

    Args:
        target: what to compile the kernels for: one of the host.
    """
    threads = thread_count()
    chosen = as_target(target)
    # One thread does more than all, if other programs keep the processor busy.
    gflops = max(
        FMA_GFLOP * count / _best_of(bind_fma(count, chosen))
        for count in sorted({1, threads})
    )
    elements = _triad_elements()
    triad = _best_of(bind_triad(elements, chosen))
    return Peaks(gflops, 12e-9 * elements / triad, threads)


def _best_of(call: Callable[[], None]) -> float:
    """Return the least seconds of a call. The peak is what nothing disturbed."""
    call()
    with without_collection():
        return min(seconds_of(call, cpu(), 1) for _ in range(_ROUNDS))


def bind_fma(threads: int = 1, target: Target | str = "llvm") -> Callable[[], None]:
    """Return a call that does `FMA_GFLOP` on each of some threads. Its result is checked first."""
    x = np.full((threads, _X, _LANES), 0.5, np.float32)
    y = np.full((_Y, _LANES), 0.25, np.float32)
    sums = np.zeros((threads, _X, _Y, _LANES), np.float32)
    call = _build_fma(threads, target).entry.bind(x, y, sums)
    call()
    _check(bool((sums == _STEPS * 0.125).all()), "multiply-adds")
    return call


def _build_fma(threads: int, target: Target | str) -> Module:
    x = placeholder((threads, _X, _LANES), name="x")
    y = placeholder((_Y, _LANES), name="y")
    k = reduce_axis((0, _STEPS), name="k")
    result = compute(
        (threads, _X, _Y, _LANES),
        lambda t, u, v, lane: te_sum(x[t, u, lane] * y[v, lane], axis=k),
        name="result",
    )
    schedule = create_schedule(result)
    sums = schedule.cache_write(result, "local")
    thread, *_ = result.op.axis
    schedule[sums].compute_at(schedule[result], thread)
    schedule[sums].reorder(*sums.op.reduce_axis, *sums.op.axis)
    for tensor in (sums, result):
        _, u, v, lane = tensor.op.axis
        schedule[tensor].unroll(u)
        schedule[tensor].unroll(v)
        schedule[tensor].vectorize(lane)
    if threads > 1:
        schedule[result].parallel(thread)
    with build_options(contract=has_fma(target)):
        return build(schedule, [x, y, result], target, name="fma_peak")


def bind_triad(elements: int, target: Target | str = "llvm") -> Callable[[], None]:
    """Return a call of the triad on arrays of f32. Its result is checked first.

    Args:
        elements: of each array, a multiple of 16384.
        target: what to compile for.
    """
    b = placeholder((elements,), name="b")
    c = placeholder((elements,), name="c")
    a = compute((elements,), lambda i: b[i] + const(3.0, "float32") * c[i], "a")
    schedule = create_schedule(a)
    outer, inner = schedule[a].split(a.op.axis[0], factor=_BLOCK)
    _, lanes = schedule[a].split(inner, factor=_LANES)
    schedule[a].vectorize(lanes)
    schedule[a].parallel(outer)
    module = build(schedule, [b, c, a], target, name="triad")
    arrays = [empty((elements,), "float32") for _ in range(3)]
    for array, value in zip(arrays, (1.0, 2.0, 0.0), strict=True):
        array.numpy()[...] = value
    call = module.entry.bind(*arrays)
    call()
    _check(bool((arrays[2].numpy() == 7.0).all()), "the triad")
    return call


def _triad_elements() -> int:
    try:
        cache = os.sysconf("SC_LEVEL3_CACHE_SIZE")
    except (ValueError, OSError):  # another operating system
        cache = 0
    size = min(max(2 * cache, _LEAST_ARRAY), _MOST_ARRAY)
    return size // 4 // _BLOCK * _BLOCK


def _check(is_right: bool, what: str) -> None:
    if not is_right:
        raise CompilerBug(f"the kernel that measures {what} computes something else")
