"""Two-dimensional convolution, with the channels second (conv2d) or last (conv2d_nhwc).

    y[n, o, i, j] = bias[o] + sum over (c, ky, kx) of x[n, c, row, column] * w[o, c, ky, kx]
    row = i * stride + ky * dilation - padding, and column likewise with j and kx

where x is 0 outside of the image. As in all frameworks, the kernel is not mirrored: strictly, this
is a cross-correlation. With groups, an output channel reads only the input channels of its group.
With channels last and weights [ky, kx, in, out], vectors run over output channels.

A NaN reaches each output whose window holds it. An infinity times a padded or real zero is NaN. If
no channel is summed up, the result is the bias, or 0.

Reference: ONNX Conv.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    Extent,
    Pair,
    check_pair,
    extents,
    require_constant,
    require_extent,
    require_one_dtype,
    require_rank,
    widen,
    window_extent,
)
from refcomp.topi.spatial_padding import Padding, check_padding, pad_numpy, pad_spatial
from refcomp.topi.tags import CONV2D_NHWC, INJECTIVE, REDUCTION


@dataclass(frozen=True, slots=True)
class _Window:
    """The positions of all windows on the padded image."""

    height: Extent  # of the output, in elements
    width: Extent
    strides: tuple[int, int]  # elements down and across, from one window to the next
    dilation: tuple[int, int]  # the same, from one element of a window to the next

    def row(self, y: Expr, ky: Expr) -> Expr:
        """Return the row of the padded image for row y of the output and row ky of the kernel."""
        return y * self.strides[0] + ky * self.dilation[0]

    def column(self, x: Expr, kx: Expr) -> Expr:
        """Return the column likewise."""
        return x * self.strides[1] + kx * self.dilation[1]


def _window(
    size: Sequence[Extent],
    kernel: Pair,
    strides: Pair,
    padding: Padding,
    dilation: Pair,
) -> _Window:
    sy, sx = check_pair(strides, "conv2d", "strides")
    dy, dx = check_pair(dilation, "conv2d", "dilation")
    top, left, bottom, right = check_padding(padding, "conv2d")
    height = window_extent(size[0], kernel[0], sy, dy, top, bottom)
    width = window_extent(size[1], kernel[1], sx, dx, left, right)
    return _Window(height, width, (sy, sx), (dy, dx))


def _check_operands(data: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    require_rank(data, 4, "conv2d", "the data")
    require_rank(weight, 4, "conv2d", "the weight")
    if bias is not None:
        require_rank(bias, 1, "conv2d", "the bias")
    require_one_dtype("conv2d", data, weight, bias)


def conv2d(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Tensor:
    """Return the convolution of images whose channels are the second axis.

    Args:
        data: [n, c, h, w], of any numeric dtype.
        weight: [o, c / groups, kh, kw], of constant extents and of the dtype of `data`.
        bias: [o], of the dtype of `data`; optional.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        groups: number of groups into which the channels are divided.

    Returns:
        A tensor [n, o, h', w'] of the dtype of `data`. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: ONNX Conv: a correlation, whose kernel is not mirrored. NaN propagates.

    Example::

        >>> X, W = rc.placeholder((1, 1, 3, 3), name="X"), rc.placeholder((1, 1, 2, 2), name="W")
        >>> Y = rc.topi.conv2d(X, W, strides=(1, 1), padding=(0, 0, 1, 1))
        >>> x, w = np.arange(9).reshape(1, 1, 3, 3), np.array([[[[1, 0], [0, 10]]]])
        >>> (y,) = rc.oracle.evaluate([Y], {X: x.astype("float32"), W: w.astype("float32")})
        >>> print(y[0, 0])
        [[40. 51.  2.]
         [73. 84.  5.]
         [ 6.  7.  8.]]
    """
    _check_operands(data, weight, bias)
    batch, channels, *size = extents(data)
    # `depth` is the number of channels that an output channel reads.
    out, depth, *kernel = _constant_extents(weight)
    if groups < 1 or out % groups:
        raise UserError(
            f"conv2d cannot divide {out} output channels into {groups} groups",
            remedy="let groups divide the first extent of the weight",
        )
    require_extent(
        channels,
        depth * groups,
        "conv2d",
        "the data's channel extent",
        tensors=(data, weight),
    )
    window = _window(size, kernel, strides, padding, dilation)
    padded = pad_spatial(data, padding, const(0, data.dtype), 2)
    rc = reduce_axis(depth, "rc")
    ry = reduce_axis(kernel[0], "ry")
    rx = reduce_axis(kernel[1], "rx")

    def element(n: Expr, o: Expr, y: Expr, x: Expr) -> Expr:
        # With one group the quotient is 0.
        channel = rc.var if groups == 1 else o // (out // groups) * depth + rc
        row = window.row(y, ry.var)
        column = window.column(x, rx.var)
        read = padded[n, channel, row, column]
        return reducer.sum(read * weight[o, rc, ry, rx], axis=[rc, ry, rx])

    shape = (batch, out, window.height, window.width)
    result = compute(shape, element, name="conv2d", tag=REDUCTION)
    return result if bias is None else _with_bias(result, bias, 1)


def _constant_extents(weight: Tensor) -> list[int]:
    sizes = extents(weight)
    return [require_constant(size, "conv2d: the weight's shape") for size in sizes]


def _with_bias(data: Tensor, bias: Tensor, axis: int) -> Tensor:
    """Return `data` plus the element of `bias` [o] of each channel along `axis`."""
    channels = extents(data)[axis]
    require_extent(
        extents(bias)[0], channels, "conv2d", "the bias' extent", tensors=(data, bias)
    )
    # A compute of its own: a reduction must be the whole body of a compute.
    return compute(
        data.shape, lambda *at: data[at] + bias[at[axis]], name="bias", tag=INJECTIVE
    )


def _sample_conv2d(draws: Draws) -> Sample:
    groups = draws.integer(1, 2)
    depth = draws.integer(1, 3)
    out = draws.integer(1, 3)
    kernel = draws.pair(1, 3)
    dtype = draws.number_dtype()
    data = draws.array(
        (draws.extent(0), groups * depth, *draws.shape(2, 2, least=5)), dtype
    )
    weight = draws.array((groups * out, depth, *kernel), dtype, special=False)
    bias = draws.array((groups * out,), dtype) if draws.flag() else None
    return Sample((data, weight, bias), {**_sample_window(draws), "groups": groups})


def _sample_window(draws: Draws) -> dict[str, object]:
    return {
        "strides": draws.pair(1, 2),
        "padding": tuple(draws.integer(0, 2) for _ in range(4)),
        "dilation": draws.pair(1, 2),
    }


@meaning_of(conv2d, sample=_sample_conv2d)
def conv2d_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    x = pad_numpy(widen(data), padding, 0, 2)
    w = widen(weight)
    out, depth, *kernel = w.shape
    # Where windows may start, in elements of the padded image: 0 ... last_y and 0 ... last_x.
    last_y = x.shape[2] - dilation[0] * (kernel[0] - 1) - 1
    last_x = x.shape[3] - dilation[1] * (kernel[1] - 1) - 1
    height = last_y // strides[0] + 1
    width = last_x // strides[1] + 1
    result = np.zeros((len(x), out, height, width), x.dtype)
    per_group = out // groups
    # One element of the kernel at a time, for all windows at once.
    for o, ky, kx in np.ndindex(out, *kernel):
        channel = o // per_group * depth
        y = ky * dilation[0]
        rows = slice(y, y + last_y + 1, strides[0])
        first = kx * dilation[1]
        columns = slice(first, first + last_x + 1, strides[1])
        seen = x[:, channel : channel + depth, rows, columns]
        products = seen * w[o, :, ky, kx].reshape(-1, 1, 1)
        result[:, o] += products.sum(axis=1, dtype=x.dtype)
    if bias is not None:
        result += widen(bias).reshape(-1, 1, 1)
    return result.astype(data.dtype)


def conv2d_nhwc(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
) -> Tensor:
    """Return the convolution of images whose channels are the last axis.

    Args:
        data: [n, h, w, c], of any numeric dtype.
        weight: [kh, kw, c, o], of constant extents and of the dtype of `data`.
        bias: [o], of the dtype of `data`; optional.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.

    Returns:
        A tensor [n, h', w', o] of the dtype of `data`.

    Raises:
        UserError: as for `conv2d`.

    Example::

        >>> X, W = rc.placeholder((1, 3, 3, 1), name="X"), rc.placeholder((2, 2, 1, 1), name="W")
        >>> Y = rc.topi.conv2d_nhwc(X, W, strides=(1, 1))
        >>> x, w = np.arange(9).reshape(1, 3, 3, 1), np.array([[1, 0], [0, 10]]).reshape(2, 2, 1, 1)
        >>> (y,) = rc.oracle.evaluate([Y], {X: x.astype("float32"), W: w.astype("float32")})
        >>> print(y[0, :, :, 0])
        [[40. 51.]
         [73. 84.]]
    """
    _check_operands(data, weight, bias)
    batch, *size, channels = extents(data)
    *kernel, depth, out = _constant_extents(weight)
    require_extent(
        channels, depth, "conv2d", "the data's channel extent", tensors=(data, weight)
    )
    window = _window(size, kernel, strides, padding, dilation)
    padded = pad_spatial(data, padding, const(0, data.dtype), 1)
    ry = reduce_axis(kernel[0], "ry")
    rx = reduce_axis(kernel[1], "rx")
    rc = reduce_axis(depth, "rc")

    def element(n: Expr, y: Expr, x: Expr, o: Expr) -> Expr:
        row = window.row(y, ry.var)
        column = window.column(x, rx.var)
        read = padded[n, row, column, rc]
        return reducer.sum(read * weight[ry, rx, rc, o], axis=[ry, rx, rc])

    shape = (batch, window.height, window.width, out)
    result = compute(shape, element, name="conv2d", tag=CONV2D_NHWC)
    return result if bias is None else _with_bias(result, bias, 3)


def _sample_conv2d_nhwc(draws: Draws) -> Sample:
    depth = draws.integer(1, 3)
    out = draws.integer(1, 4)
    dtype = draws.number_dtype()
    data = draws.array((draws.extent(0), *draws.shape(2, 2, least=5), depth), dtype)
    kernel = draws.pair(1, 3)
    weight = draws.array((*kernel, depth, out), dtype, special=False)
    bias = draws.array((out,), dtype) if draws.flag() else None
    return Sample((data, weight, bias), _sample_window(draws))


@meaning_of(conv2d_nhwc, sample=_sample_conv2d_nhwc)
def conv2d_nhwc_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
) -> Array:
    plain = data.transpose(0, 3, 1, 2)
    oihw = weight.transpose(3, 2, 0, 1)
    result = conv2d_numpy(
        plain, oihw, bias, strides=strides, padding=padding, dilation=dilation
    )
    return np.ascontiguousarray(result.transpose(0, 2, 3, 1))
