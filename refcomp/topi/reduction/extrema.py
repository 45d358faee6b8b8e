"""Greatest and least elements along axes, and their indices.

Reference: ONNX ReduceMax, ReduceMin, ArgMax and ArgMin; TVM, topi.argmax.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from refcomp.foundation.dtype import I64, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import EQ, NE, Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.elements import map_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import (
    as_numpy_axis,
    count_of,
    insert_axes,
    normalize_axes,
    reduce_along,
    reduced_shape,
    reduction_of_numbers,
)
from refcomp.topi.shapes import Array, extents, require_number
from refcomp.topi.tags import REDUCTION


def _least(dtype: np.dtype) -> float | int:
    kind = as_dtype(dtype)
    return -math.inf if kind.is_float else kind.min_value


def _greatest(dtype: np.dtype) -> float | int:
    kind = as_dtype(dtype)
    return math.inf if kind.is_float else kind.max_value


def max(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the maximum of the elements along axes.

    NaN propagates. Without elements, the result is the least value of the dtype: minus infinity for
    floats.

    Args:
        data: a tensor of floats or integers, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of numbers, or an axis does not exist or is named twice.

    Reference: TVM topi.max; ONNX ReduceMax; numpy.max, which refuses to reduce no elements.

    Example::

        >>> A = rc.placeholder((2, 3), "float32", name="A")
        >>> B = rc.topi.max(A, axis=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 5, 3], [4, -2, 6]], "float32")}))
        [5. 6.]
    """
    require_number(data, "max")
    return reduce_along(
        data,
        normalize_axes(axis, data.ndim, "max"),
        lambda *index: data[index],
        reducer.max,
        name="max",
        keepdims=keepdims,
    )


@meaning_of(max, sample=reduction_of_numbers)
def max_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    result = np.max(
        data,
        axis=as_numpy_axis(axis),
        keepdims=keepdims,
        initial=_least(data.dtype),
    )
    return np.asarray(result, data.dtype)


