"""Scatter: a copy of a tensor in which places that are read from tensors are updated.

No index is followed out of range: such an update is left out. A negative index counts from the end.
If several updates go to one place, they are applied in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, require_extent, require_tensor
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.scattering import (
    REDUCTIONS,
    Readable,
    Scatter,
    check_reduction,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.search.flat_index import index_at
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    product,
    replace_entry,
    require_constant,
    require_one_dtype,
    require_rank,
    widen,
)


def scatter_elements(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Tensor:
    """Return a copy of `data` with updates along one axis.

    For axis 0 of two, element (indices[i, j], j) becomes updates[i, j], or is combined with it. If
    several updates go to one element, the last one counts, or all are combined.

    Along the other axes, there may be fewer indices than elements: the rest is left as it is.

    An axis of n elements with m updates each takes n * m comparisons, all at once. If that is more
    than 65536 and all extents are constant, the updates are applied one after the other. Only the
    other axes are then divided among threads. Sums of floats round after each update.

    Args:
        data: a tensor of any dtype with at least one dimension.
        indices: i32 or i64, of the shape of `data` except along `axis`, or shorter. A negative
            index counts from the end. An update with an index out of range is left out.
        updates: of the dtype of `data` and the shape of `indices`.
        axis: the axis along which updates move.
        reduction: "none" writes the update. "add", "mul", "min" and "max" combine it with the
            element. NaN is propagated.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: a rank, an extent or a dtype does not fit, the axis does not exist, the reduction
            is unknown, or it combines bools.

    Reference: ONNX ScatterElements; TVM, topi.scatter_elements.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> I, U = rc.placeholder((2,), "int32", name="I"), rc.placeholder((2,), name="U")
        >>> B = rc.topi.scatter_elements(A, I, U, reduction="add")
        >>> feeds = {A: np.ones(4, "float32"), I: np.array([2, -1], "int32")}
        >>> print(*rc.oracle.evaluate([B], {**feeds, U: np.array([5, 7], "float32")}))
        [1. 1. 6. 8.]
    """
    return _scatter_along(data, indices, updates, axis, reduction, "scatter_elements")


def _scatter_along(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: int,
    reduction: str,
    operator: str,
) -> Tensor:
    _check_operands(data, updates, [indices], reduction, operator)
    place = normalize_axis(axis, data.ndim, operator)
    require_rank(indices, data.ndim, operator, "the tensor of indices")
    require_rank(updates, data.ndim, operator, "the tensor of updates")
    sizes = extents(data)
    given = extents(indices)
    for k, extent in enumerate(given):
        what = f"extent {k} of the updates"
        require_extent(extents(updates)[k], extent, operator, what, tensors=(updates,))
    # Axes along which there are fewer updates than elements.
    shorter = [
        k
        for k, extent in enumerate(given)
        if k != place and _is_shorter(extent, sizes[k], operator, (indices, data))
    ]

    def source(number: Expr, index: Sequence[Expr]) -> tuple[Expr, ...]:
        at = list(replace_entry(index, place, number))
        for k in shorter:
            at[k] = maths.maximum(maths.minimum(at[k], as_dim(given[k]) - 1), 0)
        return tuple(at)

    def coordinate(
        read: Sequence[Readable], _place: int, number: Expr, index: Sequence[Expr]
    ) -> Expr:
        found = read[0][source(number, index)].astype("int64")
        for k in shorter:  # out of range: no update goes there
            found = maths.select(index[k] < given[k], found, as_dim(sizes[place]))
        return found

    # Without any row of updates, there is none that could be read.
    count = 0 if 0 in given else given[place]
    return Scatter(
        operator=operator,
        data=data,
        updates=updates,
        indices=(indices,),
        axes=(place,),
        count=count,
        coordinate=coordinate,
        source=source,
        reduction=reduction,
    ).result()


def _is_shorter(
    extent: Extent, size: Extent, operator: str, tensors: Sequence[Tensor]
) -> bool:
    """Return True if updates have fewer rows than the data. UserError if they may have more."""
    if isinstance(extent, int) and isinstance(size, int) and extent < size:
        return True
    what = "an extent of the indices"
    require_extent(extent, size, operator, what, tensors=tensors)
    return False


def _check_operands(
    data: Tensor,
    updates: Tensor,
    indices: Sequence[Tensor],
    reduction: str,
    operator: str,
) -> None:
    require_tensor(data, operator)
    require_tensor(updates, operator)
    require_one_dtype(operator, data, updates)
    check_reduction(reduction, data, operator)
    for tensor in indices:
        require_tensor(tensor, operator)
        if str(tensor.dtype) not in ("i32", "i64"):
            raise UserError(
                f"{operator} cannot read indices of the dtype {tensor.dtype}",
                remedy='convert them first: x[i].astype("int64")',
                earlier=[tensor.declaration()],
            )


def _sample_scatter_elements(draws: Draws) -> Sample:
    operands, axis = _sample_operands_along(draws)
    return Sample(operands, {"axis": axis, "reduction": draws.choice(REDUCTIONS)})


def _sample_operands_along(draws: Draws) -> tuple[tuple[Array, ...], int]:
    data = draws.array(draws.shape(1, 3), draws.number_dtype())
    axis = draws.axis(data.ndim)
    shape = replace_entry(data.shape, axis % data.ndim, draws.extent(0))
    if draws.flag():  # fewer updates along another axis
        shorter = draws.integer(0, data.ndim - 1)
        most = min(shape[shorter], data.shape[shorter])
        shape = replace_entry(shape, shorter, draws.integer(0, most))
    indices = _sample_indices(draws, shape, data.shape[axis])
    return (data, indices, draws.array(shape, str(data.dtype))), axis


def _sample_indices(draws: Draws, shape: Sequence[int], extent: int) -> Array:
    """Return indices of an axis, of which few are out of range."""
    dtype = draws.choice(("int32", "int64"))
    beyond = draws.choice((0, 0, 1))
    return draws.integers(shape, -extent - beyond, max(extent - 1 + beyond, 0), dtype)


@meaning_of(scatter_elements, sample=_sample_scatter_elements)
def scatter_elements_numpy(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Array:
    places = np.indices(indices.shape)
    places[axis % data.ndim] = indices
    return _scattered_numpy(data, tuple(places), updates, reduction)


def _scattered_numpy(
    data: Array, places: Sequence[Array], updates: Array, reduction: str
) -> Array:
    """Return `data` with updates[i] at data[places[0][i], places[1][i], ...].

    An index may be out of range, and the tail of the shape of updates is that of a slice.
    """
    is_inside = np.ones(places[0].shape if places else (), np.bool_)
    for place, size in zip(places, data.shape, strict=False):
        is_inside = is_inside & (place >= -size) & (place < size)
    # Each place as an array of one dimension, so that updates are in order.
    at = tuple(place[is_inside] for place in places)
    # Long doubles, since sums of f64 must not round here in another order than there.
    values = _extended_numpy(updates[is_inside])
    result = _extended_numpy(data)
    if reduction == "none":
        for k, value in enumerate(values):
            result[tuple(place[k] for place in at)] = value
    else:
        with np.errstate(invalid="ignore"):  # of NaN
            _UFUNCS[reduction].at(result, at, values)
    return result.astype(data.dtype)


def _extended_numpy(array: Array) -> Array:
    wide = widen(array)
    return wide.astype(np.longdouble if wide.dtype == np.float64 else wide.dtype)


_UFUNCS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def scatter(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0) -> Tensor:
    """Return a copy of `data` with elements along one axis replaced.

    It is `scatter_elements` without a reduction: of several updates at one place, the last counts.

    Args:
        data: a tensor of any dtype with at least one dimension.
        indices: i32 or i64, of the shape of `data` except along `axis`. An update with an index out
            of range is left out.
        updates: of the dtype of `data` and the shape of `indices`.
        axis: the axis along which updates move.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: a rank, an extent or a dtype does not fit, or the axis does not exist.

    Reference: TVM, topi.scatter; ONNX Scatter.

    Example::

        >>> A, U = rc.placeholder((3,), name="A"), rc.placeholder((2,), name="U")
        >>> I = rc.placeholder((2,), "int32", name="I")
        >>> feeds = {A: np.zeros(3, "float32"), I: np.array([1, 1], "int32")}
        >>> B = rc.topi.scatter(A, I, U)
        >>> print(*rc.oracle.evaluate([B], {**feeds, U: np.array([5, 7], "float32")}))
        [0. 7. 0.]
    """
    return _scatter_along(data, indices, updates, axis, "none", "scatter")


def _sample_along(draws: Draws) -> Sample:
    operands, axis = _sample_operands_along(draws)
    return Sample(operands, {"axis": axis})


@meaning_of(scatter, sample=_sample_along)
def scatter_numpy(
    data: Array, indices: Array, updates: Array, *, axis: int = 0
) -> Array:
    return scatter_elements_numpy(data, indices, updates, axis=axis)


def scatter_add(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0
) -> Tensor:
    """Return a copy of `data` to whose elements along one axis updates are added.

    It is `scatter_elements` with the reduction "add". Floats round after each addition. Integers
    wrap.

    Args:
        data: numbers, in a tensor with at least one dimension.
        indices: i32 or i64, of the shape of `data` except along `axis`. An update with an index out
            of range is left out.
        updates: of the dtype of `data` and the shape of `indices`.
        axis: the axis along which updates move.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: a rank, an extent or a dtype does not fit, or the axis does not exist.

    Reference: TVM, topi.scatter_add; torch.scatter_add.

    Example::

        >>> A, U = rc.placeholder((3,), name="A"), rc.placeholder((2,), name="U")
        >>> I = rc.placeholder((2,), "int32", name="I")
        >>> feeds = {A: np.zeros(3, "float32"), I: np.array([1, 1], "int32")}
        >>> B = rc.topi.scatter_add(A, I, U)
        >>> print(*rc.oracle.evaluate([B], {**feeds, U: np.array([5, 7], "float32")}))
        [ 0. 12.  0.]
    """
    return _scatter_along(data, indices, updates, axis, "add", "scatter_add")


@meaning_of(scatter_add, sample=_sample_along)
def scatter_add_numpy(
    data: Array, indices: Array, updates: Array, *, axis: int = 0
) -> Array:
    return scatter_elements_numpy(data, indices, updates, axis=axis, reduction="add")


def scatter_nd(
    data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none"
) -> Tensor:
    """Return a copy of `data` with slices updated at indices of several axes.

    The last axis of `indices` holds an index of the first q axes of `data`. The slice at
    indices[i] becomes updates[i], or is combined with it. The rules for several updates at
    one place, and the cost, are those of `scatter_elements`.

    Args:
        data: a tensor of any dtype.
        indices: i32 or i64, of shape (..., q), where q is constant and at most the rank of `data`.
            A negative index counts from the end. An update with an index out of range is left out.
        updates: of the dtype of `data`, of shape (..., data.shape[q:]).
        reduction: "none" writes the update. "add", "mul", "min" and "max" combine it with the
            slice. NaN is propagated.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: a rank, an extent or a dtype does not fit, the reduction is unknown, or it
            combines bools.

    Reference: ONNX ScatterND. TVM's topi.scatter_nd has the axis of q first.

    Example::

        >>> A, U = rc.placeholder((2, 2), name="A"), rc.placeholder((1, 2), name="U")
        >>> I = rc.placeholder((1, 1), "int64", name="I")
        >>> feeds = {A: np.zeros((2, 2), "float32"), I: np.array([[1]])}
        >>> B = rc.topi.scatter_nd(A, I, U)
        >>> print(*rc.oracle.evaluate([B], {**feeds, U: np.array([[5, 7]], "float32")}))
        [[0. 0.]
         [5. 7.]]
    """
    _check_operands(data, updates, [indices], reduction, "scatter_nd")
    if not indices.ndim:
        raise UserError(
            "scatter_nd: the tensor of indices has no dimension",
            remedy="give indices of shape (..., q)",
            earlier=[indices.declaration()],
        )
    *batch, last = extents(indices)
    depth = require_constant(last, "scatter_nd: the last extent of the indices")
    if depth > data.ndim:
        raise UserError(
            f"scatter_nd cannot index {data.ndim} dimensions by {depth} numbers",
            remedy="give at most one number for each dimension",
            earlier=[indices.declaration(), data.declaration()],
        )
    _check_updates(data, updates, [*batch, *extents(data)[depth:]], "scatter_nd")

    def coordinate(
        read: Sequence[Readable], place: int, number: Expr, _index: Sequence[Expr]
    ) -> Expr:
        found = read[0][(*index_at(number, batch), as_dim(place))]
        return found.astype("int64")

    return Scatter(
        operator="scatter_nd",
        data=data,
        updates=updates,
        indices=(indices,),
        axes=tuple(range(depth)),
        count=product(batch),
        coordinate=coordinate,
        source=_source_of_slices(batch, depth),
        reduction=reduction,
    ).result()


def _check_updates(
    data: Tensor, updates: Tensor, shape: Sequence[Extent], operator: str
) -> None:
    require_rank(updates, len(shape), operator, "the tensor of updates")
    for k, (extent, wanted) in enumerate(zip(extents(updates), shape, strict=True)):
        what = f"extent {k} of the updates"
        require_extent(extent, wanted, operator, what, tensors=(updates, data))


def _source_of_slices(
    batch: Sequence[Extent], depth: int
) -> Callable[[Expr, Sequence[Expr]], tuple[Expr, ...]]:
    def source(number: Expr, index: Sequence[Expr]) -> tuple[Expr, ...]:
        return (*index_at(number, batch), *index[depth:])

    return source


def _sample_scatter_nd(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 3), draws.number_dtype())
    depth = draws.integer(1, data.ndim)
    batch = draws.shape(0, 2)
    columns = [_sample_indices(draws, batch, n) for n in data.shape[:depth]]
    indices = np.stack(columns, axis=-1).astype(draws.choice(("int32", "int64")))
    updates = draws.array((*batch, *data.shape[depth:]), str(data.dtype))
    return Sample((data, indices, updates), {"reduction": draws.choice(REDUCTIONS)})


@meaning_of(scatter_nd, sample=_sample_scatter_nd)
def scatter_nd_numpy(
    data: Array, indices: Array, updates: Array, *, reduction: str = "none"
) -> Array:
    places = tuple(np.moveaxis(indices, -1, 0))
    return _scattered_numpy(data, places, updates, reduction)


def index_put(
    data: Tensor, values: Tensor, *indices: Tensor, accumulate: bool = False
) -> Tensor:
    """Return a copy of `data` with slices replaced at indices of its first axes.

    It is numpy's data[indices[0], indices[1], ...] = values, or with `accumulate` +=, where each of
    several values at one place is added. The cost is that of `scatter_elements`.

    Args:
        data: a tensor of any dtype.
        values: of the dtype of `data`, of the shape of an index and of the axes without one.
        *indices: i32 or i64, of one shape, for each of the first axes of `data`. A negative
            index counts from the end. A value with an index out of range is left out.
        accumulate: True to add the values, False to write them in their order.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: a rank, an extent or a dtype does not fit, there is no index, or bools are
            accumulated.

    Reference: torch.index_put; TVM, topi.index_put.

    Example::

        >>> A, V = rc.placeholder((2, 2), name="A"), rc.placeholder((2,), name="V")
        >>> I, J = (rc.placeholder((2,), "int64", name=name) for name in "IJ")
        >>> feeds = {A: np.zeros((2, 2), "float32"), I: np.array([0, 1]), J: np.array([1, 0])}
        >>> B = rc.topi.index_put(A, V, I, J)
        >>> print(*rc.oracle.evaluate([B], {**feeds, V: np.array([5, 7], "float32")}))
        [[0. 5.]
         [7. 0.]]
    """
    reduction = "add" if accumulate else "none"
    _check_operands(data, values, indices, reduction, "index_put")
    if not 0 < len(indices) <= data.ndim:
        raise UserError(
            f"index_put cannot index {data.ndim} dimensions by {len(indices)} tensors",
            remedy="give a tensor of indices for each of the first axes",
            earlier=[data.declaration()],
        )
    batch = extents(indices[0])
    depth = len(indices)
    for tensor in indices[1:]:
        require_rank(tensor, len(batch), "index_put", "a tensor of indices")
        for extent, wanted in zip(extents(tensor), batch, strict=True):
            what = "an extent of the indices"
            require_extent(extent, wanted, "index_put", what, tensors=indices)
    _check_updates(data, values, [*batch, *extents(data)[depth:]], "index_put")

    def coordinate(
        read: Sequence[Readable], place: int, number: Expr, _index: Sequence[Expr]
    ) -> Expr:
        return read[place][index_at(number, batch)].astype("int64")

    return Scatter(
        operator="index_put",
        data=data,
        updates=values,
        indices=tuple(indices),
        axes=tuple(range(depth)),
        count=product(batch),
        coordinate=coordinate,
        source=_source_of_slices(batch, depth),
        reduction=reduction,
    ).result()


def _sample_index_put(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 3), draws.number_dtype())
    depth = draws.integer(1, data.ndim)
    batch = draws.shape(0, 2)
    indices = [_sample_indices(draws, batch, n) for n in data.shape[:depth]]
    values = draws.array((*batch, *data.shape[depth:]), str(data.dtype))
    return Sample((data, values, *indices), {"accumulate": draws.flag()})


@meaning_of(index_put, sample=_sample_index_put)
def index_put_numpy(
    data: Array, values: Array, *indices: Array, accumulate: bool = False
) -> Array:
    return _scattered_numpy(data, indices, values, "add" if accumulate else "none")
