"""Positions in row-major order, and the indices for which they stand."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import Extent, is_same
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.movement.transform import reshape
from refcomp.topi.shapes import product


def index_at(position: Expr, sizes: Sequence[Extent]) -> tuple[Expr, ...]:
    """Return the index of the element at a row-major position of a tensor.

    Args:
        position: an i64 number of an element, less than the product of `sizes`.
        sizes: the extents of the tensor.

    Example::

        >>> from refcomp.topi.search.flat_index import index_at
        >>> index_at(rc.var("p"), (2, 3))
        (p // 3, p % 3)
    """
    index: list[Expr] = []
    for axis, extent in enumerate(sizes):
        stride = product(sizes[axis + 1 :])
        quotient = position
        if not is_same(stride, 1):
            quotient = maths.floordiv(position, as_dim(stride))
        if axis > 0:
            quotient = maths.floormod(quotient, as_dim(extent))
        index.append(quotient)
    return tuple(index)


def flat(data: Tensor) -> Tensor:
    """Return all elements in row-major order, as a tensor of one dimension."""
    return reshape(data, shape=(-1,))
