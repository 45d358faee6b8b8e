"""Bisection: the place of each value in a sorted sequence, in one parallel loop over the values."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.ir import builder
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te.extents import extents
from refcomp.te.externs import extern
from refcomp.te.tensor import DTypeLike, Tensor, as_dim
from refcomp.topi.search.comparison import is_less
from refcomp.topi.search.flat_index import index_at
from refcomp.topi.shapes import product

_MOST_HALVINGS = 63  # of a sequence whose length is not known


def bisect(
    sequence: Tensor,
    values: Tensor,
    *,
    right: bool,
    dtype: DTypeLike = "int64",
    length: Tensor | None = None,
    name: str = "bisect",
) -> Tensor:
    """Return for each value the number of elements of a sorted sequence that come before it.

    Args:
        sequence: sorted in ascending order along the last axis, NaN last. It has one dimension,
            or the leading axes of `values`.
        values: of the dtype of `sequence`, of any shape.
        right: True to count elements that are equal, too.
        dtype: of the results.
        length: an i64 tensor of one element, the number of elements of a sequence of one
            dimension that count; None for all.
        name: the name of the stage.
    """
    sizes = extents(values)
    size = extents(sequence)[-1]
    halvings = size.bit_length() if isinstance(size, int) else _MOST_HALVINGS

    def statement(ins: Sequence[BufferView], outs: Sequence[BufferView]) -> Stmt:
        ib = builder.create()
        keys = ib.buffer_ptr(ins[0])
        queries = ib.buffer_ptr(ins[1])
        found = ib.buffer_ptr(outs[0])
        end = as_dim(size) if length is None else ib.buffer_ptr(ins[2])[0]
        with ib.for_range(
            0, product(sizes), name="query", for_type="parallel"
        ) as number:
            index = index_at(number, sizes)
            row = index[:-1] if sequence.ndim > 1 else ()
            value = ib.let("value", queries[index])
            # The answer lies between both bounds.
            bounds = ib.allocate("int64", 2, name="bounds", scope="local")
            bounds[0] = 0
            bounds[1] = end
            with (
                ib.for_range(0, halvings, name="halving"),
                ib.if_scope(bounds[0] < bounds[1]),
            ):
                middle = ib.let("middle", (bounds[0] + bounds[1]) // 2)
                key = keys[(*row, middle)]
                is_before = ~is_less(value, key) if right else is_less(key, value)
                with ib.if_scope(is_before):
                    bounds[0] = middle + 1
                with ib.else_scope():
                    bounds[1] = middle
            found[index] = bounds[0]
        return ib.get()

    inputs = [sequence, values]
    if length is not None:
        inputs.append(length)
    places: Tensor = extern(values.shape, inputs, statement, name=name, dtype=dtype)
    return places
