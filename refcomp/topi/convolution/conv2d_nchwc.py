"""Two-dimensional convolution with channels in blocks, the layout that vectors read best.

    y[n, O, i, j, o] = bias[O, o] + sum over (C, ky, kx, c) of
                       x[n, C, i * stride + ky, j * stride + kx, c] * w[O, C, ky, kx, c, o]

Channel C * (channels in a block) + c stands at block C, place c. The operator does not pad. Zeros
around an image belong to its buffer (the halo), and the producer of the image provides them. NaN
and empty sums are as in `conv2d`.

Reference: Y. Liu et al., "Optimizing CNN Model Inference on CPUs", USENIX ATC 2019, section 3.1.
"""

from __future__ import annotations

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.te import reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    Pair,
    check_pair,
    extents,
    require_constant,
    require_extent,
    require_one_dtype,
    require_rank,
    window_extent,
)
from refcomp.topi.tags import CONV2D_NCHWC, INJECTIVE


def conv2d_nchwc(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
) -> Tensor:
    """Return the convolution of images whose channels are in blocks.

    Args:
        data: [n, C, h, w, c], of any numeric dtype: C blocks of c channels.
        weight: [O, C, kh, kw, c, o], of constant extents and of the dtype of `data`.
        bias: [O, o], of the dtype of `data`; optional.
        strides: elements down and across, from one window to the next.

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
    batch, blocks, *size, block = extents(data)
    outs, depth, *kernel, lanes, out = (
        require_constant(e, "conv2d_nchwc: the weight's shape") for e in extents(weight)
    )
    require_extent(
        blocks, depth, "conv2d_nchwc", "the number of the data's channel blocks"
    )
    require_extent(block, lanes, "conv2d_nchwc", "the data's channel block")
    down, across = check_pair(strides, "conv2d_nchwc", "strides")
    height = window_extent(size[0], kernel[0], down, 1, 0, 0)
    width = window_extent(size[1], kernel[1], across, 1, 0, 0)
    rb = reduce_axis(depth, "rb")
    ry = reduce_axis(kernel[0], "ry")
    rx = reduce_axis(kernel[1], "rx")
    rc = reduce_axis(lanes, "rc")

    def element(n: Expr, o: Expr, y: Expr, x: Expr, lane: Expr) -> Expr:
        read = data[n, rb, y * down + ry, x * across + rx, rc]
        return reducer.sum(
            read * weight[o, rb, ry, rx, rc, lane], axis=[rb, ry, rx, rc]
        )

    shape = (batch, outs, height, width, out)
    result = compute(shape, element, name="conv2d", tag=CONV2D_NCHWC)
    if bias is None:
        return result
    for actual, expected in zip(extents(bias), (outs, out), strict=True):
        require_extent(actual, expected, "conv2d_nchwc", "the bias' extent")
    return compute(
        result.shape,
        lambda *at: result[at] + bias[at[1], at[4]],
        name="bias",
        tag=INJECTIVE,
    )


def _sample_conv2d_nchwc(draws: Draws) -> Sample:
    blocks = draws.integer(1, 2)
    outs = draws.integer(1, 2)
    dtype = draws.number_dtype()
    data = draws.array((draws.extent(0), blocks, *draws.shape(2, 2, least=3), 4), dtype)
    kernel = draws.pair(1, 3)
    weight = draws.array((outs, blocks, *kernel, 4, 4), dtype, special=False)
    bias = draws.array((outs, 4), dtype) if draws.flag() else None
    return Sample((data, weight, bias), {"strides": draws.pair(1, 2)})


@meaning_of(conv2d_nchwc, sample=_sample_conv2d_nchwc)
def conv2d_nchwc_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Pair = (1, 1),
) -> Array:
    # By conv2d in its own layout: the sums are the same, only the places of channels differ.
    plain = unblock_channels(data)
    outs, depth, kh, kw, lanes, out = weight.shape
    oihw = weight.transpose(0, 5, 1, 4, 2, 3).reshape(outs * out, depth * lanes, kh, kw)
    flat = None if bias is None else bias.reshape(-1)
    return block_channels(conv2d_numpy(plain, oihw, flat, strides=strides), out)


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
