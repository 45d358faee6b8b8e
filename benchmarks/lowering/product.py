"""A matrix product whose panels, tiles and registers are scheduled by hand.

B is copied into panels. A tile of 6 rows of sums stays in registers over the whole reduction, and
panels are shared among threads. A panel is as wide as a tile: 16 columns with AVX2, 64 with
AVX-512.
"""

from __future__ import annotations

from typing import Any

import refcomp
from refcomp.ir.expr import Expr
from refcomp.te.tensor import Tensor
from refcomp.topi.schedules.vector_registers import vector_registers

_REGISTERS = vector_registers()
_ROWS, _LANES = 6, _REGISTERS.lanes(4)
_COLUMNS = _LANES * (_REGISTERS.count // 8)  # so that the sums take three quarters of the registers


def describe_product(n: int, m: int, k: int) -> tuple[refcomp.Schedule, list[Tensor]]:
    """Return the schedule and its arguments: A, n x k, B, k x m, and C, n x m, of f32."""
    a = refcomp.placeholder((n, k), name="A")
    b = refcomp.placeholder((k, m), name="B")
    panels = _panels(b)
    c = _product(a, panels, m)
    schedule = refcomp.create_schedule(c)
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


def _product(a: Tensor, panels: Tensor, columns: int) -> Tensor:
    r = refcomp.reduce_axis((0, a.shape[1]), name="r")

    def term(i: Expr, j: Expr) -> Any:
        return a[i, r] * panels[j // _COLUMNS, r, j % _COLUMNS]

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
