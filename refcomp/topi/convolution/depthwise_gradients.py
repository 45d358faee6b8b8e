"""The gradients of `depthwise_conv2d_nhwc` with respect to its images and weights, as operators.

`te.gradient` of a convolution gives the same numbers. An infinite weight times an inserted zero is
NaN, as in transposed convolutions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.contraction.dense import check_factors
from refcomp.topi.convolution.conv2d_gradients import (
    conv2d_backward_data_numpy,
    conv2d_backward_weight_numpy,
    require_windows,
    sample_gradient,
)
from refcomp.topi.convolution.transposed import sum_spread
from refcomp.topi.convolution.windows import (
    check_numbers,
    constant_sizes,
    make_windows,
    require_channels,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, Pair, require_constant, require_rank
from refcomp.topi.spatial_padding import Padding
from refcomp.topi.tags import REDUCTION


def depthwise_conv2d_backward_input_nhwc(
    grad: Tensor,
    weight: Tensor,
    *,
    size: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
) -> Tensor:
    """Return the gradient of `depthwise_conv2d_nhwc` with respect to its images.

        result[n, y, c] = sum of all grad[n, i, c * m + j] * w[k, c, j]
        y = i * stride + k * dilation - before

    where i, k and y are pairs. Elements that no window reads have the gradient 0.

    Args:
        grad: [n, h', w', c * m], the gradient of the result, of any numeric dtype.
        weight: [kh, kw, c, m], of constant extents and of the dtype of `grad`.
        size: height and width of the images, without padding.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.

    Returns:
        A tensor [n, h, w, c] of the dtype of `grad`.

    Raises:
        UserError: a rank or dtype does not fit, or images of this size do not give a result of the
            extents of `grad`.

    Reference: TVM, topi.nn.depthwise_conv2d_backward_input_nhwc.

    Example::

        >>> G, W = rc.placeholder((1, 1, 1, 2), name="G"), rc.placeholder((1, 2, 1, 2), name="W")
        >>> D = rc.topi.depthwise_conv2d_backward_input_nhwc(G, W, size=(1, 2))
        >>> g = np.array([1, 10], "float32").reshape(1, 1, 1, 2)
        >>> w = np.array([[1, 2], [3, 4]], "float32").reshape(1, 2, 1, 2)
        >>> (d,) = rc.oracle.evaluate([D], {G: g, W: w})
        >>> print(d.ravel())
        [21. 43.]
    """
    name = "depthwise_conv2d_backward_input_nhwc"
    require_rank(grad, 4, name, "the gradient")
    sizes = constant_sizes(weight, "HWCM", name)
    check_factors(name, grad, weight)
    several = sizes["M"]
    require_channels(grad, weight, sizes["C"] * several, "NHWC", name)
    height, width = check_numbers(size, 2, name, "size")
    windows = make_windows(
        name, "NHWC", (sizes["H"], sizes["W"]), strides, padding, dilation
    )
    require_windows(grad, windows, (height, width))

    def factor(_out: Expr, channel: Expr, offsets: Mapping[str, Expr]) -> Expr:
        place = (channel // several, channel % several)
        return weight[(offsets["H"], offsets["W"], *place)]

    return sum_spread(
        grad,
        factor,
        windows,
        (height, width),
        out=sizes["C"],
        groups=sizes["C"],
        dtype=grad.dtype,
    )


def _sample_channels(draws: Draws) -> tuple[Array, Array, Array, dict[str, object]]:
    """Return images, weights, a gradient of the result, and attributes."""
    data, weight, grad, attributes = sample_gradient(draws)
    del attributes["groups"]
    dtype = data.dtype.name
    several = draws.integer(1, 2)
    images = data.transpose(0, 2, 3, 1)
    channels = images.shape[3]
    shape = (*weight.shape[2:], channels, several)
    factors = draws.array(shape, dtype, special=False)
    slopes = draws.array((len(data), *grad.shape[2:], channels * several), dtype)
    return np.ascontiguousarray(images), factors, slopes, attributes


def _sample_depthwise_conv2d_backward_input_nhwc(draws: Draws) -> Sample:
    data, weight, grad, attributes = _sample_channels(draws)
    return Sample((grad, weight), {**attributes, "size": data.shape[1:3]})


@meaning_of(
    depthwise_conv2d_backward_input_nhwc,
    sample=_sample_depthwise_conv2d_backward_input_nhwc,
)
def depthwise_conv2d_backward_input_nhwc_numpy(
    grad: Array,
    weight: Array,
    *,
    size: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
) -> Array:
    height, width, channels, _ = weight.shape
    grouped = weight.transpose(2, 3, 0, 1).reshape(-1, 1, height, width)
    result = conv2d_backward_data_numpy(
        grad.transpose(0, 3, 1, 2),
        grouped,
        size=size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=channels,
    )
    return np.ascontiguousarray(result.transpose(0, 2, 3, 1))


def depthwise_conv2d_backward_weight_nhwc(
    grad: Tensor,
    data: Tensor,
    *,
    kernel_size: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
) -> Tensor:
    """Return the gradient of `depthwise_conv2d_nhwc` with respect to its weights.

        result[k, c, j] = sum over (n, i) of grad[n, i, c * m + j] * x[n, y, c]
        y = i * stride + k * dilation - before

    where i, k and y are pairs, and x is 0 outside of the image. A NaN reaches all weights that it
    meets. Without images, the gradient is 0.

    Args:
        grad: [n, h', w', c * m], the gradient of the result, of any numeric dtype.
        data: [n, h, w, c], of the dtype of `grad`. All extents but n must be constant.
        kernel_size: height and width of the kernels.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.

    Returns:
        A tensor [kh, kw, c, m] of the dtype of `grad`.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: TVM, topi.nn.depthwise_conv2d_backward_weight_nhwc.

    Example::

        >>> G, X = rc.placeholder((1, 1, 2, 1), name="G"), rc.placeholder((1, 1, 3, 1), name="X")
        >>> D = rc.topi.depthwise_conv2d_backward_weight_nhwc(G, X, kernel_size=(1, 2))
        >>> g = np.array([1, 10], "float32").reshape(1, 1, 2, 1)
        >>> x = np.array([1, 2, 3], "float32").reshape(1, 1, 3, 1)
        >>> (d,) = rc.oracle.evaluate([D], {G: g, X: x})
        >>> print(d.ravel())
        [21. 32.]
    """
    name = "depthwise_conv2d_backward_weight_nhwc"
    require_rank(grad, 4, name, "the gradient")
    require_rank(data, 4, name, "the data")
    check_factors(name, grad, data)
    batch, *sizes = extents(data)
    what = f"{name}: the data's shape"
    height, width, channels = (require_constant(e, what) for e in sizes)
    out = require_constant(extents(grad)[3], f"{name}: the gradient's channels")
    several = out // channels if channels else 0
    what = "the gradient's channel extent"
    require_extent(out, max(several, 1) * channels, name, what, tensors=(grad, data))
    kernel = check_numbers(kernel_size, 2, name, "kernel_size")
    windows = make_windows(name, "NHWC", kernel, strides, padding, dilation)
    require_extent(extents(grad)[0], batch, name, "the number of gradients")
    require_windows(grad, windows, (height, width))
    padded = windows.pad(data, const(0, data.dtype))
    rn = reduce_axis(batch, "rn")
    ry = reduce_axis(extents(grad)[1], "ry")
    rx = reduce_axis(extents(grad)[2], "rx")

    def element(ky: Expr, kx: Expr, c: Expr, j: Expr) -> Expr:
        row = ry * windows.strides[0] + ky * windows.dilation[0]
        column = rx * windows.strides[1] + kx * windows.dilation[1]
        slope = grad[rn, ry, rx, c * several + j]
        return reducer.sum(slope * padded[rn, row, column, c], axis=[rn, ry, rx])

    return compute((*kernel, channels, several), element, name=name, tag=REDUCTION)


def _sample_depthwise_conv2d_backward_weight_nhwc(draws: Draws) -> Sample:
    data, weight, grad, attributes = _sample_channels(draws)
    return Sample((grad, data), {**attributes, "kernel_size": weight.shape[:2]})


@meaning_of(
    depthwise_conv2d_backward_weight_nhwc,
    sample=_sample_depthwise_conv2d_backward_weight_nhwc,
)
def depthwise_conv2d_backward_weight_nhwc_numpy(
    grad: Array,
    data: Array,
    *,
    kernel_size: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
) -> Array:
    channels = data.shape[3]
    grouped = conv2d_backward_weight_numpy(
        grad.transpose(0, 3, 1, 2),
        data.transpose(0, 3, 1, 2),
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=channels,
    )
    # From [c * m, 1, kh, kw] to [kh, kw, c, m].
    result = grouped.reshape(channels, -1, *kernel_size)
    return np.ascontiguousarray(result.transpose(2, 3, 0, 1))
