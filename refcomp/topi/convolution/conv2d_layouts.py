"""Two-dimensional convolution in further classic forms: images last (HWCN), and with groups.

NaN, infinities and sums of nothing are as in `conv2d`. The kernel is not mirrored.
"""

from __future__ import annotations

from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.convolution.conv2d import conv2d_numpy
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


def conv2d_hwcn(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of images that are the last axis, so that vectors run over images.

    Args:
        data: [h, w, c, n], of any numeric dtype.
        weight: [kh, kw, c, o], of constant extents and of the dtype of `data`.
        bias: [o], of `out_dtype`; optional.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        out_dtype: a wider dtype of the same kind, in which products are added up. By default the
            dtype of `data`.

    Returns:
        A tensor [h', w', o, n] of `out_dtype`. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: TVM, topi.nn.conv2d_hwcn.

    Example::

        >>> X, W = rc.placeholder((1, 2, 1, 2), name="X"), rc.placeholder((1, 2, 1, 1), name="W")
        >>> Y = rc.topi.conv2d_hwcn(X, W)
        >>> x, w = np.arange(4).reshape(1, 2, 1, 2), np.array([1, 10]).reshape(1, 2, 1, 1)
        >>> print(*rc.oracle.evaluate([Y], {X: x.astype("float32"), W: w.astype("float32")}))
        [[[[20. 31.]]]]
    """
    return convolve(
        data,
        weight,
        bias,
        operator="conv2d_hwcn",
        layout="HWCN",
        weight_layout="HWIO",
        strides=strides,
        padding=padding,
        dilation=dilation,
        out_dtype=out_dtype,
    )


def _sample_conv2d_hwcn(draws: Draws) -> Sample:
    while True:
        sample = sample_convolution(draws, "HWCN", "HWIO")
        attributes = dict(sample.attributes)
        if attributes.pop("groups") == 1:
            return Sample(sample.operands, attributes)


@meaning_of(conv2d_hwcn, sample=_sample_conv2d_hwcn)
def conv2d_hwcn_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    out_dtype: DTypeLike | None = None,
) -> Array:
    return convolve_numpy(
        data,
        weight,
        bias,
        layout="HWCN",
        weight_layout="HWIO",
        strides=strides,
        padding=padding,
        dilation=dilation,
        dtype=kind_of(data, out_dtype),
    )


def group_conv2d_nchw(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    groups: int,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of images in groups of channels, which do not mix.

    It is `conv2d` under the classic name, with `groups` required.

    Args:
        data: [n, c, h, w], of any numeric dtype.
        weight: [o, c / groups, kh, kw], of constant extents and of the dtype of `data`.
        bias: [o], of `out_dtype`; optional.
        groups: number of groups into which the channels are divided.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        out_dtype: a wider dtype of the same kind, in which products are added up. By default the
            dtype of `data`.

    Returns:
        A tensor [n, o, h', w'] of `out_dtype`. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: TVM, topi.nn.group_conv2d_nchw.

    Example::

        >>> X, W = rc.placeholder((1, 2, 1, 1), name="X"), rc.placeholder((2, 1, 1, 1), name="W")
        >>> Y = rc.topi.group_conv2d_nchw(X, W, groups=2)
        >>> x, w = np.array([2, 3]).reshape(1, 2, 1, 1), np.array([10, 100]).reshape(2, 1, 1, 1)
        >>> (y,) = rc.oracle.evaluate([Y], {X: x.astype("float32"), W: w.astype("float32")})
        >>> print(y[0, :, 0, 0])
        [ 20. 300.]
    """
    return convolve(
        data,
        weight,
        bias,
        operator="group_conv2d_nchw",
        layout="NCHW",
        weight_layout="OIHW",
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        out_dtype=out_dtype,
    )


def _sample_group_conv2d_nchw(draws: Draws) -> Sample:
    return sample_convolution(draws, "NCHW", "OIHW")


@meaning_of(group_conv2d_nchw, sample=_sample_group_conv2d_nchw)
def group_conv2d_nchw_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    groups: int,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    out_dtype: DTypeLike | None = None,
) -> Array:
    return conv2d_numpy(
        data,
        weight,
        bias,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        out_dtype=out_dtype,
    )
