"""The product of matrices on an AMD GPU, beside rocBLAS and the most that the card can do.

Each group brings a tile of both matrices to shared memory, and each thread adds up 8 x 8 elements.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import refcomp
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.hip.info import HipInfo
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import Schedule, create_schedule

TILE = 128
_STEP, _THREADS, _LANES = 8, 16, 4

# Operations on f32 of one multiprocessor in a clock, multiply-adds as two, without matrix cores: by
# AMD's white papers and data sheets. HIP counts pairs of compute units from gfx10 on.
_FLOPS_PER_CLOCK = {
    **dict.fromkeys(("gfx900", "gfx906", "gfx908", "gfx90a"), 128),
    "gfx942": 256,
    "gfx1030": 2 * 128,
    **dict.fromkeys(("gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201"), 2 * 256),
}
_PLACES = ("librocblas.so", *(f"librocblas.so.{major}" for major in range(12, 0, -1)))
_NO_TRANSPOSE = 111


def peak_flops(info: HipInfo) -> float | None:
    """Return the f32 operations a second at the card's clock; None if the card is not listed."""
    per_clock = _FLOPS_PER_CLOCK.get(info.arch)
    return None if per_clock is None else float(per_clock * info.multiprocessors * info.clock)


def build_product(n: int, target: str) -> Module:
    """C = A B for n x n matrices of f32; n is a multiple of TILE."""
    a, b = (refcomp.placeholder((n, n), name=letter) for letter in "AB")
    k = refcomp.reduce_axis((0, n), name="k")
    c = refcomp.compute((n, n), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = create_schedule(c)
    _tile(s, a, b, c)
    with refcomp.build_options(contract=True):
        module: Module = refcomp.build(s, [a, b, c], target, name="product")
    return module


def _tile(s: Schedule, a: Any, b: Any, c: Any) -> None:
    sums = s.cache_write(c, "local")
    tiles = [s.cache_read(tensor, "shared", [sums]) for tensor in (a, b)]
    by, bx, i, j = s[c].tile(*s[c].op.axis, TILE, TILE)
    ty, i = s[c].split(i, nparts=_THREADS)
    tx, j = s[c].split(j, nparts=_THREADS)
    s[c].reorder(by, bx, ty, tx, i, j)
    _bind(s[c], by, bx, "blockIdx")
    _bind(s[c], ty, tx, "threadIdx")
    s[c].vectorize(s[c].split(j, factor=_LANES)[1])
    s[sums].compute_at(s[c], tx)
    outer, inner = s[sums].split(s[sums].op.reduce_axis[0], factor=_STEP)
    s[sums].reorder(outer, inner, *s[sums].op.axis)
    for axis in s[sums].op.axis:
        s[sums].unroll(axis)
    for tile in tiles:
        s[tile].compute_at(s[sums], outer)
        rest, lanes = s[tile].split(s[tile].fuse(*s[tile].op.axis), factor=_LANES)
        ty, rest = s[tile].split(rest, nparts=_THREADS)
        tx, _ = s[tile].split(rest, nparts=_THREADS)
        _bind(s[tile], ty, tx, "threadIdx")
        s[tile].vectorize(lanes)


def _bind(stage: Any, y: Any, x: Any, tag: str) -> None:
    stage.bind(y, refcomp.thread_axis(f"{tag}.y"))
    stage.bind(x, refcomp.thread_axis(f"{tag}.x"))


class RocBlas:
    """rocBLAS' product of f32 matrices, on the default stream. OSError where it is not there."""

    def __init__(self) -> None:
        self._library = _load()
        address, number, size = ctypes.c_void_p, ctypes.POINTER(ctypes.c_float), ctypes.c_int
        matrix = [address, size]
        product = [address, *[ctypes.c_int] * 5, number, *matrix, *matrix, number, *matrix]
        for name, types in (
            ("rocblas_create_handle", [ctypes.POINTER(address)]),
            ("rocblas_destroy_handle", [address]),
            ("rocblas_sgemm", product),
        ):
            function = getattr(self._library, name)
            function.argtypes, function.restype = types, ctypes.c_int
        self._handle = address()
        self._call("rocblas_create_handle", self._handle)

    def product(self, a: NDArray, b: NDArray, c: NDArray) -> None:
        """Queue C = A B. It takes columns one after the other: C' = B' A'."""
        n, one, zero = a.shape[0], ctypes.c_float(1), ctypes.c_float(0)
        sizes = (_NO_TRANSPOSE, _NO_TRANSPOSE, n, n, n)
        factors = (one, b.address, n, a.address, n, zero, c.address, n)
        self._call("rocblas_sgemm", self._handle, *sizes, *factors)

    def close(self) -> None:
        """Give its handle back."""
        self._call("rocblas_destroy_handle", self._handle)

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(self._library, name)(*args)
        if status:
            raise RuntimeError(f"{name} returned {status}")


def _load() -> ctypes.CDLL:
    for name in _candidates():
        with suppress(OSError):
            return ctypes.CDLL(name)
    raise OSError(f"no rocBLAS: sought {', '.join(_candidates())}")


def _candidates() -> Iterator[str]:
    for root in filter(None, (os.environ.get("ROCM_PATH"), "/opt/rocm")):
        yield os.path.join(root, "lib", _PLACES[0])
    yield from _PLACES
