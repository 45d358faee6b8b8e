"""Pooling over two spatial axes: the maximum or the mean of each window.

Data is [n, c, h, w] in the layout NCHW, or [n, h, w, c] in the layout NHWC. The result has the same
dtype, and the extents h' and w' that `window_extent` computes. A NaN reaches the result of each
window that holds it.

Reference: ONNX MaxPool and AveragePool with ceil_mode = 0, and GlobalAveragePool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import IterVar, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    Extent,
    Pair,
    check_pair,
    extents,
    product,
    require_float,
    require_rank,
    widen,
    window_extent,
)
from refcomp.topi.spatial_padding import Padding, check_padding, pad_numpy, pad_spatial
from refcomp.topi.tags import INJECTIVE, REDUCTION

_FIRST_SPATIAL_AXIS = {"NCHW": 2, "NHWC": 1}


@dataclass(frozen=True, slots=True)
class _Pool:
    """The windows of one pooling. Each pair is of the axes y and x, in elements."""

    operator: str  # its name, for messages
    axis: int  # y, counted from 0; x is the next axis
    kernel: Pair  # extents of a window
    strides: Pair  # from one window to the next
    padding: Padding
    dilation: Pair  # from one element of a window to the next

    def output_shape(self, shape: Sequence[Extent]) -> list[Extent]:
        """Return the shape of the result for data of `shape`."""
        result = list(shape)
        for k in (0, 1):
            result[self.axis + k] = window_extent(
                shape[self.axis + k],
                kernel=self.kernel[k],
                stride=self.strides[k],
                dilation=self.dilation[k],
                before=self.padding[k],
                after=self.padding[k + 2],
            )
        return result

    def source(
        self, index: Sequence[Expr], steps: Sequence[IterVar]
    ) -> tuple[Expr, ...]:
        """Return the index of element `steps` of window `index`, in the padded data."""
        source = list(index)
        for k in (0, 1):
            start = index[self.axis + k] * self.strides[k]
            source[self.axis + k] = start + steps[k].var * self.dilation[k]
        return tuple(source)


def first_spatial_axis(layout: str, operator: str) -> int:
    """Return the axis y of a layout. Raise UserError for an unknown layout."""
    if layout not in _FIRST_SPATIAL_AXIS:
        raise UserError(
            f"{operator} does not know the layout {layout!r}", remedy="use NCHW or NHWC"
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
    check_pair(kernel, operator, "kernel")
    check_pair(strides, operator, "strides")
    check_pair(dilation, operator, "dilation")
    axis = first_spatial_axis(layout, operator)
    checked = check_padding(padding, operator)
    # A window of nothing but padding has no maximum and no mean.
    for k, added in enumerate(checked):
        if added >= (kernel[k % 2] - 1) * dilation[k % 2] + 1:
            raise UserError(
                f"{operator} cannot pad by {checked}: a window would hold only padding",
                remedy="pad each side by less than the dilated kernel's extent",
            )
    return _Pool(operator, axis, kernel, strides, checked, dilation)


def _reduce_windows(
    data: Tensor, pool: _Pool, reduction: Callable[..., Expr], padding_value: Expr
) -> Tensor:
    padded = pad_spatial(data, pool.padding, padding_value, pool.axis)
    steps = [reduce_axis(pool.kernel[0], "ry"), reduce_axis(pool.kernel[1], "rx")]
    return compute(
        pool.output_shape(extents(data)),
        lambda *index: reduction(padded[pool.source(index, steps)], axis=steps),
        name=pool.operator,
        tag=REDUCTION,
    )


def max_pool2d(
    data: Tensor,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    layout: str = "NCHW",
) -> Tensor:
    """Return the maximum of each window. Padding is never the maximum.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of any numeric dtype.
        kernel: extents of a window down and across.
        strides: elements down and across, from one window to the next.
        padding: elements added at the top, left, bottom and right, each less than a window.
        dilation: elements down and across, from one element of a window to the next.
        layout: NCHW or NHWC.

    Raises:
        UserError: an argument is not as described, or a window does not fit in the data.

    Reference: ONNX MaxPool. NaN propagates.

    Example::

        >>> X = rc.placeholder((1, 1, 4, 4), name="X")
        >>> Y = rc.topi.max_pool2d(X, kernel=(2, 2), strides=(2, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: np.arange(16).reshape(1, 1, 4, 4).astype("float32")})
        >>> print(y[0, 0])
        [[ 5.  7.]
         [13. 15.]]
    """
    pool = _pool("max_pool2d", data, layout, kernel, strides, padding, dilation)
    return _reduce_windows(data, pool, reducer.max, maths.min_value(data.dtype))


def _sample_images(draws: Draws, layout: str, dtype: str) -> Array:
    size = draws.shape(2, 2, least=5)
    batch, channels = draws.extent(0), draws.integer(1, 3)
    is_last = layout == "NHWC"
    shape = (batch, *size, channels) if is_last else (batch, channels, *size)
    return draws.array(shape, dtype)


def _sample_pool(draws: Draws) -> dict[str, object]:
    kernel = draws.pair(1, 3)
    return {
        "kernel": kernel,
        "strides": draws.pair(1, 2),
        "padding": tuple(draws.integer(0, extent - 1) for extent in (*kernel, *kernel)),
        "layout": draws.choice(("NCHW", "NHWC")),
    }


def _sample_max_pool2d(draws: Draws) -> Sample:
    attributes = _sample_pool(draws)
    layout = str(attributes["layout"])
    data = _sample_images(draws, layout, draws.number_dtype())
    return Sample((data,), {**attributes, "dilation": draws.pair(1, 2)})


@meaning_of(max_pool2d, sample=_sample_max_pool2d)
def max_pool2d_numpy(
    data: Array,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    layout: str = "NCHW",
) -> Array:
    is_float = data.dtype.kind not in "iu"  # bfloat16 is of kind V
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
    """Return the mean of each window.

    The sum of a window is divided by the number of its elements. Padding, which is 0, counts only
    with `count_include_pad`.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of a float dtype.
        kernel: extents of a window down and across.
        strides: elements down and across, from one window to the next.
        padding: elements added at the top, left, bottom and right, each less than a window.
        count_include_pad: True if padding counts as elements.
        layout: NCHW or NHWC.

    Raises:
        UserError: an argument is not as described, or a window does not fit in the data.

    Reference: ONNX AveragePool. NaN propagates.

    Example::

        >>> X = rc.placeholder((1, 1, 4, 4), name="X")
        >>> Y = rc.topi.avg_pool2d(X, kernel=(2, 2), strides=(2, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: np.arange(16).reshape(1, 1, 4, 4).astype("float32")})
        >>> print(y[0, 0])
        [[ 2.5  4.5]
         [10.5 12.5]]
    """
    require_float(data, "avg_pool2d")
    pool = _pool("avg_pool2d", data, layout, kernel, strides, padding)
    total = _reduce_windows(data, pool, reducer.sum, const(0, data.dtype))
    whole = const(float(kernel[0] * kernel[1]), data.dtype)

    def mean(*index: Expr) -> Expr:
        if count_include_pad or not any(pool.padding):
            return total[index] / whole
        rows = _inside(data, pool, 0, index[pool.axis])
        columns = _inside(data, pool, 1, index[pool.axis + 1])
        return total[index] / (rows * columns).astype(data.dtype)

    return compute(total.shape, mean, name="mean", tag=INJECTIVE)


def _inside(data: Tensor, pool: _Pool, k: int, position: Expr) -> Expr:
    """Return how many elements window `position` has along axis k (0 is y), without padding."""
    start = position * pool.strides[k] - pool.padding[k]
    end = maths.minimum(start + pool.kernel[k], data.shape[pool.axis + k])
    return end - maths.maximum(start, const(0, start.dtype))


def _sample_avg_pool2d(draws: Draws) -> Sample:
    attributes = _sample_pool(draws)
    data = _sample_images(draws, str(attributes["layout"]), draws.float_dtype())
    return Sample((data,), {**attributes, "count_include_pad": draws.flag()})


@meaning_of(avg_pool2d, sample=_sample_avg_pool2d)
def avg_pool2d_numpy(
    data: Array,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    count_include_pad: bool = False,
    layout: str = "NCHW",
) -> Array:
    def sums(array: Array) -> Array:
        windows = _windows(array, kernel, strides, padding, (1, 1), layout, 0)
        return np.asarray(np.add.reduce(windows))

    wide = widen(data)
    total = sums(wide)
    # A sum of ones is the number of elements that are not padding.
    count = kernel[0] * kernel[1] if count_include_pad else sums(np.ones_like(wide))
    return np.asarray(total / count, data.dtype)


def global_avg_pool2d(data: Tensor, *, layout: str = "NCHW") -> Tensor:
    """Return the mean of each channel of each image.

    The result is NaN if h * w is 0.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of a float dtype.
        layout: NCHW or NHWC.

    Returns:
        A tensor [n, c, 1, 1], or [n, 1, 1, c] in the layout NHWC, of the dtype of `data`.

    Raises:
        UserError: `data` has another rank or does not hold floats, or the layout is unknown.

    Reference: ONNX GlobalAveragePool. NaN propagates.

    Example::

        >>> X = rc.placeholder((1, 2, 2, 2), name="X")
        >>> Y = rc.topi.global_avg_pool2d(X)
        >>> (y,) = rc.oracle.evaluate([Y], {X: np.arange(8).reshape(1, 2, 2, 2).astype("float32")})
        >>> y.shape, y.ravel().tolist()
        ((1, 2, 1, 1), [1.5, 5.5])
    """
    require_float(data, "global_avg_pool2d")
    require_rank(data, 4, "global_avg_pool2d", "the data")
    axis = first_spatial_axis(layout, "global_avg_pool2d")
    height, width = extents(data)[axis : axis + 2]
    steps = [reduce_axis(height, "ry"), reduce_axis(width, "rx")]

    def total(*index: Expr) -> Expr:
        source = (*index[:axis], *steps, *index[axis + 2 :])
        return reducer.sum(data[source], axis=steps)

    shape = (*extents(data)[:axis], 1, 1, *extents(data)[axis + 2 :])
    summed = compute(shape, total, name="global_avg_pool2d", tag=REDUCTION)
    count = product((height, width))
    divisor = (
        const(float(count), data.dtype)
        if isinstance(count, int)
        else cast(data.dtype, count)
    )
    return compute(
        shape, lambda *index: summed[index] / divisor, name="mean", tag=INJECTIVE
    )


def _sample_global_avg_pool2d(draws: Draws) -> Sample:
    layout = draws.choice(("NCHW", "NHWC"))
    return Sample(
        (_sample_images(draws, layout, draws.float_dtype()),), {"layout": layout}
    )


@meaning_of(global_avg_pool2d, sample=_sample_global_avg_pool2d)
def global_avg_pool2d_numpy(data: Array, *, layout: str = "NCHW") -> Array:
    axis = first_spatial_axis(layout, "global_avg_pool2d")
    total = widen(data).sum(axis=(axis, axis + 1), keepdims=True)
    count = math.prod(data.shape[axis : axis + 2])
    # Not `mean`, which warns when it divides 0 by 0.
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count, data.dtype)


def _windows(
    data: Array,
    kernel: Pair,
    strides: Pair,
    padding: Padding,
    dilation: Pair,
    layout: str,
    padding_value: float,
) -> list[Array]:
    """Return for each position in a window, the elements of all windows at that position."""
    axis = first_spatial_axis(layout, "pooling")
    padded = pad_numpy(data, padding, padding_value, axis)
    # The number of elements, along y and x, at which a window may start.
    starts_y = padded.shape[axis] - dilation[0] * (kernel[0] - 1)
    starts_x = padded.shape[axis + 1] - dilation[1] * (kernel[1] - 1)
    windows = []
    for ky, kx in np.ndindex(*kernel):
        y = ky * dilation[0]
        x = kx * dilation[1]
        rows = slice(y, y + starts_y, strides[0])
        columns = slice(x, x + starts_x, strides[1])
        windows.append(padded[(*[slice(None)] * axis, rows, columns)])
    return windows
