"""Indices that are elements of tensors, and how each is brought into range.

An index of any integer dtype is clamped before it is converted, so that it does not wrap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import Extent, extents
from refcomp.te.tensor import ExprLike, Tensor, as_dim
from refcomp.topi.shapes import Array


def clamp_count(count: Expr, greatest: Extent) -> Expr:
    """Return an integer of any dtype as an i64 between 0 and `greatest`, both included."""
    most = as_dim(greatest)
    if count.dtype.min_value == 0:
        # An i64 does not hold each u64; `most` is a u64, too.
        limited = maths.minimum(count.astype("uint64"), most.astype("uint64"))
        return limited.astype("int64")
    limited = maths.minimum(count.astype("int64"), most)
    return maths.maximum(limited, as_dim(0))


def from_end(index: Expr, size: Extent) -> Expr:
    """Return an index of any integer dtype as an i64; a negative one counts from the end.

    The result may still be out of range.
    """
    if index.dtype.min_value == 0:
        # Each u64 that an i64 does not hold is out of range.
        return clamp_count(index, maths.max_value("int64"))
    position = index.astype("int64")
    return maths.select(position < 0, position + as_dim(size), position)


def clamp_index(position: Expr, size: Extent) -> Expr:
    """Return the nearest index of an axis of `size` elements, of which there is at least one."""
    return maths.maximum(maths.minimum(position, as_dim(size) - 1), 0)


def read_existing(
    data: Tensor, index: Sequence[ExprLike], places: Sequence[int]
) -> Expr:
    """Return the element of `data` at `index`, or 0 if an axis at `places` has no elements.

    Args:
        data: the tensor that is read.
        index: its index, which is in range if there are elements.
        places: the axes whose coordinates were brought into range.
    """
    sizes = [extents(data)[place] for place in places]
    nothing = const(0, data.dtype)
    if 0 in sizes:
        return nothing
    element = data[tuple(index)]
    symbols = [size > 0 for size in sizes if not isinstance(size, int)]
    if not symbols:
        return element
    return maths.if_then_else(maths.all(*symbols), element, nothing)


def from_end_numpy(indices: Array, size: int) -> Array:
    """Return each index as an object; a negative one counts from the end."""
    exact = indices.astype(object)  # numpy has no dtype of all u64 and i64
    # Sums of objects without axes are Python's integers, which may not fit into i64.
    moved = np.asarray(exact + size, object)
    return np.where(indices < 0, moved, np.asarray(exact, object))


def clamped_numpy(indices: Array, size: int) -> Array:
    """Return the nearest indices that exist; negative ones count from the end."""
    kept = np.clip(from_end_numpy(indices, size), 0, size - 1)
    return np.asarray(kept).astype(np.int64)
