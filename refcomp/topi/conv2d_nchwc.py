"""Two-dimensional convolution with channels in blocks, the layout that vectors read best.

    y[n, O, i, j, o] = bias[O, o] + sum over (C, ky, kx, c) of
                       x[n, C, i * stride + ky, j * stride + kx, c] * w[O, C, ky, kx, c, o]

Channel C * (channels in a block) + c stands at block C, place c. The operator does not pad. Zeros
around an image belong to its buffer (the halo), and the producer of the image provides them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.conv2d import conv2d_numpy
from refcomp.topi.shapes import (
    Array,
    extents,
    require_constant,
    require_extent,
    require_rank,
    window_extent,
)
from refcomp.topi.tags import CONV2D_NCHWC, INJECTIVE


def conv2d_nchwc(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Sequence[int] = (1, 1),
) -> Tensor:
    """data [n, C, h, w, c], weight [O, C, kh, kw, c, o], bias [O, o] -> [n, O, h', w', o]."""
    _check_operands(data, weight, bias)
    batch, blocks, *size, block = extents(data)
    outs, depth, *kernel, lanes, out = (
        require_constant(e, "conv2d_nchwc: the weight's shape") for e in extents(weight)
    )
    require_extent(
        blocks, depth, "conv2d_nchwc", "the number of the data's channel blocks"
    )
    require_extent(block, lanes, "conv2d_nchwc", "the data's channel block")
    if len(strides) != 2 or min(strides) < 1:
        raise UserError(
            f"conv2d_nchwc: strides {tuple(strides)}",
            remedy="give two numbers >= 1: down and across",
        )
    height, width = (
        window_extent(s, k, stride, 1, 0, 0)
        for s, k, stride in zip(size, kernel, strides, strict=True)
    )
    axes = [
        reduce_axis(extent, name)
        for extent, name in zip(
            (depth, *kernel, lanes), ("rb", "ry", "rx", "rc"), strict=True
        )
    ]
    rb, ry, rx, rc = axes

    def element(n: Expr, o: Expr, y: Expr, x: Expr, lane: Expr) -> Expr:
        read = data[n, rb, y * strides[0] + ry, x * strides[1] + rx, rc]
        return reducer.sum(read * weight[o, rb, ry, rx, rc, lane], axis=axes)

    shape = (batch, outs, height, width, out)
    result: Tensor = compute(shape, element, name="conv2d", tag=CONV2D_NCHWC)
    return result if bias is None else _with_bias(result, bias)


def _check_operands(data: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    require_rank(data, 5, "conv2d_nchwc", "the data")
    require_rank(weight, 6, "conv2d_nchwc", "the weight")
    if bias is not None:
        require_rank(bias, 2, "conv2d_nchwc", "the bias")
    for other in (weight, bias):
        if other is not None and other.dtype != data.dtype:
            raise UserError(
                f"conv2d_nchwc: dtypes {data.dtype} and {other.dtype} are mixed"
            )


def _with_bias(data: Tensor, bias: Tensor) -> Tensor:
    for actual, axis in zip(extents(bias), (1, 4), strict=True):
        require_extent(actual, extents(data)[axis], "conv2d_nchwc", "the bias' extent")
    biased: Tensor = compute(
        data.shape,
        lambda *at: data[at] + bias[at[1], at[4]],
        name="bias",
        tag=INJECTIVE,
    )
    return biased


def conv2d_nchwc_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Sequence[int] = (1, 1),
) -> Array:
    plain = unblock_channels(data)
    outs, depth, kh, kw, lanes, out = weight.shape
    oihw = weight.transpose(0, 5, 1, 4, 2, 3).reshape(outs * out, depth * lanes, kh, kw)
    flat = None if bias is None else bias.reshape(-1)
    return block_channels(conv2d_numpy(plain, oihw, flat, strides=strides), out)


def block_channels(data: Array, block: int) -> Array:
    """[n, channels, h, w] in blocks of so many channels: [n, channels / block, h, w, block]."""
    batch, channels, height, width = data.shape
    blocked = data.reshape(batch, channels // block, block, height, width)
    return np.ascontiguousarray(blocked.transpose(0, 1, 3, 4, 2))


def unblock_channels(data: Array) -> Array:
    """Return the array whose channels `block_channels` put into blocks."""
    batch, blocks, height, width, block = data.shape
    return data.transpose(0, 1, 4, 2, 3).reshape(batch, blocks * block, height, width)
