"""Reductions of whole channels, which the global poolings share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws
from refcomp.topi.normalization.moments import rounded, sum_dtype
from refcomp.topi.pooling.windows import (
    LAYOUTS,
    absolute_power,
    first_spatial_axis,
    require_degree,
    root_of,
    spatial_rank,
)
from refcomp.topi.shapes import Array, product, require_float, require_rank, widen
from refcomp.topi.tags import REDUCTION


def _reduce_channels(
    operator: str,
    data: Tensor,
    rank: int,
    layout: str,
    reduction: Callable[..., Expr],
    term: Callable[[Expr], Expr] = lambda value: value,
) -> Tensor:
    """Return the reduction of term(element) over the `rank` spatial axes, which become 1."""
    axis = first_spatial_axis(layout, rank, operator)
    require_rank(data, len(layout), operator, "the data")
    sizes = extents(data)
    spatial = sizes[axis : axis + rank]
    steps = [reduce_axis(extent, f"r{k}") for k, extent in enumerate(spatial)]

    def element(*index: Expr) -> Expr:
        source = (*index[:axis], *steps, *index[axis + rank :])
        return reduction(term(data[source]), axis=steps)

    shape = (*sizes[:axis], *[1] * rank, *sizes[axis + rank :])
    return compute(shape, element, name=operator, tag=REDUCTION)


def global_average(operator: str, data: Tensor, rank: int, layout: str) -> Tensor:
    """Return the mean of each channel."""
    require_float(data, operator)
    total = _reduce_channels(operator, data, rank, layout, reducer.sum)
    axis = first_spatial_axis(layout, rank, operator)
    count = product(extents(data)[axis : axis + rank])
    divisor = (
        const(float(count), data.dtype)
        if isinstance(count, int)
        else cast(data.dtype, count)
    )
    return compute(
        total.shape, lambda *index: total[index] / divisor, name="mean", tag=INJECTIVE
    )


def global_maximum(operator: str, data: Tensor, rank: int, layout: str) -> Tensor:
    """Return the maximum of each channel."""
    return _reduce_channels(operator, data, rank, layout, reducer.max)


def global_norm(operator: str, data: Tensor, rank: int, layout: str, p: int) -> Tensor:
    """Return the norm of degree `p` of each channel."""
    require_float(data, operator)
    require_degree(p, operator)
    wide = sum_dtype(data)
    total = _reduce_channels(
        operator,
        data,
        rank,
        layout,
        reducer.sum,
        lambda value: absolute_power(value.astype(wide), p),
    )
    return root_of(total, p, data.dtype)


def _spatial_axes(layout: str) -> tuple[int, ...]:
    rank = spatial_rank(layout)
    first = LAYOUTS[rank][layout]
    return tuple(range(first, first + rank))


def global_average_numpy(data: Array, layout: str) -> Array:
    axes = _spatial_axes(layout)
    total = widen(data).sum(axis=axes, keepdims=True)
    count = math.prod(data.shape[axis] for axis in axes)
    # Not `mean`, which warns when it divides 0 by 0.
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count, data.dtype)


def global_maximum_numpy(data: Array, layout: str) -> Array:
    axes = _spatial_axes(layout)
    is_float = data.dtype.kind not in "iu"  # bfloat16 is of kind V
    least = -np.inf if is_float else np.iinfo(data.dtype).min
    return np.asarray(data.max(axis=axes, keepdims=True, initial=least), data.dtype)


def global_norm_numpy(data: Array, layout: str, p: int) -> Array:
    axes = _spatial_axes(layout)
    powers = np.abs(widen(data)) ** p
    total = powers.sum(axis=axes, keepdims=True)
    return np.asarray(total ** rounded(1 / p, data), data.dtype)


def sample_whole(draws: Draws, rank: int, dtype: str) -> tuple[str, Array]:
    """Return a layout of `rank` spatial axes, and data in it."""
    layout = draws.choice(tuple(LAYOUTS[rank]))
    return layout, draws.array(draws.shape(len(layout), len(layout)), dtype)
