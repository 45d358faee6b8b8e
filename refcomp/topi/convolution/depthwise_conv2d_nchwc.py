"""Depthwise convolution with channels in blocks: vectors run over the channels of a block.

    y[n, C, i, j, c] = bias[C, c] + sum over (ky, kx) of x[n, C, row, column, c] * w[C, ky, kx, c]
    row = i * stride + ky * dilation - padding, and column likewise with j and kx

Channel C * (channels in a block) + c stands at block C, place c. Each channel has one kernel. NaN
and empty sums are as in `conv2d`.

Reference: Y. Liu et al., "Optimizing CNN Model Inference on CPUs", USENIX ATC 2019, section 3.1.
"""

from __future__ import annotations

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.convolution.conv2d_nchwc import (
    BLOCKED_LAYOUT,
    add_blocked_bias,
    block_channels,
    unblock_channels,
)
from refcomp.topi.convolution.depthwise_conv2d import depthwise_conv2d_nchw_numpy
from refcomp.topi.convolution.windows import make_windows
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
from refcomp.topi.tags import DEPTHWISE_NCHWC


def depthwise_conv2d_nchwc(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
) -> Tensor:
    """Return the convolution of each channel with a kernel of its own; channels are in blocks.

    Args:
        data: [n, C, h, w, c], of any numeric dtype: C blocks of c channels.
        weight: [C, kh, kw, c], of constant extents and of the dtype of `data`.
        bias: [C, c], of the dtype of `data`; optional.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.

    Returns:
        A tensor [n, C, h', w', c] of the dtype of `data`. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: TVM, topi.nn.depthwise_conv2d_NCHWc. NaN propagates within its channel.

    Example::

        >>> X = rc.placeholder((1, 1, 1, 2, 2), name="X")
        >>> W = rc.placeholder((1, 1, 2, 2), name="W")
        >>> Y = rc.topi.depthwise_conv2d_nchwc(X, W)
        >>> x = np.array([[1, 2], [3, 4]], "float32").reshape(1, 1, 1, 2, 2)
        >>> w = np.array([[1, 10], [1, 100]], "float32").reshape(1, 1, 2, 2)
        >>> print(*rc.oracle.evaluate([Y], {X: x, W: w}))
        [[[[[  4. 420.]]]]]
    """
    operator = "depthwise_conv2d_nchwc"
    require_rank(data, 5, operator, "the data")
    require_rank(weight, 4, operator, "the weight")
    if bias is not None:
        require_rank(bias, 2, operator, "the bias")
    require_one_dtype(operator, data, weight, bias)
    batch, blocks, _, _, block = extents(data)
    depth, *kernel, lanes = (
        require_constant(e, f"{operator}: the weight's shape") for e in extents(weight)
    )
    require_extent(blocks, depth, operator, "the number of the data's channel blocks")
    require_extent(block, lanes, operator, "the data's channel block")
    windows = make_windows(operator, BLOCKED_LAYOUT, kernel, strides, padding, dilation)
    height, width = windows.counts(data)
    padded = windows.pad(data, const(0, data.dtype))
    down, across = windows.strides
    gap_down, gap_across = windows.dilation
    ry = reduce_axis(kernel[0], "ry")
    rx = reduce_axis(kernel[1], "rx")

    def element(n: Expr, o: Expr, y: Expr, x: Expr, lane: Expr) -> Expr:
        row = y * down + ry * gap_down
        column = x * across + rx * gap_across
        product = padded[n, o, row, column, lane] * weight[o, ry, rx, lane]
        return reducer.sum(product, axis=[ry, rx])

    shape = (batch, depth, height, width, lanes)
    result = compute(shape, element, name="depthwise", tag=DEPTHWISE_NCHWC)
    return result if bias is None else add_blocked_bias(result, bias, operator)


def _sample_depthwise_conv2d_nchwc(draws: Draws) -> Sample:
    blocks = draws.integer(1, 3)
    dtype = draws.number_dtype()
    # A window spans at most 5 elements.
    size = draws.pair(5, 6)
    data = draws.array((draws.extent(0), blocks, *size, 4), dtype)
    weight = draws.array((blocks, *draws.pair(1, 3), 4), dtype, special=False)
    bias = draws.array((blocks, 4), dtype) if draws.flag() else None
    attributes = {
        "strides": draws.pair(1, 2),
        "padding": tuple(draws.integer(0, 1) for _ in range(4)),
        "dilation": (1, 1) if draws.flag() else (2, 2),
    }
    return Sample((data, weight, bias), attributes)


@meaning_of(depthwise_conv2d_nchwc, sample=_sample_depthwise_conv2d_nchwc)
def depthwise_conv2d_nchwc_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
) -> Array:
    blocks, kh, kw, lanes = weight.shape
    kernels = weight.transpose(0, 3, 1, 2).reshape(blocks * lanes, 1, kh, kw)
    result = depthwise_conv2d_nchw_numpy(
        unblock_channels(data),
        kernels,
        None if bias is None else bias.reshape(-1),
        strides=strides,
        padding=padding,
        dilation=dilation,
    )
    return block_channels(result, lanes)
