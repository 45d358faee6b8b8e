"""Sorting along an axis: sort, argsort, topk.

All of them are stable: equal elements keep their order. NaN is greater than all numbers, and zeros
of both signs are equal.
"""

from __future__ import annotations

import math

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.search.ordering import sorted_order, take_along
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    replace_entry,
    require_constant,
    require_index_dtype,
    require_integer,
    require_rank,
)


def sort(data: Tensor, *, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """Sort the elements along an axis.

    NaN comes last in ascending order and first in descending order. An axis without elements gives
    a result without elements.

    An axis of n <= 256 elements takes n * n comparisons, all at once. A longer axis, or one beside
    it, must be constant; it is merged in about n log n steps.

    Args:
        data: numbers of any shape with at least one dimension.
        axis: the axis to sort along; -1 is the last one.
        is_ascend: True to begin with the least element, False with the greatest.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: the axis does not exist, or a long axis stands beside a symbolic extent.

    Reference: TVM, topi.sort; numpy.sort with kind="stable".

    Example::

        >>> A = rc.placeholder((2, 3), name="A")
        >>> a = np.array([[3, 1, 2], [np.nan, 0, -1]], "float32")
        >>> (b,) = rc.oracle.evaluate([rc.topi.sort(A)], {A: a})
        >>> print(b)
        [[ 1.  2.  3.]
         [-1.  0. nan]]
    """
    require_tensor(data, "sort")
    place = normalize_axis(axis, data.ndim, "sort")
    order = sorted_order(data, place, is_ascend)
    return take_along(data, order, place, "sort")


def _sample_sort(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.number_dtype())
    attributes = {"axis": draws.axis(data.ndim), "is_ascend": draws.flag()}
    return Sample((data,), attributes)


@meaning_of(sort, sample=_sample_sort)
def sort_numpy(data: Array, *, axis: int = -1, is_ascend: bool = True) -> Array:
    order = _stable_order_numpy(data, axis, is_ascend)
    return np.take_along_axis(data, order, axis)


def _stable_order_numpy(data: Array, axis: int, is_ascend: bool) -> Array:
    """Return numpy's stable order. Descending, it is that of the reversed axis, reversed."""
    if is_ascend:
        return np.argsort(data, axis=axis, kind="stable")
    reverse = np.argsort(np.flip(data, axis), axis=axis, kind="stable")
    return np.flip(data.shape[axis] - 1 - reverse, axis)


def argsort(
    data: Tensor,
    valid_count: Tensor | None = None,
    *,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Return the positions of the elements along an axis in sorted order.

    The order, its cost and its restrictions are those of `sort`. With `valid_count`, only the first
    elements are sorted; the elements behind them keep their positions.

    Args:
        data: numbers of any shape with at least one dimension.
        valid_count: integers of the shape of `data` without the axis: how many elements are sorted,
            none for a number below 0. None sorts all.
        axis: the axis to sort along; -1 is the last one.
        is_ascend: True to begin with the least element, False with the greatest.
        dtype: the dtype of the positions: int32 or int64.

    Returns:
        A tensor of the shape of `data` that holds positions along the axis, counted from 0.

    Raises:
        UserError: the axis does not exist, a long axis stands beside a symbolic extent, the counts
            have another shape, or the dtype is another one.

    Reference: TVM, topi.argsort and contrib.sort.argsort_nms; numpy.argsort with kind="stable".

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.argsort(A, is_ascend=False)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([2, 9, 2, 5], "float32")}))
        [1 3 0 2]
        >>> N = rc.placeholder((), "int32", name="N")
        >>> C = rc.topi.argsort(A, N)
        >>> feeds = {A: np.array([9, 2, 1, 0], "float32"), N: np.array(2, "int32")}
        >>> print(*rc.oracle.evaluate([C], feeds))
        [1 0 2 3]
    """
    require_tensor(data, "argsort")
    require_index_dtype(dtype, "argsort")
    place = normalize_axis(axis, data.ndim, "argsort")
    keys = data
    if valid_count is not None:
        keys = _only_valid(data, valid_count, place, is_ascend)
    order = sorted_order(keys, place, is_ascend)
    return compute(
        data.shape,
        lambda *index: order[index].astype(dtype),
        name="argsort",
        tag=INJECTIVE,
    )


def _only_valid(
    data: Tensor, valid_count: Tensor, place: int, is_ascend: bool
) -> Tensor:
    """Return the data, with the last value of the order in place of what is not valid.

    The sort is stable, and all valid elements come before the others. So the others stay behind
    valid elements of the same value, and in their own order.
    """
    require_integer(valid_count, "argsort")
    rest = [extent for k, extent in enumerate(extents(data)) if k != place]
    require_rank(valid_count, len(rest), "argsort", "the tensor of counts")
    for extent, wanted in zip(extents(valid_count), rest, strict=True):
        what = "an extent of the counts"
        tensors = (valid_count, data)
        require_extent(extent, wanted, "argsort", what, tensors=tensors)
    last = const(_last_of_order(data.dtype, is_ascend), data.dtype)

    def key(*index: Expr) -> Expr:
        row = (*index[:place], *index[place + 1 :])
        count = valid_count[row]
        # A u64 above i64 would be below 0 in i64. Indices are not below 0.
        wide = "uint64" if str(count.dtype) == "u64" else "int64"
        is_valid = index[place].astype(wide) < count.astype(wide)
        return maths.select(is_valid, data[index], last)

    return compute(data.shape, key, name="keys", tag=INJECTIVE)


def _last_of_order(dtype: DType, is_ascend: bool) -> float:
    if dtype.is_float:
        return math.nan if is_ascend else -math.inf
    return dtype.max_value if is_ascend else dtype.min_value


def _sample_argsort(draws: Draws) -> Sample:
    sample = _sample_sort(draws)
    attributes = {**sample.attributes, "dtype": draws.choice(("int32", "int64"))}
    (data,) = sample.operands
    assert data is not None
    axis = normalize_axis(draws.axis(data.ndim), data.ndim, "argsort")
    attributes["axis"] = axis
    rest = data.shape[:axis] + data.shape[axis + 1 :]
    size = data.shape[axis]
    count = draws.integers(rest, -1, size + 1, draws.choice(("int32", "int64")))
    return Sample((data, draws.choice((None, count))), attributes)


@meaning_of(argsort, sample=_sample_argsort)
def argsort_numpy(
    data: Array,
    valid_count: Array | None = None,
    *,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: str = "int32",
) -> Array:
    if valid_count is None:
        return _stable_order_numpy(data, axis, is_ascend).astype(dtype)
    moved = np.moveaxis(data, axis, -1)
    order = np.broadcast_to(np.arange(moved.shape[-1]), moved.shape).astype(dtype)
    for row in np.ndindex(valid_count.shape):
        valid = moved[row][: max(int(valid_count[row]), 0)]
        order[row][: len(valid)] = _stable_order_numpy(valid, -1, is_ascend)
    return np.moveaxis(order, -1, axis)


def topk(
    data: Tensor,
    *,
    k: int,
    axis: int = -1,
    is_ascend: bool = False,
    dtype: DTypeLike = "int64",
) -> list[Tensor]:
    """Return the k greatest or least elements along an axis, and their positions.

    The results are sorted: the greatest element comes first, or with `is_ascend` the least one. Of
    equal elements, the one with the lower position comes first. NaN is greater than all numbers.
    The cost and the restrictions are those of `sort`.

    Args:
        data: numbers of any shape with at least one dimension.
        k: the number of elements, at least 0 and at most the extent of the axis.
        axis: the axis to search along; -1 is the last one. Its extent is constant.
        is_ascend: False for the greatest elements, True for the least ones.
        dtype: the dtype of the positions: int32 or int64.

    Returns:
        The elements, of the dtype of `data`, and their positions. Both have the shape of `data`
        with k elements along the axis.

    Raises:
        UserError: the axis does not exist or is symbolic, it has less than k elements, or the dtype
            is another one.

    Reference: TVM, topi.topk; ONNX TopK (`is_ascend` is its largest = 0).

    Example::

        >>> A = rc.placeholder((5,), name="A")
        >>> B = rc.topi.topk(A, k=2)
        >>> print(*rc.oracle.evaluate(B, {A: np.array([3, 9, 4, 9, 1], "float32")}))
        [9. 9.] [1 3]
    """
    require_tensor(data, "topk")
    require_index_dtype(dtype, "topk")
    place = normalize_axis(axis, data.ndim, "topk")
    sizes = extents(data)
    size = require_constant(sizes[place], "topk: the extent of the axis")
    if not 0 <= k <= size:
        raise UserError(
            f"topk cannot find {k} of {size} elements",
            remedy=f"give a number of 0 to {size}",
            earlier=[data.declaration()],
        )
    shape = replace_entry(sizes, place, k)
    order = sorted_order(data, place, is_ascend)
    first = compute(shape, lambda *index: order[index], name="first", tag=INJECTIVE)
    values = take_along(data, first, place, "topk")

    def position(*index: Expr) -> Expr:
        return order[index].astype(dtype)

    return [values, compute(shape, position, name="positions", tag=INJECTIVE)]


def _sample_topk(draws: Draws) -> Sample:
    sample = _sample_argsort(draws)
    data = sample.operands[0]
    assert data is not None
    size = data.shape[int(str(sample.attributes["axis"]))]
    return Sample((data,), {**sample.attributes, "k": draws.integer(0, size)})


@meaning_of(topk, pattern="opaque", sample=_sample_topk)
def topk_numpy(
    data: Array,
    *,
    k: int,
    axis: int = -1,
    is_ascend: bool = False,
    dtype: str = "int64",
) -> list[Array]:
    order = _stable_order_numpy(data, axis, is_ascend)
    first = np.take(order, np.arange(k), axis=axis)
    return [np.take_along_axis(data, first, axis), first.astype(dtype)]
