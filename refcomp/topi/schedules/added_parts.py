"""Sums of products in parts along the depth, so that more groups of threads work at once.

A convolution of a small image has few tiles. A card has hundreds of compute units, of which each
takes a tile. So the groups also share the depth: each group stores the sum of its part. `add_parts`
makes a second kernel. It adds the sums, in order, and computes the operators that follow. The order
does not depend on which group ends first, so results are the same in each run.

Reference: M. Osama et al., "Stream-K: Work-Centric Parallel Decomposition for Dense Matrix-Matrix
Multiplication on the GPU", PPoPP 2023, which calls it the fixed-split decomposition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from refcomp.foundation.dtype import F32
from refcomp.ir import builder
from refcomp.ir.expr import Expr, Var
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import substitute
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te.externs import extern
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import Tensor, thread_axis
from refcomp.topi.schedules.computed_reads import Pointers, as_loads
from refcomp.topi.schedules.matrix_sums import MatrixSum, digits_of, extent_of

_LANES = 4  # f32 of an access of 128 bits
_THREADS = 256  # of a group


def add_parts(found: MatrixSum, parts: Tensor) -> Tensor:
    """Return the output of `found`, computed from the sums of its parts.

    Args:
        found: the sum of products, and what follows it.
        parts: f32 of the shape (parts, rows, columns).
    """
    output = found.output
    inputs = found.inputs_behind

    def statement(ins: list[BufferView], outs: list[BufferView]) -> Stmt:
        ib = builder.create()
        pointers = {
            tensor: ib.buffer_ptr(view)
            for tensor, view in zip(
                (*inputs, parts, output), (*ins, *outs), strict=True
            )
        }
        _write(ib, found, parts, pointers)
        return ib.get()

    made: Tensor = extern(
        output.shape, [*inputs, parts], statement, name=output.name, dtype=output.dtype
    )
    return made


def _write(
    ib: builder.IRBuilder, found: MatrixSum, parts: Tensor, pointers: Pointers
) -> None:
    """Let each thread compute four neighbours of the output."""
    columns = extent_of(found.column)
    vectors = math.prod(map(extent_of, found.rows)) * columns // _LANES
    group = thread_axis((0, -(-vectors // _THREADS)), "blockIdx.x")
    thread = thread_axis((0, _THREADS), "threadIdx.x")
    ib.scope_attr(group, "thread_extent", -(-vectors // _THREADS))
    ib.scope_attr(thread, "thread_extent", _THREADS)
    vector = group.var * _THREADS + thread.var
    width = columns // _LANES
    row = vector // width
    first = vector % width * _LANES
    sums = ib.allocate(F32, (_LANES,), "sums", scope="local")
    count = int(parts.shape[0])
    with ib.if_scope(vector < vectors) if vectors % _THREADS else ib.scope():
        for part in range(count):
            with ib.for_range(0, _LANES, "v", for_type="vectorize") as v:
                one = pointers[parts][const(part, "int64"), row, first + v]
                sums[v] = sums[v] + one if part else one
        at = found.with_single_axes(digits_of(row, found.rows))
        with ib.for_range(0, _LANES, "v", for_type="vectorize") as v:
            at[found.column.var] = first + v
            store_element(found, at, sums[v], pointers)


def store_element(
    found: MatrixSum, at: Mapping[Var, Expr], sums: Expr, pointers: Pointers
) -> None:
    """Store an element of the output of `found`.

    Args:
        found: the sum of products, and what follows it.
        at: the values of the axes of the sum.
        sums: the value of the sum there.
        pointers: the pointers of the output and of the tensors on which it depends.
    """
    sum_op = found.sums.op
    op = found.output.op
    assert isinstance(op, ComputeOp) and isinstance(sum_op, ComputeOp)
    indices = tuple(at[axis.var] for axis in sum_op.axis)
    value = sums
    if op is not sum_op:
        axes = dict(zip((axis.var for axis in op.axis), indices, strict=True))
        body = substitute(op.body[0], axes)
        value = as_loads(body, pointers, {found.sums: sums})
    pointers[found.output][indices] = value
