"""Two-dimensional convolution, with the channels second (conv2d) or last (conv2d_nhwc).

    y[n, o, i, j] = bias[o] + sum over (c, ky, kx) of x[n, c, row, column] * w[o, c, ky, kx]
    row = i * stride + ky * dilation - padding, column likewise

where x is 0 outside. With groups, output channel o reads only the input channels of its group.
The layout with channels last and weights [ky, kx, in, out] lets vectors run over output channels.
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
from refcomp.topi.pad import Padding, check_padding, pad_numpy, pad_spatial
from refcomp.topi.shapes import (
    Array,
    Extent,
    extents,
    require_constant,
    require_extent,
    require_rank,
    widen,
    window_extent,
)
from refcomp.topi.tags import CONV2D_NHWC, INJECTIVE, REDUCTION

Pair = Sequence[int]


@dataclass(frozen=True, slots=True)
class _Window:
    """The output's height and width, and how they are reached from the padded input."""

    height: Extent
    width: Extent
    strides: tuple[int, int]
    dilation: tuple[int, int]

    def row(self, y: Expr, ky: Expr) -> Expr:
        return y * self.strides[0] + ky * self.dilation[0]

    def column(self, x: Expr, kx: Expr) -> Expr:
        return x * self.strides[1] + kx * self.dilation[1]


def _pair(value: Pair, what: str) -> tuple[int, int]:
    if len(value) != 2 or any(v < 1 for v in value):
        raise UserError(
            f"conv2d: {what} {tuple(value)}",
            remedy="give two numbers >= 1: down and across",
        )
    return value[0], value[1]


def _window(
    size: Sequence[Extent],
    kernel: Pair,
    strides: Pair,
    padding: Padding,
    dilation: Pair,
) -> _Window:
    sy, sx = _pair(strides, "strides")
    dy, dx = _pair(dilation, "dilation")
    top, left, bottom, right = padding
    height = window_extent(size[0], kernel[0], sy, dy, top, bottom)
    width = window_extent(size[1], kernel[1], sx, dx, left, right)
    return _Window(height, width, (sy, sx), (dy, dx))


def _check_operands(data: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    require_rank(data, 4, "conv2d", "the data")
    require_rank(weight, 4, "conv2d", "the weight")
    if bias is not None:
        require_rank(bias, 1, "conv2d", "the bias")
    for other in (weight, bias):
        if other is not None and other.dtype != data.dtype:
            raise UserError(f"conv2d: dtypes {data.dtype} and {other.dtype} are mixed")


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
    """data [n, c, h, w], weight [o, c / groups, kh, kw], bias [o] -> [n, o, h', w']."""
    _check_operands(data, weight, bias)
    batch, channels, *size = extents(data)
    out, depth, *kernel = (
        require_constant(e, "conv2d: the weight's shape") for e in extents(weight)
    )
    if groups < 1 or out % groups:
        raise UserError(
            f"conv2d: {out} output channels do not divide into {groups} groups"
        )
    require_extent(channels, depth * groups, "conv2d", "the data's channel extent")
    window = _window(size, kernel, strides, check_padding(padding, "conv2d"), dilation)
    padded = pad_spatial(data, padding, const(0, data.dtype), 2)
    rc, ry, rx = (
        reduce_axis(e, n)
        for e, n in zip((depth, *kernel), ("rc", "ry", "rx"), strict=True)
    )

    def element(n: Expr, o: Expr, y: Expr, x: Expr) -> Expr:
        channel = rc.var if groups == 1 else o // (out // groups) * depth + rc
        read = padded[n, channel, window.row(y, ry.var), window.column(x, rx.var)]
        return reducer.sum(read * weight[o, rc, ry, rx], axis=[rc, ry, rx])

    shape = (batch, out, window.height, window.width)
    result: Tensor = compute(shape, element, name="conv2d", tag=REDUCTION)
    return result if bias is None else _with_bias(result, bias, 1)


def _with_bias(data: Tensor, bias: Tensor, axis: int) -> Tensor:
    """`data` plus the element of `bias` that each channel, along `axis`, has."""
    require_extent(extents(bias)[0], extents(data)[axis], "conv2d", "the bias' extent")
    biased: Tensor = compute(
        data.shape, lambda *at: data[at] + bias[at[axis]], name="bias", tag=INJECTIVE
    )
    return biased


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
    span = [x.shape[2 + k] - dilation[k] * (kernel[k] - 1) - 1 for k in (0, 1)]
    height, width = (span[k] // strides[k] + 1 for k in (0, 1))
    result = np.zeros((len(x), out, height, width), x.dtype)
    per_group = out // groups
    for o, ky, kx in np.ndindex(out, *kernel):
        first = o // per_group * depth
        rows = slice(ky * dilation[0], ky * dilation[0] + span[0] + 1, strides[0])
        columns = slice(kx * dilation[1], kx * dilation[1] + span[1] + 1, strides[1])
        seen = x[:, first : first + depth, rows, columns]
        result[:, o] += (seen * w[o, :, ky, kx].reshape(-1, 1, 1)).sum(
            axis=1, dtype=x.dtype
        )
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
    """data [n, h, w, c], weight [kh, kw, c, o], bias [o] -> [n, h', w', o]."""
    _check_operands(data, weight, bias)
    batch, *size, channels = extents(data)
    *kernel, depth, out = (
        require_constant(e, "conv2d: the weight's shape") for e in extents(weight)
    )
    require_extent(channels, depth, "conv2d", "the data's channel extent")
    window = _window(size, kernel, strides, check_padding(padding, "conv2d"), dilation)
    padded = pad_spatial(data, padding, const(0, data.dtype), 1)
    ry, rx, rc = (
        reduce_axis(e, n)
        for e, n in zip((*kernel, depth), ("ry", "rx", "rc"), strict=True)
    )

    def element(n: Expr, y: Expr, x: Expr, o: Expr) -> Expr:
        read = padded[n, window.row(y, ry.var), window.column(x, rx.var), rc]
        return reducer.sum(read * weight[ry, rx, rc, o], axis=[ry, rx, rc])

    shape = (batch, window.height, window.width, out)
    result: Tensor = compute(shape, element, name="conv2d", tag=CONV2D_NHWC)
    return result if bias is None else _with_bias(result, bias, 3)


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