def min(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the minimum of the elements along axes.

    NaN propagates. Without elements, the result is the greatest value of the dtype: infinity for
    floats.

    Args:
        data: a tensor of floats or integers, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of numbers, or an axis does not exist or is named twice.

    Reference: TVM topi.min; ONNX ReduceMin; numpy.min, which refuses to reduce no elements.

    Example::

        >>> A = rc.placeholder((2, 3), "float32", name="A")
        >>> B = rc.topi.min(A, axis=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 5, 3], [4, -2, 6]], "float32")}))
        [ 1. -2.]
    """
    require_number(data, "min")
    return reduce_along(
        data,
        normalize_axes(axis, data.ndim, "min"),
        lambda *index: data[index],
        reducer.min,
        name="min",
        keepdims=keepdims,
    )


@meaning_of(min, sample=reduction_of_numbers)
def min_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    result = np.min(
        data,
        axis=as_numpy_axis(axis),
        keepdims=keepdims,
        initial=_greatest(data.dtype),
    )
    return np.asarray(result, data.dtype)


def _index_of_best(
    data: Tensor,
    axis: int | None,
    *,
    keepdims: bool,
    selects_last: bool,
    is_greatest: bool,
    name: str,
) -> Tensor:
    """Return the index of the greatest or least element along an axis, or in the whole tensor."""
    require_number(data, name)
    places = normalize_axes(axis, data.ndim, name)
    sizes = extents(data)
    if 0 in (sizes[place] for place in places):
        raise UserError(
            f"{name} cannot choose among no elements",
            remedy="give a tensor with elements along the axis",
            earlier=[data.declaration()],
        )
    if not places:
        return compute(sizes, lambda *index: const(0, I64), name=name, tag=REDUCTION)
    axes = {place: reduce_axis(sizes[place], f"k{place}") for place in places}
    best = reducer.comm_reducer(
        _better(selects_last, is_greatest),
        _identity(selects_last, is_greatest),
        name=name,
    )

    def element(*index: Expr) -> tuple[Expr, ...]:
        whole = insert_axes(index, axes, data.ndim, keepdims)
        position: Expr = const(0, I64)
        for place in places:
            position = position * sizes[place] + axes[place].var
        return tuple(best((position, data[whole]), axis=list(axes.values())))

    shape = reduced_shape(sizes, places, keepdims)
    indices, _ = compute(shape, element, name=f"{name}_pair", tag=REDUCTION)
    count = count_of(data, places)
    # Where a symbolic extent is 0, the identity is the result.
    return map_elements(
        indices,
        lambda k: k if isinstance(count, int) else maths.minimum(k, count - 1),
        name,
    )


def _better(selects_last: bool, is_greatest: bool) -> Callable[..., tuple[Expr, Expr]]:
    """Return the combiner of two pairs of an index and a value."""

    def better(a: Sequence[Expr], b: Sequence[Expr]) -> tuple[Expr, Expr]:
        (left, x), (right, y) = a, b
        exceeds = x > y if is_greatest else x < y
        equals: Expr = EQ(x, y)
        precedes = left > right if selects_last else left < right
        if x.dtype.is_float:
            # Only NaN differs from itself.
            exceeds = maths.any(exceeds, maths.all(NE(x, x), EQ(y, y)))
            equals = maths.any(equals, maths.all(NE(x, x), NE(y, y)))
        wins = maths.any(exceeds, maths.all(equals, precedes))
        return maths.select(wins, left, right), maths.select(wins, x, y)

    return better


def _identity(
    selects_last: bool, is_greatest: bool
) -> Callable[[DTypeLike, DTypeLike], tuple[Expr, Expr]]:
    def identity(index: DTypeLike, value: DTypeLike) -> tuple[Expr, Expr]:
        worst = maths.min_value(value) if is_greatest else maths.max_value(value)
        return (const(-1, index) if selects_last else maths.max_value(index)), worst

    return identity


def _sample_index(draws: Draws) -> Sample:
    data = draws.array(draws.shape(least=1), draws.number_dtype())
    axis = draws.axis(data.ndim) if data.ndim and draws.flag() else None
    attributes = {
        "axis": axis,
        "keepdims": draws.flag(),
        "select_last_index": draws.flag(),
    }
    return Sample((data,), attributes)


def _numpy_index(
    find: Callable[..., Array],
    data: Array,
    axis: int | None,
    keepdims: bool,
    selects_last: bool,
) -> Array:
    if not selects_last:
        return np.asarray(find(data, axis=axis, keepdims=keepdims), np.int64)
    # The first one of the reversed elements is the last one.
    mirrored = find(np.flip(data, axis), axis=axis, keepdims=keepdims)
    size = data.size if axis is None else data.shape[axis]
    return np.asarray(size - 1 - mirrored, np.int64)


def argmax(
    data: Tensor,
    *,
    axis: int | None = None,
    keepdims: bool = False,
    select_last_index: bool = False,
) -> Tensor:
    """Return the index of the greatest element along an axis.

    A NaN counts as greater than all numbers. Of equal elements, the first one is chosen, or the
    last one on request. If a symbolic extent is 0 at run time, the index is
    -1.

    Args:
        data: a tensor of floats or integers.
        axis: the axis along which indices count; a negative one counts from the last. By default,
            indices count the elements of the whole tensor in row-major order.
        keepdims: True to keep the reduced axis with extent 1.
        select_last_index: True to choose the last one of equal elements.

    Returns:
        A tensor of i64.

    Raises:
        UserError: `data` is not a tensor of numbers, an axis does not exist, or the indexed extent
            is 0.

    Reference: TVM topi.argmax; ONNX ArgMax; numpy.argmax.

    Example::

        >>> A = rc.placeholder((2, 3), "int32", name="A")
        >>> B = rc.topi.argmax(A, axis=1)
        >>> C = rc.topi.argmax(A, axis=1, select_last_index=True)
        >>> print(*rc.oracle.evaluate([B, C], {A: np.array([[1, 5, 5], [4, 2, 2]], "int32")}))
        [1 0] [2 0]
    """
    return _index_of_best(
        data,
        axis,
        keepdims=keepdims,
        selects_last=select_last_index,
        is_greatest=True,
        name="argmax",
    )


@meaning_of(argmax, sample=_sample_index)
def argmax_numpy(
    data: Array,
    *,
    axis: int | None = None,
    keepdims: bool = False,
    select_last_index: bool = False,
) -> Array:
    return _numpy_index(np.argmax, data, axis, keepdims, select_last_index)


def argmin(
    data: Tensor,
    *,
    axis: int | None = None,
    keepdims: bool = False,
    select_last_index: bool = False,
) -> Tensor:
    """Return the index of the least element along an axis.

    A NaN counts as less than all numbers. Of equal elements, the first one is chosen, or the last
    one on request. If a symbolic extent is 0 at run time, the index is
    -1.

    Args:
        data: a tensor of floats or integers.
        axis: the axis along which indices count; a negative one counts from the last. By default,
            indices count the elements of the whole tensor in row-major order.
        keepdims: True to keep the reduced axis with extent 1.
        select_last_index: True to choose the last one of equal elements.

    Returns:
        A tensor of i64.

    Raises:
        UserError: `data` is not a tensor of numbers, an axis does not exist, or the indexed extent
            is 0.

    Reference: TVM topi.argmin; ONNX ArgMin; numpy.argmin.

    Example::

        >>> A = rc.placeholder((2, 3), "int32", name="A")
        >>> B = rc.topi.argmin(A, axis=1)
        >>> C = rc.topi.argmin(A, axis=1, select_last_index=True)
        >>> print(*rc.oracle.evaluate([B, C], {A: np.array([[1, 5, 5], [4, 2, 2]], "int32")}))
        [0 1] [0 2]
    """
    return _index_of_best(
        data,
        axis,
        keepdims=keepdims,
        selects_last=select_last_index,
        is_greatest=False,
        name="argmin",
    )


@meaning_of(argmin, sample=_sample_index)
def argmin_numpy(
    data: Array,
    *,
    axis: int | None = None,
    keepdims: bool = False,
    select_last_index: bool = False,
) -> Array:
    return _numpy_index(np.argmin, data, axis, keepdims, select_last_index)
