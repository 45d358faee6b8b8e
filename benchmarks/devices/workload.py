"""Kernels for devices: the cold build of a vector add, and a tiled product of matrices on PoCL.

PoCL compiles in its own time, which is measured by giving pyopencl the same text in a process of
its own; both begin with empty caches and an opened device, and imports are not counted. What is
beyond PoCL's own time is refcomp's. PoCL compiles a kernel's inner part only when it is first
launched, which no row counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import refcomp
from benchmarks.devices.rocm_builds import add_times, build_add, many_times, product_times
from benchmarks.fresh import call_fresh
from benchmarks.matmul.workload import build as build_for_host
from benchmarks.measure import figure_of, interleave, seconds_per_call
from benchmarks.report import Bar, Row, Work, row_beside
from refcomp.building import build
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import create_schedule

_BEYOND = Bar(0.05)
_ROCM = {"vector add": (add_times, Bar(0.25)), "tiled product": (product_times, Bar(0.6))}
_TOGETHER = Bar(1 / 1.7, "ratio")  # two threads beside one
_PLACES = ("fresh process", "same process")
# The product: its size, the tile of a group, the step along k, threads along each side.
_N, _TILE, _STEP, _THREADS = 256, 64, 8, 8


def measure(is_quick: bool) -> list[Row]:
    """Measure builds for OpenCL and for AMD GPUs, then the product beside the host's."""
    count = 3 if is_quick else 15
    rounds = [_opencl_round() for _ in range(count)]
    rows: list[Row] = []
    for place, ours, theirs in zip(
        _PLACES, *map(_transposed, zip(*rounds, strict=True)), strict=True
    ):
        case = f"opencl, cold build of vector add, {place}"
        beyond = [a - b for a, b in zip(ours, theirs, strict=True)]
        rows.append(row_beside("devices", case, ours, "pyopencl, same text", theirs))
        rows.append(Row("devices", f"{case}: beyond PoCL's own", figure_of(beyond), bar=_BEYOND))
    for what, (times_of, bar) in _ROCM.items():
        rocm = _transposed([_with_empty_caches(times_of) for _ in range(count)])
        for place, times in zip(_PLACES, rocm, strict=True):
            case = f"rocm, cold build of {what}, {place}"
            rows.append(Row("devices", case, figure_of(times), bar=bar))
    return [*rows, _many_row(count), _product_row(is_quick)]


def _many_row(count: int) -> Row:
    rounds = [_with_empty_caches(many_times) for _ in range(max(1, count // 5))]
    alone, together = _transposed(rounds)
    case = "rocm, 50 kernels by two threads"
    return row_beside("devices", case, together, "one by one", alone, bar=_TOGETHER)


def _transposed(rounds: Any) -> list[list[float]]:
    return [list(column) for column in zip(*rounds, strict=True)]


def _with_empty_caches(function: Callable[..., Any], **arguments: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="refcomp-bench-") as folder:
        environment = {"REFCOMP_CACHE_DIR": folder, "POCL_CACHE_DIR": f"{folder}/pocl"}
        return call_fresh(function, environment=environment, **arguments)


def _opencl_round() -> tuple[list[float], list[float]]:
    """Return the seconds of refcomp's and of PoCL's builds, each the first one and a later one."""
    ours = _with_empty_caches(opencl_build_times)
    return ours["seconds"], _with_empty_caches(pocl_build_times, texts=ours["texts"])


def opencl_build_times() -> dict[str, Any]:
    """Return the seconds of two builds, and the texts that they passed to PoCL."""
    refcomp.opencl().sync()
    modules: list[Module] = []
    seconds = [
        seconds_per_call(lambda name=name: modules.append(build_add(name, "opencl")))
        for name in ("add", "plus")
    ]
    return {"seconds": seconds, "texts": [m.imported_modules[0].get_source() for m in modules]}


def pocl_build_times(texts: list[str]) -> list[float]:
    """Return the seconds that pyopencl takes to build each text and to make its kernel."""
    import pyopencl  # noqa: PLC0415  (optional)

    device = pyopencl.get_platforms()[0].get_devices()[0]
    context = pyopencl.Context([device])
    pyopencl.CommandQueue(context, device).finish()
    return [
        seconds_per_call(lambda text=text: pyopencl.Program(context, text).build().all_kernels())
        for text in texts
    ]


def _product_row(is_quick: bool) -> Row:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, _N, _N), dtype=np.float32)
    ours, theirs = np.zeros((2, _N, _N), np.float32)
    device = refcomp.opencl()
    arrays = [refcomp.array(x, device) for x in (a, b, ours)]
    on_device = _build_product().entry.bind(*arrays)
    on_host = build_for_host(_N, _N, _N).entry.bind(a, b, theirs)
    times = interleave(
        {"opencl": lambda: (on_device(), device.sync()), "llvm": on_host},
        rounds=3 if is_quick else 15,
        least_s=0.02 if is_quick else 0.1,
    )
    np.testing.assert_allclose(arrays[2].asnumpy(), theirs, rtol=1e-3, atol=1e-3)
    case = f"opencl, {_N} x {_N} x {_N} product in tiles on PoCL"
    work = Work(2e-9 * _N**3, "Gflop")
    return row_beside("devices", case, times["opencl"], "llvm", times["llvm"], work=work)


def _build_product() -> Module:
    """Build a product in which each thread sums 8 x 8 elements of C from tiles in shared memory."""
    a, b = (refcomp.placeholder((_N, _N), name=letter) for letter in "AB")
    r = refcomp.reduce_axis((0, _N), name="r")
    c = refcomp.compute((_N, _N), lambda i, j: refcomp.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = create_schedule(c)
    sums = s.cache_write(c, "local")
    tiles = [s.cache_read(tensor, "shared", [sums]) for tensor in (a, b)]
    by, bx, i, j = s[c].tile(*s[c].op.axis, _TILE, _TILE)
    ty, i = s[c].split(i, nparts=_THREADS)
    tx, j = s[c].split(j, nparts=_THREADS)
    s[c].reorder(by, bx, ty, tx, i, j)
    for axis, tag in ((by, "blockIdx.y"), (bx, "blockIdx.x")):
        s[c].bind(axis, refcomp.thread_axis(tag))
    _bind_threads(s[c], ty, tx)
    s[sums].compute_at(s[c], tx)
    outer, inner = s[sums].split(s[sums].op.reduce_axis[0], factor=_STEP)
    s[sums].reorder(outer, inner, *s[sums].op.axis)
    for tile in tiles:
        s[tile].compute_at(s[sums], outer)
        ty, rest = s[tile].split(s[tile].fuse(*s[tile].op.axis), nparts=_THREADS)
        tx, _ = s[tile].split(rest, nparts=_THREADS)
        _bind_threads(s[tile], ty, tx)
    with refcomp.build_options(contract=True):  # as the host's is built
        module: Module = build(s, [a, b, c], "opencl", name="product")
    return module


def _bind_threads(stage: Any, ty: Any, tx: Any) -> None:
    stage.bind(ty, refcomp.thread_axis("threadIdx.y"))
    stage.bind(tx, refcomp.thread_axis("threadIdx.x"))
