"""Tensor intrinsics in plain loop IR, and products that they do the blocks of.

Never made: intrinsics that are wrong, or that call functions outside of the loop IR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import refcomp
from refcomp.te.intrin import TensorIntrin
from refcomp.te.tensor import Tensor

PARTS = ("body", "reset", "update")


def block_product(
    rows: int,
    columns: int,
    depth: int,
    dtype: str = "float32",
    parts: tuple[str, ...] = PARTS,
    combine: Callable[..., Any] = refcomp.sum,
) -> TensorIntrin:
    """c[i, j] = sum(a[i, k] * b[k, j]) of a block, or another reduction in the place of the sum."""
    a = refcomp.placeholder((rows, depth), dtype, "a")
    b = refcomp.placeholder((depth, columns), dtype, "b")
    k = refcomp.reduce_axis((0, depth), "k")
    c = refcomp.compute((rows, columns), lambda i, j: combine(a[i, k] * b[k, j], axis=k), name="c")

    def statements(ins: list, outs: list) -> tuple:
        wanted = {"body": (True, True), "reset": (True, False), "update": (False, True)}
        return tuple(_nest(*ins, *outs, *wanted[p]) if p in parts else None for p in PARTS)

    return refcomp.decl_tensor_intrin(c, statements, "gemm")


def _nest(a: Any, b: Any, c: Any, is_reset: bool, is_updated: bool) -> Any:
    (rows, columns), depth = (tuple(dim.value for dim in c.shape)), a.shape[1].value
    ib = refcomp.ir_builder.create()
    x, y, z = (ib.buffer_ptr(view) for view in (a, b, c))
    with ib.for_range(0, rows, name="y") as i, ib.for_range(0, columns, name="x") as j:
        if is_reset:
            z[i, j] = refcomp.const(0, c.dtype)
        if is_updated:
            with ib.for_range(0, depth, name="z") as k:
                z[i, j] = z[i, j] + x[i, k] * y[k, j]
    return ib.get()


def gemv() -> TensorIntrin:
    """z[i] = sum(w[i, k] * x[k]) of 4 x 8 elements, added up in memory of its own."""
    w, x = refcomp.placeholder((4, 8), name="w"), refcomp.placeholder((8,), name="x")
    k = refcomp.reduce_axis((0, 8), "k")
    z = refcomp.compute((4,), lambda i: refcomp.sum(w[i, k] * x[k], axis=k), name="z")

    def statements(ins: list, outs: list) -> Any:
        ib = refcomp.ir_builder.create()
        matrix, vector, result = (ib.buffer_ptr(view) for view in (*ins, *outs))
        total = ib.allocate("float32", 1, name="total", scope="local")
        with ib.for_range(0, 4, name="r") as r:
            total[0] = 0.0
            with ib.for_range(0, 8, name="c") as q:
                total[0] = total[0] + matrix[r, q] * vector[q]
            result[r] = total[0]
        return ib.get()

    return refcomp.decl_tensor_intrin(z, statements, "gemv")


def product(
    n: Any, m: Any, depth: Any, dtype: str = "float32", value: Callable[..., Any] | None = None
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """A, B, C and k of C[i, j] = sum(A[i, k] * B[k, j]), or of `value(A, B, i, j, k)`."""
    a = refcomp.placeholder((n, depth), dtype, "A")
    b = refcomp.placeholder((depth, m), dtype, "B")
    k = refcomp.reduce_axis((0, depth), "k")
    made = value or (lambda a, b, i, j, k: refcomp.sum(a[i, k] * b[k, j], axis=k))
    return a, b, refcomp.compute((n, m), lambda i, j: made(a, b, i, j, k), name="C"), k


def blocked(c: Tensor, k: Any, rows: int, columns: int, depth: int, intrin: TensorIntrin) -> Any:
    """A schedule of the product with the intrinsic on blocks, the reduction outside of it."""
    s = refcomp.create_schedule(c)
    y, x, yi, xi = s[c].tile(*c.op.axis, rows, columns)
    ko, ki = s[c].split(k, depth)
    s[c].reorder(y, x, ko, yi, xi, ki)
    s[c].tensorize(yi, intrin)
    return s
