"""Greatest and least elements along axes, and their indices.

Reference: ONNX ReduceMax, ReduceMin, ArgMax and ArgMin; TVM, topi.argmax.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from refcomp.foundation.dtype import I32, I64, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import EQ, NE, Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.elements import map_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import (
    as_numpy_axis,
    count_of,
    keep_index,
    normalize_axes,
    reduce_along,
    reduction_of_numbers,
)
from refcomp.topi.shapes import Array, require_number
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


@meaning_of(max, pattern="reduction", sample=reduction_of_numbers)
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


@meaning_of(min, pattern="reduction", sample=reduction_of_numbers)
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
    # Two reductions rather than one of pairs: each is an operation on vectors of numbers.
    best = reduce_along(
        data,
        places,
        lambda *index: data[index],
        reducer.max if is_greatest else reducer.min,
        name=f"{name}_value",
        keepdims=keepdims,
    )
    position = _position_of(best, data, places, keepdims, selects_last, name)
    count = count_of(data, places)

    def within(k: Expr) -> Expr:
        # Where a symbolic extent is 0, the identity is the result.
        if not isinstance(count, int):
            k = maths.maximum(k, -1) if selects_last else maths.minimum(k, count - 1)
        return cast(I64, k)

    return map_elements(position, within, name)


def _position_of(
    best: Tensor,
    data: Tensor,
    places: tuple[int, ...],
    keepdims: bool,
    selects_last: bool,
    name: str,
) -> Tensor:
    """Return the first or the last position of the elements that equal the extremum `best`."""
    sizes = extents(data)
    count = count_of(data, places)
    # Narrow positions fill vectors of as many lanes as f32.
    narrow = I32 if isinstance(count, int) and count <= I32.max_value else I64
    none = const(-1, narrow) if selects_last else maths.max_value(narrow)

    def candidate(*index: Expr) -> Expr:
        """Return the position of an element, or one that never wins."""
        position = index[places[0]]
        for place in places[1:]:
            position = position * sizes[place] + index[place]
        x = data[index]
        is_best: Expr = EQ(x, best[best_index(index)])
        if x.dtype.is_float:
            # The extremum is NaN if there is a NaN. Only NaN differs from itself.
            is_best = maths.any(is_best, NE(x, x))
        return maths.select(is_best, cast(narrow, position), none)

    def best_index(index: Sequence[Expr]) -> tuple[Expr, ...]:
        if keepdims:
            return keep_index(index, places)
        return tuple(i for place, i in enumerate(index) if place not in places)

    return reduce_along(
        data,
        places,
        candidate,
        reducer.max if selects_last else reducer.min,
        name=f"{name}_position",
        keepdims=keepdims,
    )


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
