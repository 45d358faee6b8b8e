"""Classic operators of networks, such as `topi.nn.conv2d` and `topi.nn.pool`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from refcomp.classic.operators.arguments import (
    Sizes,
    chosen,
    lower_case,
    padding_of,
    pair_of,
    sizes_of,
    window_of,
)
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te.maths import all, if_then_else
from refcomp.te.operation import compute
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.broadcast import arithmetic
from refcomp.topi.contraction import binary, bitserial, fully_connected
from refcomp.topi.convolution import conv2d as convolutions
from refcomp.topi.convolution import (
    conv2d_layouts,
    conv_transpose,
    depthwise_conv2d,
)
from refcomp.topi.elementwise import rectifiers
from refcomp.topi.image import resize_images
from refcomp.topi.movement import axes as axes_of_tensors
from refcomp.topi.movement import blocks
from refcomp.topi.movement import padding as borders
from refcomp.topi.normalization import lrn as response
from refcomp.topi.normalization import norms
from refcomp.topi.normalization import softmax as exponentials
from refcomp.topi.pooling import adaptive_pool as adaptive
from refcomp.topi.pooling import global_pool as whole
from refcomp.topi.pooling import pool2d


def conv2d(
    data: Tensor,
    weight: Tensor,
    strides: Sizes,
    padding: Sizes | str,
    dilation: Sizes | str = 1,
    layout: str = "NCHW",
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of images: `conv2d_nchw`, `conv2d_hwcn` or `conv2d_nhwc`.

    TVM 0.4 has no dilation. There the layout and the dtype are the next arguments.
    """
    if isinstance(dilation, str):  # TVM 0.4 has the layout here, and no dilation
        out_dtype = layout if layout != "NCHW" else out_dtype
        layout = dilation
        dilation = 1
    choices = {"NCHW": conv2d_nchw, "HWCN": conv2d_hwcn, "NHWC": conv2d_nhwc}
    convolution = chosen(layout, choices, "the layout of conv2d")
    return convolution(data, weight, strides, padding, dilation, out_dtype)


