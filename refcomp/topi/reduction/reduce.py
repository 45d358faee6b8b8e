"""The builder of reductions along axes: sums, extrema, norms and their kin.

Axes are an int, several ints, or None for all. The result lacks these axes, or has the extent 1 in
their places if `keepdims`. Sums and products of f16 and bf16 are accumulated in f32, so that no
partial sum overflows, and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refcomp.foundation.dtype import F32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast
from refcomp.te.extents import Extent, extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import ExprLike, IterVar, Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.elements import map_elements
from refcomp.topi.shapes import normalize_axis, product, require_number
from refcomp.topi.tags import REDUCTION

Axes = int | Sequence[int] | None
# Reduces an expression over axes, as `refcomp.te.reducer.sum` does.
Combine = Callable[[Expr, list[IterVar]], Expr]


def normalize_axes(axis: Axes, rank: int, operator: str) -> tuple[int, ...]:
    """Return the axes that `axis` names, counted from 0, in ascending order.

    Raises:
        UserError: an axis does not exist, or is named twice.
    """
    if axis is None:
        return tuple(range(rank))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    places = [normalize_axis(place, rank, operator) for place in given]
    if len(set(places)) < len(places):
        raise UserError(
            f"{operator} names an axis twice: {given}", remedy="name each axis once"
        )
    return tuple(sorted(places))


def accumulator_of(dtype: DType) -> DType:
    """Return the dtype in which values of `dtype` are summed."""
    return F32 if dtype.is_float and dtype.bits == 16 else dtype


def count_of(data: Tensor, places: Sequence[int]) -> Extent:
    """Return the number of elements along the axes at `places`."""
    sizes = extents(data)
    return product([sizes[place] for place in places])


def reduced_shape(
    shape: Sequence[Extent], places: Sequence[int], keepdims: bool
) -> tuple[Extent, ...]:
    """Return the shape of a reduction of a tensor of `shape` along the axes at `places`."""
    reduced: list[Extent] = []
    for place, size in enumerate(shape):
        if place not in places:
            reduced.append(size)
        elif keepdims:
            reduced.append(1)
    return tuple(reduced)


def reduce_along(
    data: Tensor,
    places: Sequence[int],
    element: Callable[..., Expr],
    combine: Combine,
    *,
    name: str,
    keepdims: bool = False,
) -> Tensor:
    """Return the reduction of element(*index) along the axes at `places` of `data`.

    Args:
        data: the tensor whose extents are reduced.
        places: the axes, counted from 0. Without any, the elements themselves are the result.
        element: returns the value at an index of `data`.
        combine: reduces a value over axes.
        name: the name of the result.
        keepdims: True to keep each of the axes with extent 1.
    """
    sizes = extents(data)
    axes = {place: reduce_axis(sizes[place], f"k{place}") for place in places}

    def reduced(*index: Expr) -> Expr:
        whole = insert_axes(index, axes, data.ndim, keepdims)
        return combine(element(*whole), list(axes.values()))

    if not axes:
        return compute(sizes, element, name=name, tag=INJECTIVE)
    shape = reduced_shape(sizes, places, keepdims)
    return compute(shape, reduced, name=name, tag=REDUCTION)


def insert_axes(
    index: Sequence[Expr], axes: dict[int, IterVar], rank: int, keepdims: bool
) -> tuple[ExprLike, ...]:
    """Return the index of the operand, whose axes are inserted into an index of the result."""
    remaining = list(index)
    whole: list[ExprLike] = []
    for place in range(rank):
        if place not in axes:
            whole.append(remaining.pop(0))
            continue
        whole.append(axes[place].var)
        if keepdims:
            remaining.pop(0)
    return tuple(whole)


def reduce_elements(
    data: Tensor,
    combine: Combine,
    *,
    axis: Axes,
    keepdims: bool,
    name: str,
    before: Callable[[Expr], Expr] = lambda x: x,
    after: Callable[[Expr], Expr] | None = None,
) -> Tensor:
    """Return after(reduction of before(x)) along `axis`, in the dtype of `data`.

    It is computed in the dtype of `accumulator_of`.

    Raises:
        UserError: `data` is not a tensor of numbers, or an axis does not exist or is named twice.
    """
    require_number(data, name)
    places = normalize_axes(axis, data.ndim, name)
    wide = accumulator_of(data.dtype)
    is_whole = after is None and wide == data.dtype
    reduced = reduce_along(
        data,
        places,
        lambda *index: before(cast(wide, data[index])),
        combine,
        name=name if is_whole else f"{name}_reduced",
        keepdims=keepdims,
    )
    return reduced if is_whole else finish(reduced, after, data.dtype, name)


def finish(
    reduced: Tensor, after: Callable[[Expr], Expr] | None, dtype: DType, name: str
) -> Tensor:
    """Return after(x), converted to `dtype`, for each element x of a reduction."""
    return map_elements(
        reduced, lambda x: cast(dtype, x if after is None else after(x)), name
    )


def keep_index(index: Sequence[Expr], places: Sequence[int]) -> tuple[Expr, ...]:
    """Return the index at which a reduction that keeps its axes has the result for `index`."""
    return tuple(
        as_dim(0) if place in places else position
        for place, position in enumerate(index)
    )


def drop_axes(data: Tensor, places: Sequence[int], name: str) -> Tensor:
    """Return the elements of `data` without the axes at `places`, whose extent is 1."""
    shape = reduced_shape(extents(data), places, keepdims=False)

    def element(*index: Expr) -> Expr:
        remaining = list(index)
        whole: list[ExprLike] = []
        for place in range(data.ndim):
            whole.append(0 if place in places else remaining.pop(0))
        return data[tuple(whole)]

    return compute(shape, element, name=name, tag=INJECTIVE)


def as_numpy_axis(axis: Axes) -> int | tuple[int, ...] | None:
    """Return `axis` as numpy takes it."""
    return axis if axis is None or isinstance(axis, int) else tuple(axis)


def draw_reduction(draws: Draws, dtype: str, special: bool = True) -> Sample:
    """Return a tensor of `dtype`, with axes to reduce along and `keepdims`."""
    data = draws.array(draws.shape(), dtype, special)
    axis: Axes = None
    if data.ndim and draws.integer(0, 3) > 0:
        axis = draws.axis(data.ndim)
        if draws.flag():
            count = draws.integer(0, data.ndim)
            places = draws.order(data.ndim)[:count]
            axis = tuple(place - draws.choice((0, data.ndim)) for place in places)
    return Sample((data,), {"axis": axis, "keepdims": draws.flag()})


def reduction_of_numbers(draws: Draws) -> Sample:
    """Return a tensor of floats or integers, with axes to reduce along."""
    return draw_reduction(draws, draws.number_dtype())


def reduction_of_floats(draws: Draws) -> Sample:
    """Return a tensor of floats, with axes to reduce along."""
    return draw_reduction(draws, draws.float_dtype())
