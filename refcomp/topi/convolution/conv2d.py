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

from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.convolution.windows import (
    convolve,
    convolve_numpy,
    kind_of,
    sample_convolution,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, Pair
from refcomp.topi.spatial_padding import Padding
from refcomp.topi.tags import REDUCTION


def conv2d(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of images whose channels are the second axis.

    Args:
        data: [n, c, h, w], of any numeric dtype.
        weight: [o, c / groups, kh, kw], of constant extents and of the dtype of `data`.
        bias: [o], of `out_dtype`; optional.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        groups: number of groups into which the channels are divided.
        out_dtype: a wider dtype of the same kind, in which products are added up, such as int32 for
            int8. By default the dtype of `data`.

    Returns:
        A tensor [n, o, h', w'] of `out_dtype`. See `window_extent` for h' and w'.

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
    return convolve(
        data,
        weight,
        bias,
        operator="conv2d",
        layout="NCHW",
        weight_layout="OIHW",
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        out_dtype=out_dtype,
    )


def _sample_conv2d(draws: Draws) -> Sample:
    return sample_convolution(draws, "NCHW", "OIHW")


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
    out_dtype: DTypeLike | None = None,
) -> Array:
    return convolve_numpy(
        data,
        weight,
        bias,
        layout="NCHW",
        weight_layout="OIHW",
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        dtype=kind_of(data, out_dtype),
    )


def conv2d_nhwc(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of images whose channels are the last axis.

    Args:
        data: [n, h, w, c], of any numeric dtype.
        weight: [kh, kw, c / groups, o], of constant extents and of the dtype of `data`.
        bias: [o], of `out_dtype`; optional.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        groups: number of groups into which the channels are divided.
        out_dtype: a wider dtype of the same kind, in which products are added up. By default the
            dtype of `data`.

    Returns:
        A tensor [n, h', w', o] of `out_dtype`.

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
    # The schedule of this tag reads consecutive channels, which groups do not have.
    return convolve(
        data,
        weight,
        bias,
        operator="conv2d",
        layout="NHWC",
        weight_layout="HWIO",
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        out_dtype=out_dtype,
        tag=REDUCTION,
    )


def _sample_conv2d_nhwc(draws: Draws) -> Sample:
    return sample_convolution(draws, "NHWC", "HWIO")


@meaning_of(conv2d_nhwc, sample=_sample_conv2d_nhwc)
def conv2d_nhwc_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    out_dtype: DTypeLike | None = None,
) -> Array:
    return convolve_numpy(
        data,
        weight,
        bias,
        layout="NHWC",
        weight_layout="HWIO",
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        dtype=kind_of(data, out_dtype),
    )
