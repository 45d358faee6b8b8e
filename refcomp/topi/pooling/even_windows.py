"""Windows that cover the spatial axes evenly, which the adaptive poolings share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.pooling.windows import (
    LAYOUTS,
    check_numbers,
    first_spatial_axis,
    sampled_shape,
)
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_rank,
    widen,
)
from refcomp.topi.tags import REDUCTION


@dataclass(frozen=True, slots=True)
class _EvenWindows:
    """The windows along one axis.

    Attributes:
        size: the number of elements along the axis.
        count: the number of windows.
    """

    size: int
    count: int

    @property
    def longest(self) -> int:
        """Return the greatest number of elements of a window."""
        return max(self.stop(i) - self.start(i) for i in range(self.count))

    def start(self, i: int) -> int:
        """Return the first element of window i."""
        return i * self.size // self.count

    def stop(self, i: int) -> int:
        """Return the end of window i."""
        return -(-(i + 1) * self.size // self.count)

    def bounds(self, i: Expr) -> tuple[Expr, Expr]:
        """Return the first element and the end of window i, as expressions."""
        begin = maths.floordiv(i * self.size, self.count)
        above = (i + 1) * self.size + (self.count - 1)
        return begin, maths.floordiv(above, self.count)


def _make_windows(
    operator: str, data: Tensor, output_size: Sequence[int], layout: str, rank: int
) -> tuple[int, list[_EvenWindows]]:
    """Return the first spatial axis, and the windows along each."""
    axis = first_spatial_axis(layout, rank, operator)
    require_rank(data, len(layout), operator, "the data")
    counts = check_numbers(output_size, rank, operator, "output size")
    windows = []
    for extent, count in zip(extents(data)[axis : axis + rank], counts, strict=True):
        size = require_constant(extent, f"{operator}: a spatial extent")
        if size < 1:
            raise UserError(
                f"{operator} cannot divide 0 elements into windows",
                remedy="give data with spatial extents of at least 1",
                earlier=[data.declaration()],
            )
        windows.append(_EvenWindows(size, count))
    return axis, windows


def _reduce(
    operator: str,
    data: Tensor,
    axis: int,
    windows: Sequence[_EvenWindows],
    reduction: Callable[..., Expr],
    identity: Expr,
) -> Tensor:
    steps = [reduce_axis(along.longest, f"r{k}") for k, along in enumerate(windows)]

    def element(*index: Expr) -> Expr:
        source = list(index)
        inside = []
        for k, along in enumerate(windows):
            begin, end = along.bounds(index[axis + k])
            source[axis + k] = begin + steps[k].var
            # Windows of equal extent have all their elements.
            if along.size % along.count:
                inside.append(source[axis + k] < end)
        value: Expr = data[tuple(source)]
        if inside:
            value = maths.if_then_else(maths.all(*inside), value, identity)
        return reduction(value, axis=steps)

    shape = list(extents(data))
    shape[axis : axis + len(windows)] = [along.count for along in windows]
    return compute(shape, element, name=operator, tag=REDUCTION)


def adaptive_maximum(
    operator: str, data: Tensor, output_size: Sequence[int], layout: str, rank: int
) -> Tensor:
    """Return the maximum of each window."""
    axis, windows = _make_windows(operator, data, output_size, layout, rank)
    least = maths.min_value(data.dtype)
    return _reduce(operator, data, axis, windows, reducer.max, least)


def adaptive_average(
    operator: str, data: Tensor, output_size: Sequence[int], layout: str, rank: int
) -> Tensor:
    """Return the mean of each window."""
    require_float(data, operator)
    axis, windows = _make_windows(operator, data, output_size, layout, rank)
    zero = const(0, data.dtype)
    total = _reduce(operator, data, axis, windows, reducer.sum, zero)

    def mean(*index: Expr) -> Expr:
        count: Expr | None = None
        for k, along in enumerate(windows):
            begin, end = along.bounds(index[axis + k])
            count = end - begin if count is None else count * (end - begin)
        assert count is not None
        return total[index] / cast(data.dtype, count)

    return compute(total.shape, mean, name="mean", tag=INJECTIVE)


def _windows_numpy(
    data: Array, output_size: Sequence[int], layout: str
) -> tuple[Array, int]:
    """Return an array of the data's windows, by index of a window, and the first spatial axis."""
    axis = LAYOUTS[len(output_size)][layout]
    found = np.empty(tuple(output_size), object)
    for index in np.ndindex(*output_size):
        slices = [slice(None)] * data.ndim
        for k, i in enumerate(index):
            along = _EvenWindows(data.shape[axis + k], output_size[k])
            slices[axis + k] = slice(along.start(i), along.stop(i))
        found[index] = data[tuple(slices)]
    return found, axis


def _assemble(
    data: Array,
    output_size: Sequence[int],
    layout: str,
    reduction: Callable[..., Array],
) -> Array:
    found, axis = _windows_numpy(data, output_size, layout)
    rank = len(output_size)
    shape = list(data.shape)
    shape[axis : axis + rank] = output_size
    result = np.empty(shape, data.dtype)
    axes = tuple(range(axis, axis + rank))
    for index in np.ndindex(*output_size):
        place = (*[slice(None)] * axis, *index)
        result[place] = reduction(found[index], axis=axes)
    return result


def adaptive_maximum_numpy(
    data: Array, output_size: Sequence[int], layout: str
) -> Array:
    return _assemble(data, output_size, layout, np.max)


def adaptive_average_numpy(
    data: Array, output_size: Sequence[int], layout: str
) -> Array:
    mean = _assemble(widen(data), output_size, layout, np.mean)
    return mean.astype(data.dtype)


def sample_adaptive(draws: Draws, rank: int, dtype: str) -> Sample:
    """Return data over `rank` spatial axes, with a number of windows for each."""
    layout = draws.choice(tuple(LAYOUTS[rank]))
    spatial = draws.shape(rank, rank, least=1)
    batch = draws.integer(0, 2)
    channels = draws.integer(1, 2)
    shape = sampled_shape(draws, layout, batch, channels, spatial)
    output_size = tuple(draws.integer(1, 4) for _ in range(rank))
    attributes = {"output_size": output_size, "layout": layout}
    return Sample((draws.array(shape, dtype),), attributes)
