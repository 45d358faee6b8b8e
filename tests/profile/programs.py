"""Schedules for the emulated GPU, run with a profile looking on."""

from __future__ import annotations

from typing import Any

import numpy as np

import refcomp as rc
from refcomp.driver.cuda_emulator import cuda_emulator
from refcomp.driver.devices import rocm_emulator
from refcomp.emulator.observers.counting import KernelCounts, Profile
from refcomp.profile.report import ProfileReport, report_of

_TAGS = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")


def transposed(n: int = 64, *, is_naive: bool = True, align: int = 0) -> tuple[Any, list[Any]]:
    """B = A^T by tiles of 32 x 32: reads lie apart, or go by shared memory."""
    a = rc.placeholder((n, n), name="A")
    b = rc.compute((n, n), lambda i, j: a[j, i], name="B")
    s = rc.create_schedule(b)
    tile = None if is_naive else s.cache_read(a, "shared", [b])
    by, bx, ty, tx = s[b].tile(*b.op.axis, 32, 32)
    for axis, tag in zip((by, bx, ty, tx), _TAGS, strict=True):
        s[b].bind(axis, rc.thread_axis(tag))
    if tile is not None:
        s[tile].compute_at(s[b], bx)
        for axis, tag in zip(tile.op.axis, _TAGS[2:], strict=True):
            s[tile].bind(axis, rc.thread_axis(tag))
        if align:
            s[tile].storage_align(tile.op.axis[0], align, 1)
    return s, [a, b]


def product(n: int = 64, m: int = 64, k: int = 32) -> tuple[Any, list[Any]]:
    """C = A B, a thread for each element, straight from global memory."""
    a, b = rc.placeholder((n, k), name="A"), rc.placeholder((k, m), name="B")
    r = rc.reduce_axis((0, k), name="r")
    c = rc.compute((n, m), lambda i, j: rc.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = rc.create_schedule(c)
    by, bx, ty, tx = s[c].tile(*c.op.axis, 4, 64)
    for axis, tag in zip((by, bx, ty, tx), _TAGS, strict=True):
        s[c].bind(axis, rc.thread_axis(tag))
    return s, [a, b, c]


def run(
    schedule: Any,
    args: list[Any],
    *,
    contract: bool = True,
    name: str = "program",
    target: str = "rocm -mcpu=gfx942",
) -> tuple[Any, KernelCounts]:
    """The module, built for the emulated GPU, and what its kernel did in one call."""
    with rc.build_options(contract=contract):
        module = rc.build(schedule, args, target, name=name)
    profile = Profile()
    if target.startswith("rocm"):
        gpu = rocm_emulator("gfx942", profile=profile)
    else:
        gpu = cuda_emulator("sm_90", profile=profile)
    shapes = [tuple(int(extent.value) for extent in arg.shape) for arg in args]
    arrays = [rc.array(np.ones(shape, np.float32), gpu) for shape in shapes]
    module(*arrays)
    (counts,) = profile.kernels
    return module, counts


def report(schedule: Any, args: list[Any], **options: Any) -> ProfileReport:
    """All that is told of it."""
    module, counts = run(schedule, args, **options)
    return report_of(counts, module, schedule)
