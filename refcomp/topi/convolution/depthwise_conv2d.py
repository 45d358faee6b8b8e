"""Depthwise convolution: each channel has kernels of its own, and meets no other channel.

    y[n, c * m + j] = bias[c * m + j] + correlation of x[n, c] with w[c, j], for j below m

NaN, infinities and sums of nothing are as in `conv2d`. The kernel is not mirrored.

Reference: A. G. Howard et al., "MobileNets", arXiv 1704.04861, 2017.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te.tensor import DTypeLike, IterVar, Tensor
from refcomp.topi.contraction.dense import check_factors, wider_dtype
from refcomp.topi.contraction.fully_connected import add_bias
from refcomp.topi.convolution.windows import (
    Tap,
    constant_sizes,
    convolve_numpy,
    kind_of,
    make_windows,
    require_channels,
    sample_convolution,
    spatial_axes,
    sum_windows,
    to_plain,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, Pair, require_rank
from refcomp.topi.spatial_padding import Padding

# Layout of images -> layout of weights: C the channels, M the kernels of a channel.
_WEIGHTS = {"NCHW": "CMHW", "NHWC": "HWCM"}


def depthwise_conv2d_nchw(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of each channel with kernels of its own. Channels are second.

        y[n, c * m + j] = bias[c * m + j] + correlation of x[n, c] with w[c, j], for j below m

    Args:
        data: [n, c, h, w], of any numeric dtype.
        weight: [c, m, kh, kw], of constant extents and of the dtype of `data`: m kernels for each
            channel.
        bias: [c * m], of `out_dtype`; optional.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        out_dtype: a wider dtype of the same kind, in which products are added up. By default the
            dtype of `data`.

    Returns:
        A tensor [n, c * m, h', w'] of `out_dtype`. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: TVM, topi.nn.depthwise_conv2d_nchw. NaN propagates within its channel.

    Example::

        >>> X, W = rc.placeholder((1, 1, 1, 2), name="X"), rc.placeholder((1, 2, 1, 2), name="W")
        >>> Y = rc.topi.depthwise_conv2d_nchw(X, W)
        >>> x, w = np.array([[[[3, 4]]]], "float32"), np.array([[[[1, 1]], [[0, 10]]]], "float32")
        >>> (y,) = rc.oracle.evaluate([Y], {X: x, W: w})
        >>> print(y[0, :, 0, 0])
        [ 7. 40.]
    """
    return _convolve_channels(
        data,
        weight,
        bias,
        "NCHW",
        strides=strides,
        padding=padding,
        dilation=dilation,
        out_dtype=out_dtype,
    )


def _convolve_channels(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    layout: str,
    *,
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    out_dtype: DTypeLike | None,
) -> Tensor:
    """Return a depthwise convolution in a layout of `_WEIGHTS`."""
    operator = f"depthwise_conv2d_{layout.lower()}"
    weight_layout = _WEIGHTS[layout]
    require_rank(data, 4, operator, "the data")
    sizes = constant_sizes(weight, weight_layout, operator)
    check_factors(operator, data, weight)
    dtype = wider_dtype(data.dtype, out_dtype, operator)
    require_channels(data, weight, sizes["C"], layout, operator)
    kernel = [sizes[letter] for letter in spatial_axes(layout)]
    windows = make_windows(operator, layout, kernel, strides, padding, dilation)
    several = sizes["M"]

    def product(read: Expr, tap: Tap) -> Expr:
        at: dict[str, Expr | IterVar] = {
            "C": tap.out // several,
            "M": tap.out % several,
            **tap.offsets,
        }
        factor = weight[tuple(at[letter] for letter in weight_layout)]
        return read.astype(dtype) * factor.astype(dtype)

    result = sum_windows(
        windows.pad(data, const(0, data.dtype)),
        windows,
        windows.counts(data),
        product,
        out=sizes["C"] * several,
        depth=1,
        groups=sizes["C"],
        name=operator,
    )
    if bias is None:
        return result
    return add_bias(result, bias, operator, layout.index("C"))