def conv2d_nchw(
    data: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes = 1,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of images [n, c, h, w], by `topi.conv2d`."""
    return _convolution(
        convolutions.conv2d, data, weight, 2, stride, padding, dilation, out_dtype
    )


def conv2d_nhwc(
    data: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes = 1,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of images [n, h, w, c], by `topi.conv2d_nhwc`."""
    return _convolution(
        convolutions.conv2d_nhwc, data, weight, 0, stride, padding, dilation, out_dtype
    )


def conv2d_hwcn(
    data: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes = 1,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of images [h, w, c, n], by `topi.conv2d_hwcn`."""
    return _convolution(
        conv2d_layouts.conv2d_hwcn,
        data,
        weight,
        0,
        stride,
        padding,
        dilation,
        out_dtype,
    )


def depthwise_conv2d_nchw(
    data: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes = 1,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of each channel, by `topi.depthwise_conv2d_nchw`."""
    operator = depthwise_conv2d.depthwise_conv2d_nchw
    return _convolution(operator, data, weight, 2, stride, padding, dilation, out_dtype)


def depthwise_conv2d_nhwc(
    data: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes = 1,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of each channel, by `topi.depthwise_conv2d_nhwc`."""
    operator = depthwise_conv2d.depthwise_conv2d_nhwc
    return _convolution(operator, data, weight, 0, stride, padding, dilation, out_dtype)


def group_conv2d_nchw(
    data: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of each group of channels, by `topi.group_conv2d_nchw`."""
    operator = partial(conv2d_layouts.group_conv2d_nchw, groups=groups)
    return _convolution(operator, data, weight, 2, stride, padding, dilation, out_dtype)


def _convolution(
    operator: Callable[..., Tensor],
    data: Tensor,
    weight: Tensor,
    first: int,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    out_dtype: DTypeLike | None,
) -> Tensor:
    """Apply a convolution whose weights have their height at the axis `first`."""
    spread = pair_of(dilation, "the dilation")
    window = window_of(weight.shape[first : first + 2], spread)
    return operator(
        data,
        weight,
        strides=pair_of(stride, "the stride"),
        padding=padding_of(padding, window),
        dilation=spread,
        out_dtype=out_dtype,
    )


def conv2d_transpose_nchw(
    data: Tensor,
    weight: Tensor,
    strides: Sizes,
    padding: Sizes | str,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the transposed convolution of images, by `topi.conv2d_transpose`."""
    window = window_of(weight.shape[2:4], (1, 1))
    return conv_transpose.conv2d_transpose(
        data,
        weight,
        strides=pair_of(strides, "the stride"),
        padding=padding_of(padding, window),
        out_dtype=out_dtype,
    )


def pool(
    data: Tensor,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Tensor:
    """Return the maximum or the mean of windows: `topi.max_pool2d` or `topi.avg_pool2d`.

    Args:
        data: images.
        kernel: extents of a window down and across.
        stride: elements from one window to the next.
        padding: elements at the top, left, bottom and right.
        pool_type: max or avg.
        ceil_mode: True if the last window may reach beyond the padding.
        layout: NCHW, NHWC or NCHWc.
        count_include_pad: True if a mean includes the elements of the padding, which are 0.

    Raises:
        UserError: the kind is unknown, or an argument does not fit.
    """
    choices: dict[str, Callable[..., Tensor]] = {
        "max": pool2d.max_pool2d,
        "avg": partial(pool2d.avg_pool2d, count_include_pad=count_include_pad),
    }
    window = pair_of(kernel, "the kernel")
    return chosen(pool_type, choices, _POOLING)(
        data,
        kernel=window,
        strides=pair_of(stride, "the stride"),
        padding=padding_of(padding, window),
        layout=layout,
        ceil_mode=ceil_mode,
    )


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Return the maximum or mean of images: `global_max_pool2d` or `global_avg_pool2d`."""
    choices = {"max": whole.global_max_pool2d, "avg": whole.global_avg_pool2d}
    return chosen(pool_type, choices, _POOLING)(data, layout=layout)


def adaptive_pool(
    data: Tensor, output_size: Sizes, pool_type: str, layout: str = "NCHW"
) -> Tensor:
    """Return images of a given size, whose elements are maxima or means of windows.

    The operator is `topi.adaptive_max_pool2d` or `topi.adaptive_avg_pool2d`.
    """
    choices = {
        "max": adaptive.adaptive_max_pool2d,
        "avg": adaptive.adaptive_avg_pool2d,
    }
    size = pair_of(output_size, "the size of the result")
    return chosen(pool_type, choices, _POOLING)(data, output_size=size, layout=layout)


_POOLING = "the kind of pooling"


def upsampling(
    data: Tensor,
    scale_h: float,
    scale_w: float | str | None = None,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Tensor:
    """Enlarge images, by `topi.upsampling`. A single scale stands for both axes.

    TVM 0.5 has a single scale. There the layout and the method are the next arguments.
    """
    if isinstance(scale_w, str):
        method = layout if layout != "NCHW" else method
        layout = scale_w
        scale_w = scale_h
    return resize_images.upsampling(
        data,
        scale_h=scale_h,
        scale_w=scale_h if scale_w is None else scale_w,
        layout=layout,
        method=lower_case(method, "the method of upsampling"),
        align_corners=align_corners,
    )


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Return exp(x), divided by its sum along an axis, by `topi.softmax`."""
    return exponentials.softmax(x, axis=axis)


def dense(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the product with the transposed weight, by `topi.dense`."""
    return fully_connected.dense(data, weight, bias, out_dtype=out_dtype)


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """Return x, multiplied by `alpha` where it is negative, by `topi.leaky_relu`."""
    return rectifiers.leaky_relu(x, alpha=alpha)


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """Return x, multiplied where it is negative by the slope of its channel, by `topi.prelu`."""
    return rectifiers.prelu(x, _along(slope, axis, len(x.shape)))


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """Add a number to each channel, by `topi.add`."""
    return arithmetic.add(data, _along(bias, axis, len(data.shape)))


def scale_shift_nchw(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Multiply each channel by its scale, and add its shift: `topi.multiply` and `topi.add`."""
    return _scale_shift(x, scale, shift, axis=1)


def scale_shift_nhwc(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Do as `scale_shift_nchw`, with the channels last."""
    return _scale_shift(x, scale, shift, axis=3)


def _scale_shift(x: Tensor, scale: Tensor, shift: Tensor, axis: int) -> Tensor:
    factors = _along(scale, axis, len(x.shape))
    terms = _along(shift, axis, len(x.shape))
    return arithmetic.add(arithmetic.multiply(x, factors), terms)


def _along(values: Tensor, axis: int, rank: int) -> Tensor:
    """Return a vector as a tensor of rank `rank` that varies along one axis only."""
    behind = range(1, rank - axis % rank)
    return axes_of_tensors.expand_dims(values, axis=tuple(behind)) if behind else values


def pad(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    pad_value: float = 0.0,
    name: str = "",
) -> Tensor:
    """Add equal elements around a tensor, by `topi.pad`. The stage keeps refcomp's name."""
    del name
    before = sizes_of(pad_before, "the list of elements before")
    after = before if pad_after is None else sizes_of(pad_after, "the elements after")
    return borders.pad(data, pad_before=before, pad_after=after, pad_value=pad_value)


def mirror_pad(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    mode: str = "SYMMETRIC",
    name: str = "",
) -> Tensor:
    """Add mirrored elements around a tensor, by `topi.mirror_pad`. `name` changes nothing."""
    del name
    return borders.mirror_pad(
        data,
        pad_before=pad_before,
        pad_after=pad_after,
        mode=lower_case(mode, "the mode"),
    )


def dilate(data: Tensor, strides: Sequence[int], name: str = "dilate") -> Tensor:
    """Insert `strides - 1` zeros between neighbours along each axis.

    refcomp has no operator for this. The function makes a compute called `name`.

    Raises:
        UserError: there is not one stride for each axis.
    """
    steps = sizes_of(strides, "the list of strides")
    if len(steps) != len(data.shape) or min(steps, default=1) < 1:
        raise UserError(
            f"dilate cannot use the strides {steps}",
            remedy=f"give {len(data.shape)} numbers >= 1, one for each axis",
        )
    pairs = list(zip(data.shape, steps, strict=True))

    def element(*index: Expr) -> Expr:
        places = list(zip(index, steps, strict=True))
        on_grid = [i % step == 0 for i, step in places if step > 1]
        value = data[tuple(i // step for i, step in places)]
        zero = const(0, data.dtype)
        return if_then_else(all(*on_grid), value, zero) if on_grid else value

    shape = [(extent - 1) * step + 1 for extent, step in pairs]
    return compute(shape, element, name=name)


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Move each block of pixels into the channels of a pixel, by `topi.space_to_depth`."""
    return chosen(layout, {"NCHW": blocks.space_to_depth}, _LAYOUT)(
        data, block_size=block_size
    )


def depth_to_space(
    data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR"
) -> Tensor:
    """Move the channels of each pixel into a block of pixels, by `topi.depth_to_space`."""
    return chosen(layout, {"NCHW": blocks.depth_to_space}, _LAYOUT)(
        data, block_size=block_size, mode=mode
    )


_LAYOUT = "the layout of the images"


def bitserial_dense(
    data: Tensor,
    weight: Tensor,
    data_bits: int,
    weight_bits: int,
    pack_dtype: DTypeLike = "uint32",
    out_dtype: DTypeLike = "int16",
    unipolar: bool = True,
) -> Tensor:
    """Return the product with the transposed weight, bit by bit, by `topi.bitserial_dense`."""
    return bitserial.bitserial_dense(
        data,
        weight,
        data_bits=data_bits,
        weight_bits=weight_bits,
        pack_dtype=pack_dtype,
        out_dtype=out_dtype,
        unipolar=unipolar,
    )


def binarize_pack(data: Tensor, axis: int | None = None, name: str = "") -> Tensor:
    """Return the signs of numbers in words of 32 bits, by `topi.binarize_pack`.

    Without `axis`, the numbers of a word lie along the last axis. `name` changes nothing.
    """
    del name
    return binary.binarize_pack(data, axis=-1 if axis is None else axis)


def lrn(
    data: Tensor,
    size: int,
    axis: int = 1,
    alpha: float = 0.0001,
    beta: float = 0.75,
    bias: float = 2,
) -> Tensor:
    """Divide each element by a power of the mean square of its neighbours, by `topi.lrn`."""
    return response.lrn(
        data, size=size, axis=axis, alpha=alpha, beta=beta, bias=float(bias)
    )


def l2_normalize(data: Tensor, eps: float, axis: Sequence[int] | None = None) -> Tensor:
    """Divide by the Euclidean norm along axes, by `topi.l2_normalize`."""
    listed = range(len(data.shape)) if axis is None else axis
    axes = sizes_of(listed, "the list of axes")
    return norms.l2_normalize(data, axis=axes, epsilon=eps)
