"""Depthwise convolution of quantized images with channels in blocks.

    sums[n, C, i, j, c] = sum over (ky, kx) of (x[n, C, row, column, c] - zx) * z[C, ky, kx, c]
    row = i * stride + ky * dilation - padding, and column likewise with j and kx

Here z are the weights less their zero points, and x is zx outside of the image. Sums are integers
of 32 bits and wrap. An integer of 8 bits less a zero point has 9 bits, so that images and weights
have 16 bits.

Reference: Y. Liu et al., "Optimizing CNN Model Inference on CPUs", USENIX ATC 2019, section 3.1.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import I32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.contraction.quantized import (
    require_bytes,
    require_zero_point,
    shifted,
)
from refcomp.topi.convolution.conv2d_nchwc import BLOCKED_LAYOUT
from refcomp.topi.convolution.depthwise_conv2d_nchwc import depthwise_conv2d_nchwc_numpy
from refcomp.topi.convolution.quantized_conv2d_nchwc import (
    finish_quantized_blocks,
    finish_quantized_blocks_numpy,
    sample_quantized_blocks,
)
from refcomp.topi.convolution.windows import make_windows
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, Pair, require_constant, require_rank
from refcomp.topi.spatial_padding import Padding
from refcomp.topi.tags import DEPTHWISE_NCHWC, SHARED

_NAME = "quantized_depthwise_conv2d_nchwc"
_I16 = DType("int", 16)


def quantized_depthwise_conv2d_nchwc(
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
) -> Tensor:
    """Return the convolution of each channel with its own kernel, quantized again, or its sums.

        sums = bias[C, c] + sum over (ky, kx) of (x - zx) * weight[C, ky, kx, c]
        result = saturate(round(sums * ratio[C, c]) + y_zero_point)

    Without a ratio, the result is the sums. A tie rounds to the even integer. An infinite ratio
    saturates, and NaN gives 0.

    Args:
        data: [n, C, h, w, c], int8 or uint8: C blocks of c channels.
        weight: [C, kh, kw, c], int16, of constant extents: weights less their zero points.
        ratio: data_scale * weight_scale / y_scale: a scalar, [1] or [C, c], float32 or float64;
            optional.
        bias: [C, c], int32; optional.
        data_zero_point: zx, a scalar or [1], of the dtype of `data`; 0 by default.
        y_zero_point: a scalar or [1], int8 or uint8; by default 0 of int8. Only with a ratio.
        strides: elements down and across, from one window to the next.
        padding: zero points added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.

    Returns:
        A tensor [n, C, h', w', c] of int32; with a ratio of the dtype of `y_zero_point`, or of
        int8. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: ONNX QLinearConv and ConvInteger, for the sums and the rounding.

    Example::

        >>> X = rc.placeholder((1, 1, 1, 2, 1), "int8", name="X")
        >>> W = rc.placeholder((1, 1, 2, 1), "int16", name="W")
        >>> Y = rc.topi.quantized_depthwise_conv2d_nchwc(X, W)
        >>> x, w = np.array([3, 10], "int8"), np.array([7, 5], "int16")
        >>> feeds = {X: x.reshape(1, 1, 1, 2, 1), W: w.reshape(1, 1, 2, 1)}
        >>> print(*rc.oracle.evaluate([Y], feeds))
        [[[[[71]]]]]
    """
    require_bytes(data, _NAME, "the data")
    require_rank(data, 5, _NAME, "the data")
    require_rank(weight, 4, _NAME, "the weight")
    if weight.dtype != _I16:
        raise UserError(
            f"{_NAME}: the weight is {weight.dtype}, not int16",
            remedy="subtract its zero points, in int16",
            earlier=[weight.declaration()],
        )
    require_zero_point(data_zero_point, data, 1, _NAME)
    batch, blocks, high, wide, block = extents(data)
    depth, *kernel, lanes = (
        require_constant(e, f"{_NAME}: the weight's shape") for e in extents(weight)
    )
    require_extent(blocks, depth, _NAME, "the number of the data's channel blocks")
    require_extent(block, lanes, _NAME, "the data's channel block")
    windows = make_windows(_NAME, BLOCKED_LAYOUT, kernel, strides, padding, dilation)
    height, width = windows.counts(data)
    narrow = compute(
        (batch, blocks, high, wide, block),
        lambda *at: shifted(data[at], data_zero_point, at[-1]).astype(_I16),
        name="shifted",
        tag=INJECTIVE if any(map(any, windows.borders)) else SHARED,
    )
    image = windows.pad(narrow, const(0, _I16))
    down, across = windows.strides
    gap_down, gap_across = windows.dilation
    ry = reduce_axis(kernel[0], "ry")
    rx = reduce_axis(kernel[1], "rx")

    def element(n: Expr, o: Expr, y: Expr, x: Expr, lane: Expr) -> Expr:
        row = y * down + ry * gap_down
        column = x * across + rx * gap_across
        left = image[n, o, row, column, lane].astype(I32)
        return reducer.sum(left * weight[o, ry, rx, lane].astype(I32), axis=[ry, rx])

    shape = (batch, depth, height, width, lanes)
    sums = compute(shape, element, name="sums", tag=DEPTHWISE_NCHWC)
    return finish_quantized_blocks(sums, ratio, bias, y_zero_point, _NAME)


def _sample_quantized_depthwise(draws: Draws) -> Sample:
    blocks = draws.integer(1, 3)
    lanes = draws.choice((4, 8))
    dtype = draws.choice(("int8", "uint8"))
    # A window spans at most 5 elements.
    size = draws.pair(5, 6)
    data = draws.array((draws.extent(0), blocks, *size, lanes), dtype)
    shape = (blocks, *draws.pair(1, 3), lanes)
    weight = draws.integers(shape, -255, 255, "int16")
    zero = draws.array(draws.choice(((), (1,))), dtype) if draws.flag() else None
    attributes = {
        "strides": draws.pair(1, 2),
        "padding": tuple(draws.integer(0, 1) for _ in range(4)),
        "dilation": (1, 1) if draws.flag() else (2, 2),
    }
    ratio, bias, y_zero = sample_quantized_blocks(draws, blocks, lanes)
    return Sample((data, weight, ratio, bias, zero, y_zero), attributes)


@meaning_of(quantized_depthwise_conv2d_nchwc, sample=_sample_quantized_depthwise)
def quantized_depthwise_conv2d_nchwc_numpy(
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
) -> Array:
    image = data.astype(np.int32)
    if data_zero_point is not None:
        image = image - data_zero_point.astype(np.int32).reshape(())
    # Zeros around the shifted image are zero points around the given one.
    sums = depthwise_conv2d_nchwc_numpy(
        image,
        weight.astype(np.int32),
        strides=strides,
        padding=padding,
        dilation=dilation,
    )
    return finish_quantized_blocks_numpy(sums, ratio, bias, y_zero_point)
