"""Two-dimensional convolution with channels in blocks, the layout that vectors read best.

    y[n, O, i, j, o] = bias[O, o] + sum over (C, ky, kx, c) of
                       x[n, C, row, column, c] * w[O, C, ky, kx, c, o]
    row = i * stride + ky * dilation - padding, and column likewise with j and kx

Channel C * (channels in a block) + c stands at block C, place c. Blocks of input and of output
channels may differ in length. With groups, a block of output channels reads only the blocks of its
group. NaN and empty sums are as in `conv2d`.

Reference: Y. Liu et al., "Optimizing CNN Model Inference on CPUs", USENIX ATC 2019, section 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import reducer
from refcomp.te.extents import Extent, extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.windows import check_groups, make_windows
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    Pair,
    require_constant,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.spatial_padding import Padding
from refcomp.topi.tags import CONV2D_NCHWC, PAD

# The axes of blocked images by `windows`' letters; c is the place of a channel within its block.
BLOCKED_LAYOUT = "NCHWc"


def conv2d_nchwc(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Tensor:
    """Return the convolution of images whose channels are in blocks.

    Args:
        data: [n, C, h, w, c], of any numeric dtype: C blocks of c channels.
        weight: [O, C / groups, kh, kw, c, o], of constant extents and of the dtype of `data`.
        bias: [O, o], of the dtype of `data`; optional.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        groups: number of groups into which the blocks are divided.

    Returns:
        A tensor [n, O, h', w', o] of the dtype of `data`. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: Y. Liu et al., "Optimizing CNN Model Inference on CPUs", USENIX ATC 2019, for the
    layout.

    Example::

        >>> X = rc.placeholder((1, 1, 3, 3, 2), name="X")
        >>> W = rc.placeholder((1, 1, 2, 2, 2, 4), name="W")
        >>> Y = rc.topi.conv2d_nchwc(X, W)
        >>> x, w = np.ones((1, 1, 3, 3, 2), "float32"), np.ones((1, 1, 2, 2, 2, 4), "float32")
        >>> (y,) = rc.oracle.evaluate([Y], {X: x, W: w})
        >>> y.shape, float(y.min()), float(y.max())
        ((1, 1, 2, 2, 4), 8.0, 8.0)
    """
    require_rank(data, 5, "conv2d_nchwc", "the data")
    require_rank(weight, 6, "conv2d_nchwc", "the weight")
    if bias is not None:
        require_rank(bias, 2, "conv2d_nchwc", "the bias")
    require_one_dtype("conv2d_nchwc", data, weight, bias)
    batch, blocks, _, _, block = extents(data)
    outs, depth, *kernel, lanes, out = (
        require_constant(e, "conv2d_nchwc: the weight's shape") for e in extents(weight)
    )
    check_groups(groups, outs, "conv2d_nchwc")
    require_extent(
        blocks,
        depth * groups,
        "conv2d_nchwc",
        "the number of the data's channel blocks",
    )
    require_extent(block, lanes, "conv2d_nchwc", "the data's channel block")
    windows = make_windows(
        "conv2d_nchwc", BLOCKED_LAYOUT, kernel, strides, padding, dilation
    )
    height, width = windows.counts(data)
    padded = windows.pad(data, const(0, data.dtype))
    down, across = windows.strides
    if kernel == [1, 1] and padded is data:
        padded = _every_window(data, (height, width), (down, across))
        down, across = 1, 1
    gap_down, gap_across = windows.dilation
    rb = reduce_axis(depth, "rb")
    ry = reduce_axis(kernel[0], "ry")
    rx = reduce_axis(kernel[1], "rx")
    rc = reduce_axis(lanes, "rc")

    def element(n: Expr, o: Expr, y: Expr, x: Expr, lane: Expr) -> Expr:
        # With one group the quotient is 0.
        read_block = rb.var if groups == 1 else o // (outs // groups) * depth + rb
        row = y * down + ry * gap_down
        column = x * across + rx * gap_across
        read = padded[n, read_block, row, column, rc]
        return reducer.sum(
            read * weight[o, rb, ry, rx, rc, lane], axis=[rb, ry, rx, rc]
        )

    shape = (batch, outs, height, width, out)
    result = compute(shape, element, name="conv2d", tag=CONV2D_NCHWC)
    if bias is None:
        return result
    return add_blocked_bias(result, bias, "conv2d_nchwc")


def _every_window(data: Tensor, counts: Sequence[Extent], strides: Pair) -> Tensor:
    """Return the pixels that windows of one pixel read, without those between them.

    All blocks of output channels read these pixels, which then are neighbours in memory.
    """
    if tuple(strides) == (1, 1):
        return data
    batch, blocks, _, _, block = extents(data)
    down, across = strides
    return compute(
        (batch, blocks, *counts, block),
        lambda n, o, y, x, lane: data[n, o, y * down, x * across, lane],
        name="every",
        tag=PAD,
    )


def add_blocked_bias(result: Tensor, bias: Tensor, operator: str) -> Tensor:
    """Return images [n, O, h, w, o] plus a bias [O, o] for each channel.

    Raises:
        UserError: an extent of the bias does not fit.
    """
    _, outs, _, _, out = extents(result)
    for actual, expected in zip(extents(bias), (outs, out), strict=True):
        require_extent(actual, expected, operator, "the bias' extent")
    return compute(
        result.shape,
        lambda *at: result[at] + bias[at[1], at[4]],
        name="bias",
        tag=INJECTIVE,
    )


def _sample_conv2d_nchwc(draws: Draws) -> Sample:
    groups = draws.choice((1, 1, 2))
    blocks = draws.integer(1, 2)
    outs = draws.integer(1, 2) * groups
    dtype = draws.number_dtype()
    # A window spans at most 5 elements.
    size = draws.pair(5, 6)
    data = draws.array((draws.extent(0), blocks * groups, *size, 4), dtype)
    kernel = draws.pair(1, 3)
    weight = draws.array((outs, blocks, *kernel, 4, 4), dtype, special=False)
    bias = draws.array((outs, 4), dtype) if draws.flag() else None
    attributes = {
        "strides": draws.pair(1, 2),
        "padding": tuple(draws.integer(0, 1) for _ in range(4)),
        "dilation": (1, 1) if draws.flag() else (2, 2),
        "groups": groups,
    }
    return Sample((data, weight, bias), attributes)


@meaning_of(conv2d_nchwc, sample=_sample_conv2d_nchwc)
def conv2d_nchwc_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    # By conv2d in its own layout: the sums are the same, only the places of channels differ.
    plain = unblock_channels(data)
    outs, depth, kh, kw, lanes, out = weight.shape
    oihw = weight.transpose(0, 5, 1, 4, 2, 3).reshape(outs * out, depth * lanes, kh, kw)
    flat = None if bias is None else bias.reshape(-1)
    result = conv2d_numpy(
        plain,
        oihw,
        flat,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    return block_channels(result, out)


def block_channels(data: Array, block: int) -> Array:
    """Return images [n, channels, h, w] as [n, channels / block, h, w, block].

    `block` divides the number of channels.
    """
    batch, channels, height, width = data.shape
    blocked = data.reshape(batch, channels // block, block, height, width)
    return np.ascontiguousarray(blocked.transpose(0, 1, 3, 4, 2))


def unblock_channels(data: Array) -> Array:
    """Return images [n, blocks, h, w, block] as [n, blocks * block, h, w].

    This is the inverse of `block_channels`.
    """
    batch, blocks, height, width, block = data.shape
    return data.transpose(0, 1, 4, 2, 3).reshape(batch, blocks * block, height, width)
