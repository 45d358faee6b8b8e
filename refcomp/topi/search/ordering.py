"""The sorted positions along an axis.

Short axes are sorted by ranks. The rank of an element is the number of elements that precede it, so
all ranks are computed at once, and a pure te compute suffices. An axis of n elements costs n * n
comparisons. Long axes are merged (merge_sort.py).

Reference: D. E. Knuth, The Art of Computer Programming 3, section 5.2, comparison counting.
"""

from __future__ import annotations

import math

from refcomp.ir.expr import Expr
from refcomp.te import maths, reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.movement.transform import reshape
from refcomp.topi.search.comparison import precedes
from refcomp.topi.search.merge_sort import merged_order
from refcomp.topi.shapes import replace_entry, require_constant
from refcomp.topi.tags import REDUCTION

# The longest axis that is sorted by ranks. A merge costs a launch for each doubling.
LONGEST_RANKED_AXIS = 256


def sorted_order(data: Tensor, place: int, is_ascend: bool) -> Tensor:
    """Return the positions along axis `place` in sorted order; equal elements keep theirs.

    Returns:
        An i32 tensor of the shape of `data`: element k along the axis is the position in `data` of
        the element that is number k in sorted order.
    """
    sizes = extents(data)
    size = sizes[place]
    is_long = isinstance(size, int) and size > LONGEST_RANKED_AXIS
    if is_long and 0 not in sizes:
        return _merged(data, place, is_ascend)
    return _ranked(data, place, is_ascend)


def take_along(data: Tensor, order: Tensor, place: int, name: str) -> Tensor:
    """Return the elements of `data` whose positions along axis `place` are in `order`."""

    def element(*index: Expr) -> Expr:
        position = order[index].astype("int64")
        return data[replace_entry(index, place, position)]

    return compute(order.shape, element, name=name, tag=INJECTIVE)


def _ranked(data: Tensor, place: int, is_ascend: bool) -> Tensor:
    size = extents(data)[place]
    j = reduce_axis(size, "j")
    i = reduce_axis(size, "i")

    def is_before(*index: Expr) -> Expr:
        own = data[index]
        other = data[replace_entry(index, place, j.var)]
        # Of equal elements, the earlier one comes first.
        precedes_own = maths.select(
            j.var < index[place],
            ~precedes(own, other, is_ascend),
            precedes(other, own, is_ascend),
        )
        return reducer.sum(precedes_own.astype("int32"), axis=j)

    rank = compute(data.shape, is_before, name="rank", tag=REDUCTION)

    def position(*index: Expr) -> Expr:
        has_rank = rank[replace_entry(index, place, i.var)] == index[place].astype(
            "int32"
        )
        found = maths.select(has_rank, i.var.astype("int32"), 0)
        return reducer.sum(found, axis=i)

    return compute(data.shape, position, name="order", tag=REDUCTION)


def _merged(data: Tensor, place: int, is_ascend: bool) -> Tensor:
    """Return the order along a long axis, which is the last one of a matrix for the merges."""
    what = (
        f"an extent beside an axis of more than {LONGEST_RANKED_AXIS} sorted elements"
    )
    sizes = tuple(require_constant(extent, what) for extent in extents(data))
    others = (*sizes[:place], *sizes[place + 1 :])
    size = sizes[place]

    def moved(*index: Expr) -> Expr:
        return data[(*index[:place], index[-1], *index[place:-1])]

    last = compute((*others, size), moved, name="keys", tag=INJECTIVE)
    keys = reshape(last, shape=(math.prod(others), size))
    order = reshape(merged_order(keys, is_ascend), shape=(*others, size))

    def moved_back(*index: Expr) -> Expr:
        return order[(*index[:place], *index[place + 1 :], index[place])]

    return compute(sizes, moved_back, name="order", tag=INJECTIVE)
