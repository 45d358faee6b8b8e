"""Convolution of quantized images with channels in blocks, and weights in pairs.

    sums[n, O, i, j, o] = sum over (C, ky, kx, c) of
                          (x[n, C, row, column, c] - zx) * z[O, C, ky, kx, c, o]
    row = i * stride + ky * dilation - padding, and column likewise with j and kx

Here z are the weights less their zero points, and x is zx outside of the image. Sums are integers
of 32 bits and wrap, so they do not depend on an order.

Channels c and c + p of a block are the halves of an i32 (`refcomp.ir.integer_pairs`). Here p is
half the block, rounded up. So vectors make the pairs of a block from neighbours in memory. x86 then
adds the products of 8, 16 or 32 integers by one instruction.

Reference: Y. Liu et al., "Optimizing CNN Model Inference on CPUs", USENIX ATC 2019, for the layout;
Intel, "Lower Numerical Precision Deep Learning Inference and Training", 2018, for the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from refcomp.foundation.dtype import I32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.integer_pairs import make_pair, pair_product
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import (
    Extent,
    extents,
    read_broadcast,
    require_extent,
    require_tensor,
)
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.contraction.quantized import (
    require_bytes,
    require_parameter,
    require_zero_point,
    result_dtype,
    shifted,
)
from refcomp.topi.convolution.conv2d_nchwc import (
    BLOCKED_LAYOUT,
    add_blocked_bias,
    block_channels,
    unblock_channels,
)
from refcomp.topi.convolution.quantized_conv2d import conv2d_integer_numpy
from refcomp.topi.convolution.windows import Windows, check_groups, make_windows
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.rounding import round_to_integer, round_to_integer_numpy
from refcomp.topi.shapes import Array, Pair, require_constant, require_rank
from refcomp.topi.spatial_padding import Padding
from refcomp.topi.tags import CONV2D_NCHWC, PAD, SHARED

_NAME = "quantized_conv2d_nchwc"


def quantized_conv2d_nchwc(
    data: Tensor,
    weight: Tensor,
    ratio: Tensor | None = None,
    bias: Tensor | None = None,
    data_zero_point: Tensor | None = None,
    y_zero_point: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Tensor:
    """Return the convolution of quantized images in blocks, quantized again, or its sums.

        sums = bias[O, o] + sum over (C, ky, kx, c) of (x - zx) * z[O, C, ky, kx, c, o]
        result = saturate(round(sums * ratio[O, o]) + y_zero_point)

    The weights less their zero points, z, lie in pairs. With p = the block of channels / 2, rounded
    up:

        weight[O, C, ky, kx, k, o] = z[O, C, ky, kx, k + p, o] * 2^16
                                     + (z[O, C, ky, kx, k, o] mod 2^16)

    Without a ratio, the result is the sums. A tie rounds to the even integer. An infinite ratio
    saturates, and NaN gives 0.

    Args:
        data: [n, C, h, w, c], int8 or uint8: C blocks of c channels; c is a constant.
        weight: [O, C / groups, kh, kw, p, o], int32, of constant extents. If c is odd, the high
            half of the last pair is not used.
        ratio: data_scale * weight_scale / y_scale: a scalar, [1] or [O, o], float32 or float64;
            optional.
        bias: [O, o], int32; optional.
        data_zero_point: zx, a scalar or [1], of the dtype of `data`; 0 by default.
        y_zero_point: a scalar or [1], int8 or uint8; by default 0 of int8. Only with a ratio.
        strides: elements down and across, from one window to the next.
        padding: zero points added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        groups: number of groups into which the blocks are divided.

    Returns:
        A tensor [n, O, h', w', o] of int32; with a ratio of the dtype of `y_zero_point`, or of
        int8. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: ONNX QLinearConv and ConvInteger, for the sums and the rounding.

    Example::

        >>> X = rc.placeholder((1, 1, 1, 1, 2), "int8", name="X")
        >>> W = rc.placeholder((1, 1, 1, 1, 1, 1), "int32", name="W")
        >>> Y = rc.topi.quantized_conv2d_nchwc(X, W)
        >>> x, w = np.array([3, 10], "int8"), np.array([5 * 2**16 + 7], "int32")
        >>> feeds = {X: x.reshape(1, 1, 1, 1, 2), W: w.reshape(1, 1, 1, 1, 1, 1)}
        >>> print(*rc.oracle.evaluate([Y], feeds))
        [[[[[71]]]]]
    """
    require_bytes(data, _NAME, "the data")
    require_rank(data, 5, _NAME, "the data")
    _require_integers(weight, 6, "the weight")
    require_zero_point(data_zero_point, data, 1, _NAME)
    batch, blocks, _, _, last = extents(data)
    outs, depth, *kernel, pairs, lanes = (
        require_constant(e, f"{_NAME}: the weight's shape") for e in extents(weight)
    )
    block = require_constant(last, f"{_NAME}: the data's channel block")
    check_groups(groups, outs, _NAME)
    what = "the number of the data's channel blocks"
    require_extent(blocks, depth * groups, _NAME, what, tensors=(data, weight))
    what = "the number of pairs in a channel block"
    require_extent(pairs, -(-block // 2), _NAME, what, tensors=(data, weight))
    windows = make_windows(_NAME, BLOCKED_LAYOUT, kernel, strides, padding, dilation)
    counts = windows.counts(data)
    image, (down, across) = _paired_image(data, data_zero_point, block, windows, counts)
    gap_down, gap_across = windows.dilation
    rb = reduce_axis(depth, "rb")
    ry = reduce_axis(kernel[0], "ry")
    rx = reduce_axis(kernel[1], "rx")
    rc = reduce_axis(pairs, "rc")

    def element(n: Expr, o: Expr, y: Expr, x: Expr, lane: Expr) -> Expr:
        # With one group the quotient is 0.
        read_block = rb.var if groups == 1 else o // (outs // groups) * depth + rb
        row = y * down + ry * gap_down
        column = x * across + rx * gap_across
        pair = image[n, read_block, row, column, rc]
        product = pair_product(pair, weight[o, rb, ry, rx, rc, lane])
        return reducer.sum(product, axis=[rb, ry, rx, rc])

    shape = (batch, outs, *counts, lanes)
    sums = compute(shape, element, name="sums", tag=CONV2D_NCHWC)
    return finish_quantized_blocks(sums, ratio, bias, y_zero_point, _NAME)


def _require_integers(operand: Tensor, rank: int, what: str) -> None:
    require_tensor(operand, _NAME)
    require_rank(operand, rank, _NAME, what)
    if operand.dtype != I32:
        raise UserError(
            f"{_NAME}: {what} is {operand.dtype}, not int32",
            remedy="put two integers of 16 bits in each int32",
            earlier=[operand.declaration()],
        )


def _paired_image(
    data: Tensor,
    zero_point: Tensor | None,
    block: int,
    windows: Windows,
    counts: Sequence[Extent],
) -> tuple[Tensor, Pair]:
    """Return the image less its zero point, in pairs and with its border, and the strides in it.

    Windows of one pixel have an image of the pixels that they read, as in `conv2d_nchwc`.
    """
    count = -(-block // 2)
    batch, blocks, height, width, _ = extents(data)
    down, across = windows.strides
    has_border = any(map(any, windows.borders))
    skips = windows.kernel == (1, 1) and not has_border and (down, across) != (1, 1)
    rows, columns = (down, across) if skips else (1, 1)

    def element(n: Expr, b: Expr, y: Expr, x: Expr, pair: Expr) -> Expr:
        at = (n, b, y * rows, x * columns)
        low = shifted(data[(*at, pair)], zero_point, pair)
        if block == 1:
            return make_pair(low, const(0, I32))
        high = shifted(data[(*at, pair + count)], zero_point, pair)
        if block % 2:
            high = maths.if_then_else(pair + count < block, high, const(0, I32))
        return make_pair(low, high)

    sizes = tuple(counts) if skips else (height, width)
    shape = (batch, blocks, *sizes, count)
    tag = INJECTIVE if has_border else PAD if skips else SHARED
    image = windows.pad(compute(shape, element, name="pairs", tag=tag), const(0, I32))
    return image, (1, 1) if skips else (down, across)


def finish_quantized_blocks(
    sums: Tensor,
    ratio: Tensor | None,
    bias: Tensor | None,
    y_zero_point: Tensor | None,
    operator: str,
) -> Tensor:
    """Return saturate(round((sums + bias) * ratio) + y_zero_point); the sums without a ratio.

    Args:
        sums: [n, O, h, w, o], int32.
        ratio: a scalar, [1] or [O, o], float32 or float64; optional.
        bias: [O, o], int32; optional.
        y_zero_point: a scalar or [1], int8 or uint8; optional.
        operator: the name in messages.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a zero point has no ratio.
    """
    _, outs, _, _, lanes = extents(sums)
    if bias is not None:
        require_rank(bias, 2, operator, "the bias")
        if bias.dtype != I32:
            raise UserError(
                f"{operator}: the bias is {bias.dtype}, not int32",
                remedy="give it in units of data_scale * weight_scale",
                earlier=[bias.declaration()],
            )
        sums = add_blocked_bias(sums, bias, operator)
    if ratio is None:
        if y_zero_point is not None:
            raise UserError(
                f"{operator}: a zero point of the result is given without a ratio",
                remedy="give the ratio of scales, or no zero point",
            )
        return sums
    _require_ratio(ratio, outs, lanes, operator)
    dtype = result_dtype(y_zero_point, operator)
    if y_zero_point is not None:
        require_parameter(y_zero_point, 1, operator, "the result's zero point")

    def element(n: Expr, o: Expr, y: Expr, x: Expr, lane: Expr) -> Expr:
        at = (o, lane) if ratio.ndim == 2 else (lane,)
        value = sums[n, o, y, x, lane].astype(ratio.dtype) * read_broadcast(ratio, at)
        point = None
        if y_zero_point is not None:
            point = read_broadcast(y_zero_point, (lane,))
        return round_to_integer(value, dtype, point)

    return compute(sums.shape, element, name="quantized", tag=INJECTIVE)


def _require_ratio(ratio: Tensor, outs: Extent, lanes: Extent, operator: str) -> None:
    require_tensor(ratio, operator)
    if not ratio.dtype.is_float or ratio.dtype.bits < 32:
        raise UserError(
            f"{operator}: the ratio is {ratio.dtype}, not float32 or float64",
            remedy='give it as float32: x[i].astype("float32")',
            earlier=[ratio.declaration()],
        )
    if ratio.ndim != 2:
        require_parameter(ratio, 1, operator, "the ratio")
        return
    for actual, expected in zip(extents(ratio), (outs, lanes), strict=True):
        require_extent(actual, expected, operator, "the ratio's extent")


def pair_channels_numpy(weight: Array, block: int, lanes: int) -> npt.NDArray[np.int32]:
    """Return weights in blocks and pairs, as `quantized_conv2d_nchwc` reads them.

    Args:
        weight: [o, c, kh, kw] of integers that fit 16 bits, such as weights less their zero points.
        block: the channels of a block of data, a divisor of c.
        lanes: the channels of a block of results, a divisor of o.

    Returns:
        [o / lanes, c / block, kh, kw, pairs, lanes] of int32.
    """
    outs, channels, *kernel = weight.shape
    parts = (outs // lanes, lanes, channels // block, block, *kernel)
    blocks = weight.astype(np.int64).reshape(parts).transpose(0, 2, 4, 5, 3, 1)
    count = -(-block // 2)
    low = blocks[..., :count, :]
    high = np.zeros_like(low)
    high[..., : block - count, :] = blocks[..., count:, :]
    return np.ascontiguousarray(((high << 16) | (low & 0xFFFF)).astype(np.int32))


def _unpaired(weight: Array, block: int) -> Array:
    """Return weights in pairs as [o, c, kh, kw]: the inverse of `pair_channels_numpy`."""
    wide = np.concatenate([weight.astype(np.int16).astype(np.int32), weight >> 16], 4)
    blocks = wide[..., :block, :]
    outs, depth, kh, kw, _, lanes = blocks.shape
    plain = blocks.transpose(0, 5, 1, 4, 2, 3)
    return plain.reshape(outs * lanes, depth * block, kh, kw)


def _sample_quantized_conv2d_nchwc(draws: Draws) -> Sample:
    groups = draws.choice((1, 1, 2))
    blocks = draws.integer(1, 2)
    outs = draws.integer(1, 2) * groups
    block = draws.choice((1, 3, 4))
    lanes = draws.choice((4, 8))
    dtype = draws.choice(("int8", "uint8"))
    # A window spans at most 5 elements.
    shape = (draws.extent(0), blocks * groups, *draws.pair(5, 6), block)
    data = draws.array(shape, dtype)
    kernel = draws.pair(1, 3)
    weight = draws.array((outs, blocks, *kernel, -(-block // 2), lanes), "int32")
    attributes: dict[str, object] = {
        "strides": draws.pair(1, 2),
        "padding": tuple(draws.integer(0, 1) for _ in range(4)),
        "dilation": (1, 1) if draws.flag() else (2, 2),
        "groups": groups,
    }
    zero = draws.array(draws.choice(((), (1,))), dtype) if draws.flag() else None
    rest = sample_quantized_blocks(draws, outs, lanes)
    return Sample((data, weight, *rest[:2], zero, rest[2]), attributes)


def sample_quantized_blocks(
    draws: Draws, outs: int, lanes: int
) -> tuple[Array | None, Array | None, Array | None]:
    """Return a ratio, a bias and a zero point of results [n, outs, h, w, lanes], each optional."""
    bias = draws.integers((outs, lanes), -999, 999) if draws.flag() else None
    if draws.flag():
        return None, bias, None
    shape = draws.choice(((), (1,), (outs, lanes)))
    ratio = draws.uniform(shape, 0.0001, 0.01, draws.choice(("float32", "float64")))
    dtype = draws.choice(("int8", "uint8"))
    zero = draws.array(draws.choice(((), (1,))), dtype) if draws.flag() else None
    return ratio, bias, zero


@meaning_of(quantized_conv2d_nchwc, sample=_sample_quantized_conv2d_nchwc)
def quantized_conv2d_nchwc_numpy(
    data: Array,
    weight: Array,
    ratio: Array | None = None,
    bias: Array | None = None,
    data_zero_point: Array | None = None,
    y_zero_point: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    sums = conv2d_integer_numpy(
        unblock_channels(data),
        _unpaired(weight, data.shape[-1]),
        data_zero_point,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    blocked = block_channels(sums, weight.shape[-1])
    return finish_quantized_blocks_numpy(blocked, ratio, bias, y_zero_point)


def finish_quantized_blocks_numpy(
    sums: Array,
    ratio: Array | None,
    bias: Array | None,
    y_zero_point: Array | None,
) -> Array:
    """Return the meaning of `finish_quantized_blocks`."""
    if bias is not None:
        sums = sums + bias[:, None, None, :]
    if ratio is None:
        return sums
    factor = ratio.astype(np.float64)
    if factor.ndim == 2:
        factor = factor[:, None, None, :]
    value = sums * factor
    if y_zero_point is None:
        return round_to_integer_numpy(value, DType("int", 8))
    kind = DType("int" if y_zero_point.dtype == np.int8 else "uint", 8)
    return round_to_integer_numpy(value, kind, y_zero_point)
