"""Operators that add, remove and reorder axes: squeeze, expand_dims, stack, swap_axes, moveaxis.

They take tensors of any dtype and keep each element to the bit. Symbolic extents are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, is_same, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import ExprLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.rearrange import (
    distinct_axes,
    one_operand_of,
    rearrange,
    some_axes,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, normalize_axis, require_one_dtype, require_rank


def squeeze(data: Tensor, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """Remove axes of extent 1.

    Args:
        data: a tensor of any dtype.
        axis: the axes to remove, each of the constant extent 1. None removes all such axes.

    Returns:
        A tensor of the remaining axes.

    Raises:
        UserError: an axis does not exist, is named twice, or has another extent than 1.

    Reference: ONNX Squeeze; numpy.squeeze.

    Example::

        >>> A = rc.placeholder((1, 3, 1), "int32", name="A")
        >>> rc.topi.squeeze(A, axis=-1).shape, rc.topi.squeeze(A).shape
        ((1, 3), (3,))
    """
    require_tensor(data, "squeeze")
    sizes = extents(data)
    if axis is None:
        removed = {place for place, size in enumerate(sizes) if is_same(size, 1)}
    else:
        removed = set(distinct_axes(axis, data.ndim, "squeeze"))
    for place in sorted(removed):
        require_extent(
            sizes[place], 1, "squeeze", f"the extent of axis {place}", tensors=[data]
        )
    kept = [place for place in range(data.ndim) if place not in removed]

    def source(index: tuple[Expr, ...]) -> list[ExprLike]:
        whole: list[ExprLike] = [0] * data.ndim
        for place, i in zip(kept, index, strict=True):
            whole[place] = i
        return whole

    return rearrange(data, [sizes[place] for place in kept], source, "squeeze")


def _sample_squeeze(draws: Draws) -> Sample:
    shape = [draws.choice((1, 1, extent)) for extent in draws.shape()]
    data = draws.array(shape, draws.number_dtype())
    ones = [place for place, extent in enumerate(shape) if extent == 1]
    some = tuple(ones[k] for k in draws.order(len(ones))[: draws.integer(0, 2)])
    axes = draws.choice((None, some, some[0] if some else None))
    return Sample((data,), {} if axes is None else {"axis": axes})


@meaning_of(squeeze, sample=_sample_squeeze, pattern="injective")
def squeeze_numpy(data: Array, *, axis: int | Sequence[int] | None = None) -> Array:
    if axis is None or isinstance(axis, int):
        return np.squeeze(data, axis)
    return np.squeeze(data, tuple(axis))


def expand_dims(data: Tensor, *, axis: int | Sequence[int]) -> Tensor:
    """Insert axes of extent 1.

    Args:
        data: a tensor of any dtype.
        axis: the positions of the inserted axes in the result; -1 is its last axis.

    Raises:
        UserError: a position does not exist in the result, or is named twice.

    Reference: ONNX Unsqueeze; numpy.expand_dims.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> rc.topi.expand_dims(A, axis=0).shape, rc.topi.expand_dims(A, axis=(0, -1)).shape
        ((1, 3), (1, 3, 1))
    """
    require_tensor(data, "expand_dims")
    count = 1 if isinstance(axis, int) else len(axis)
    rank = data.ndim + count
    inserted = distinct_axes(axis, rank, "expand_dims")
    shape = list[Extent](extents(data))
    for place in sorted(inserted):
        shape.insert(place, 1)

    def source(index: tuple[Expr, ...]) -> list[Expr]:
        return [i for place, i in enumerate(index) if place not in inserted]

    return rearrange(data, shape, source, "expand_dims")


def _sample_expand_dims(draws: Draws) -> Sample:
    data = one_operand_of(draws, 0, 3).operands[0]
    assert data is not None
    count = draws.integer(0, 2)
    rank = data.ndim + count
    axes = tuple(axis - draws.choice((0, rank)) for axis in draws.order(rank)[:count])
    return Sample((data,), {"axis": axes[0] if count == 1 else axes})


@meaning_of(expand_dims, sample=_sample_expand_dims, pattern="injective")
def expand_dims_numpy(data: Array, *, axis: int | Sequence[int]) -> Array:
    return np.expand_dims(data, axis if isinstance(axis, int) else tuple(axis))


def stack(*tensors: Tensor, axis: int = 0) -> Tensor:
    """Join tensors of one shape along an axis that is added.

    Args:
        *tensors: one or more tensors of one dtype and one shape.
        axis: the position of the added axis in the result; -1 is its last axis.

    Raises:
        UserError: a dtype, rank or extent differs, or the axis does not exist in the result.

    Reference: numpy.stack; ONNX ConcatFromSequence with new_axis = 1.

    Example::

        >>> A, B = (rc.placeholder((2,), "int32", name=name) for name in "AB")
        >>> a, b = np.array([1, 2], "int32"), np.array([3, 4], "int32")
        >>> print(*rc.oracle.evaluate([rc.topi.stack(A, B, axis=1)], {A: a, B: b}))
        [[1 3]
         [2 4]]
    """
    if not tensors:
        raise UserError("stack has no tensors to join", remedy="give one or more")
    first = tensors[0]
    require_tensor(first, "stack")
    sizes = extents(first)
    for number, other in enumerate(tensors):
        require_rank(other, first.ndim, "stack", f"operand {number}")
        require_one_dtype("stack", first, other)
        for place, extent in enumerate(extents(other)):
            what = f"extent {place} of operand {number}"
            require_extent(extent, sizes[place], "stack", what, tensors=[first, other])
    place = normalize_axis(axis, first.ndim + 1, "stack")
    shape = (*sizes[:place], len(tensors), *sizes[place:])

    def element(*index: Expr) -> Expr:
        inner = (*index[:place], *index[place + 1 :])
        value: Expr = tensors[-1][inner]
        for number in range(len(tensors) - 2, -1, -1):
            is_own = index[place] == number
            value = maths.if_then_else(is_own, tensors[number][inner], value)
        return value

    return compute(shape, element, name="stack", tag=INJECTIVE)


def _sample_stack(draws: Draws) -> Sample:
    shape = draws.shape(0, 3)
    dtype = draws.number_dtype()
    parts = [draws.array(shape, dtype) for _ in range(draws.integer(1, 3))]
    return Sample(tuple(parts), {"axis": draws.axis(len(shape) + 1)})


# An anchor, since each element of a fused reader would choose among all parts.
@meaning_of(stack, sample=_sample_stack)
def stack_numpy(*arrays: Array, axis: int = 0) -> Array:
    return np.stack(arrays, axis)


def swap_axes(data: Tensor, *, axis1: int, axis2: int) -> Tensor:
    """Exchange two axes.

    Args:
        data: a tensor of any dtype.
        axis1: an axis; -1 is the last one.
        axis2: the axis with which it is exchanged. It may be the same one.

    Raises:
        UserError: an axis does not exist.

    Reference: numpy.swapaxes; MXNet SwapAxis.

    Example::

        >>> A = rc.placeholder((2, 3, 4), name="A")
        >>> rc.topi.swap_axes(A, axis1=0, axis2=-1).shape
        (4, 3, 2)
    """
    require_tensor(data, "swap_axes")
    first = normalize_axis(axis1, data.ndim, "swap_axes")
    second = normalize_axis(axis2, data.ndim, "swap_axes")
    order = list(range(data.ndim))
    order[first] = second
    order[second] = first
    return _permuted(data, order, "swap_axes")


def _permuted(data: Tensor, order: Sequence[int], name: str) -> Tensor:
    """Return `data` with its axis order[k] as axis k."""
    sizes = extents(data)
    places = [order.index(k) for k in range(data.ndim)]
    return rearrange(
        data,
        [sizes[axis] for axis in order],
        lambda index: [index[place] for place in places],
        name,
    )


def _sample_swap_axes(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.number_dtype())
    axes = {"axis1": draws.axis(data.ndim), "axis2": draws.axis(data.ndim)}
    return Sample((data,), axes)


@meaning_of(swap_axes, sample=_sample_swap_axes, pattern="injective")
def swap_axes_numpy(data: Array, *, axis1: int, axis2: int) -> Array:
    return np.swapaxes(data, axis1, axis2)


def moveaxis(
    data: Tensor, *, source: int | Sequence[int], destination: int | Sequence[int]
) -> Tensor:
    """Move axes to other positions; the remaining axes keep their order.

    Args:
        data: a tensor of any dtype.
        source: the axes to move; -1 is the last one.
        destination: the position of each of them in the result.

    Raises:
        UserError: an axis does not exist, is named twice, or lacks a destination.

    Reference: numpy.moveaxis.

    Example::

        >>> A = rc.placeholder((2, 3, 4), name="A")
        >>> rc.topi.moveaxis(A, source=0, destination=-1).shape
        (3, 4, 2)
    """
    require_tensor(data, "moveaxis")
    moved = distinct_axes(source, data.ndim, "moveaxis")
    targets = distinct_axes(destination, data.ndim, "moveaxis")
    if len(moved) != len(targets):
        raise UserError(
            f"moveaxis cannot move {len(moved)} axes to {len(targets)} positions",
            remedy="give a destination for each axis",
        )
    order = [axis for axis in range(data.ndim) if axis not in moved]
    # From the first position on, so that each axis is inserted where it stays.
    for target, axis in sorted(zip(targets, moved, strict=True)):
        order.insert(target, axis)
    return _permuted(data, order, "moveaxis")


def _sample_moveaxis(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.number_dtype())
    source = some_axes(draws, data.ndim)
    destination = draws.order(data.ndim)[: len(source)]
    if len(source) == 1 and draws.flag():
        return Sample((data,), {"source": source[0], "destination": destination[0]})
    return Sample((data,), {"source": source, "destination": destination})


@meaning_of(moveaxis, sample=_sample_moveaxis, pattern="injective")
def moveaxis_numpy(
    data: Array, *, source: int | Sequence[int], destination: int | Sequence[int]
) -> Array:
    return np.moveaxis(data, source, destination)