def _sample_channels(draws: Draws, layout: str) -> Sample:
    # In groups of one channel, the weights [o, 1, ...] are those of c * m kernels.
    sample = sample_convolution(draws, layout, "OIHW")
    data, weight, bias = sample.operands
    assert data is not None and weight is not None
    channels = data.shape[layout.index("C")]
    several = draws.integer(1, 2)
    kernel = weight.shape[2:]
    shape = dict(zip("CMHW", (channels, several, *kernel), strict=True))
    own = [shape[letter] for letter in _WEIGHTS[layout]]
    weight = draws.array(own, data.dtype.name, special=False)
    if bias is not None:
        bias = draws.array((channels * several,), bias.dtype.name)
    attributes = dict(sample.attributes)
    del attributes["groups"]
    return Sample((data, weight, bias), attributes)


def _sample_depthwise_conv2d_nchw(draws: Draws) -> Sample:
    return _sample_channels(draws, "NCHW")


def _channels_numpy(
    data: Array,
    weight: Array,
    bias: Array | None,
    layout: str,
    *,
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    out_dtype: DTypeLike | None,
) -> Array:
    # As many groups as channels.
    plain = to_plain(weight, _WEIGHTS[layout], "CMHW")
    channels, several, *kernel = plain.shape
    return convolve_numpy(
        data,
        plain.reshape(channels * several, 1, *kernel),
        bias,
        layout=layout,
        weight_layout="OIHW",
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=channels,
        dtype=kind_of(data, out_dtype),
    )


@meaning_of(depthwise_conv2d_nchw, sample=_sample_depthwise_conv2d_nchw)
def depthwise_conv2d_nchw_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    out_dtype: DTypeLike | None = None,
) -> Array:
    return _channels_numpy(
        data,
        weight,
        bias,
        "NCHW",
        strides=strides,
        padding=padding,
        dilation=dilation,
        out_dtype=out_dtype,
    )


def depthwise_conv2d_nhwc(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of each channel with kernels of its own. Channels are last.

    Args:
        data: [n, h, w, c], of any numeric dtype.
        weight: [kh, kw, c, m], of constant extents and of the dtype of `data`: m kernels for each
            channel.
        bias: [c * m], of `out_dtype`; optional.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        out_dtype: a wider dtype of the same kind, in which products are added up. By default the
            dtype of `data`.

    Returns:
        A tensor [n, h', w', c * m] of `out_dtype`. See `window_extent` for h' and w'.

    Raises:
        UserError: as for `depthwise_conv2d_nchw`.

    Reference: TVM, topi.nn.depthwise_conv2d_nhwc. NaN propagates within its channel.

    Example::

        >>> X, W = rc.placeholder((1, 1, 2, 1), name="X"), rc.placeholder((1, 2, 1, 2), name="W")
        >>> Y = rc.topi.depthwise_conv2d_nhwc(X, W)
        >>> x = np.array([3, 4], "float32").reshape(1, 1, 2, 1)
        >>> w = np.array([[1, 0], [1, 10]], "float32").reshape(1, 2, 1, 2)
        >>> print(*rc.oracle.evaluate([Y], {X: x, W: w}))
        [[[[ 7. 40.]]]]
    """
    return _convolve_channels(
        data,
        weight,
        bias,
        "NHWC",
        strides=strides,
        padding=padding,
        dilation=dilation,
        out_dtype=out_dtype,
    )


def _sample_depthwise_conv2d_nhwc(draws: Draws) -> Sample:
    return _sample_channels(draws, "NHWC")


@meaning_of(depthwise_conv2d_nhwc, sample=_sample_depthwise_conv2d_nhwc)
def depthwise_conv2d_nhwc_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    out_dtype: DTypeLike | None = None,
) -> Array:
    return _channels_numpy(
        data,
        weight,
        bias,
        "NHWC",
        strides=strides,
        padding=padding,
        dilation=dilation,
        out_dtype=out_dtype,
    )
