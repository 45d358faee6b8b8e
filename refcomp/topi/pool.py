"""Pooling over two spatial axes: the greatest or the mean element of each window.

`layout` is NCHW or NHWC. Padding never wins a maximum. Averages divide by the number of elements of
the window, or, without `count_include_pad`, by the number of elements that are not padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import IterVar, Tensor
from refcomp.topi.pad import Padding, check_padding, pad_numpy, pad_spatial
from refcomp.topi.shapes import (
    Array,
    Extent,
    extents,
    product,
    require_rank,
    require_tensor,
    widen,
    window_extent,
)
from refcomp.topi.tags import INJECTIVE, REDUCTION

Pair = Sequence[int]
_FIRST_SPATIAL_AXIS = {"NCHW": 2, "NHWC": 1}


@dataclass(frozen=True, slots=True)
class _Pool:
    """One pooling: where the spatial axes are and how windows lie on them."""

    operator: str
    axis: int
    kernel: Pair
    strides: Pair
    padding: Padding
    dilation: Pair

    def output_shape(self, shape: Sequence[Extent]) -> list[Extent]:
        result = list(shape)
        for k in (0, 1):
            result[self.axis + k] = window_extent(
                shape[self.axis + k],
                *(self.kernel[k], self.strides[k], self.dilation[k]),
                *(self.padding[k], self.padding[k + 2]),
            )
        return result

    def source(
        self, index: Sequence[Expr], steps: Sequence[IterVar]
    ) -> tuple[Expr, ...]:
        source = list(index)
        for k in (0, 1):
            start = index[self.axis + k] * self.strides[k]
            source[self.axis + k] = start + steps[k].var * self.dilation[k]
        return tuple(source)


def first_spatial_axis(layout: str, operator: str) -> int:
    """The axis of the rows; UserError for an unknown layout."""
    if layout not in _FIRST_SPATIAL_AXIS:
        raise UserError(
            f"{operator}: unknown layout {layout!r}", remedy="use NCHW or NHWC"
        )
    return _FIRST_SPATIAL_AXIS[layout]


def _pool(
    operator: str,
    data: Tensor,
    layout: str,
    kernel: Pair,
    strides: Pair,
    padding: Padding,
    dilation: Pair = (1, 1),
) -> _Pool:
    require_rank(data, 4, operator, "the data")
    for name, pair in (
        ("kernel", kernel),
        ("strides", strides),
        ("dilation", dilation),
    ):
        if len(pair) != 2 or any(p < 1 for p in pair):
            raise UserError(
                f"{operator}: {name} {tuple(pair)}",
                remedy="give two numbers >= 1: down and across",
            )
    axis = first_spatial_axis(layout, operator)
    checked = check_padding(padding, operator)
    # A window of nothing but padding has no greatest element and no mean.
    if any(checked[k] >= (kernel[k % 2] - 1) * dilation[k % 2] + 1 for k in range(4)):
        raise UserError(
            f"{operator}: padding {checked} is not less than the kernel's reach"
        )
    return _Pool(operator, axis, kernel, strides, checked, dilation)


def _reduce_windows(
    data: Tensor, pool: _Pool, reduction: Callable[..., Expr], padding_value: Expr
) -> Tensor:
    padded = pad_spatial(data, pool.padding, padding_value, pool.axis)
    steps = [reduce_axis(k, n) for k, n in zip(pool.kernel, ("ry", "rx"), strict=True)]
    result: Tensor = compute(
        pool.output_shape(extents(data)),
        lambda *index: reduction(padded[pool.source(index, steps)], axis=steps),
        name=pool.operator,
        tag=REDUCTION,
    )
    return result


def max_pool2d(
    data: Tensor,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    layout: str = "NCHW",
) -> Tensor:
    """The greatest element of each window; NaN propagates."""
    pool = _pool("max_pool2d", data, layout, kernel, strides, padding, dilation)
    return _reduce_windows(data, pool, reducer.max, maths.min_value(data.dtype))


def max_pool2d_numpy(
    data: Array,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    layout: str = "NCHW",
) -> Array:
    is_float = data.dtype.kind not in "iu"
    least = -np.inf if is_float else np.iinfo(data.dtype).min
    windows = _windows(data, kernel, strides, padding, dilation, layout, least)
    return np.asarray(np.maximum.reduce(windows))


def avg_pool2d(
    data: Tensor,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    count_include_pad: bool = False,
    layout: str = "NCHW",
) -> Tensor:
    """The mean of each window, of a float tensor."""
    _require_float(data, "avg_pool2d")
    pool = _pool("avg_pool2d", data, layout, kernel, strides, padding)
    total = _reduce_windows(data, pool, reducer.sum, const(0, data.dtype))
    whole = const(float(kernel[0] * kernel[1]), data.dtype)

    def mean(*index: Expr) -> Expr:
        if count_include_pad or not any(pool.padding):
            return total[index] / whole
        counts = [_inside(data, pool, k, index[pool.axis + k]) for k in (0, 1)]
        return total[index] / (counts[0] * counts[1]).astype(data.dtype)

    result: Tensor = compute(total.shape, mean, name="mean", tag=INJECTIVE)
    return result


def _inside(data: Tensor, pool: _Pool, k: int, position: Expr) -> Expr:
    """Return the number of elements along axis k that the window at `position` has in the data."""
    start = position * pool.strides[k] - pool.padding[k]
    end = maths.minimum(start + pool.kernel[k], data.shape[pool.axis + k])
    return end - maths.maximum(start, const(0, start.dtype))


def avg_pool2d_numpy(
    data: Array,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    count_include_pad: bool = False,
    layout: str = "NCHW",
) -> Array:
    wide = widen(data)
    shape = (kernel, strides, padding, (1, 1), layout, 0)
    total = np.add.reduce(_windows(wide, *shape))
    if count_include_pad:
        return np.asarray(total / (kernel[0] * kernel[1])).astype(data.dtype)
    return np.asarray(
        total / np.add.reduce(_windows(np.ones_like(wide), *shape))
    ).astype(data.dtype)


def global_avg_pool2d(data: Tensor, *, layout: str = "NCHW") -> Tensor:
    """The mean of all elements of each channel; the spatial extents become 1."""
    _require_float(data, "global_avg_pool2d")
    require_rank(data, 4, "global_avg_pool2d", "the data")
    axis = first_spatial_axis(layout, "global_avg_pool2d")
    sizes = extents(data)[axis : axis + 2]
    steps = [reduce_axis(size, n) for size, n in zip(sizes, ("ry", "rx"), strict=True)]

    def total(*index: Expr) -> Expr:
        source = (*index[:axis], *steps, *index[axis + 2 :])
        return reducer.sum(data[source], axis=steps)

    shape = (*extents(data)[:axis], 1, 1, *extents(data)[axis + 2 :])
    summed: Tensor = compute(shape, total, name="global_avg_pool2d", tag=REDUCTION)
    elements = product(sizes)
    count = (
        const(float(elements), data.dtype) if isinstance(elements, int) else elements
    )
    result: Tensor = compute(
        shape,
        lambda *index: summed[index] / cast(data.dtype, count),
        name="mean",
        tag=INJECTIVE,
    )
    return result


def global_avg_pool2d_numpy(data: Array, *, layout: str = "NCHW") -> Array:
    axis = first_spatial_axis(layout, "global_avg_pool2d")
    with np.errstate(invalid="ignore"):
        mean = widen(data).mean(axis=(axis, axis + 1), keepdims=True)
    return np.asarray(mean).astype(data.dtype)


def _require_float(data: Tensor, operator: str) -> None:
    require_tensor(data, operator)
    if not data.dtype.is_float:
        raise UserError(f"{operator} takes a float tensor, {data.dtype} given")


def _windows(
    data: Array,
    kernel: Pair,
    strides: Pair,
    padding: Padding,
    dilation: Pair,
    layout: str,
    padding_value: float,
) -> list[Any]:
    """For each place in a window, the array of what all windows have there."""
    axis = first_spatial_axis(layout, "pooling")
    padded = pad_numpy(data, padding, padding_value, axis)
    reach = [padded.shape[axis + k] - dilation[k] * (kernel[k] - 1) for k in (0, 1)]
    windows = []
    for ky, kx in np.ndindex(*kernel):
        y, x = ky * dilation[0], kx * dilation[1]
        rows = slice(y, y + reach[0], strides[0])
        columns = slice(x, x + reach[1], strides[1])
        windows.append(padded[(*[slice(None)] * axis, rows, columns)])
    return windows
