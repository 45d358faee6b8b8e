"""Convolution as one product of matrices: kernels are the rows of one, windows the columns of one.

The matrix of windows holds each pixel up to kh * kw times. In return, any schedule of a matrix
product is one of a convolution.

Reference: K. Chellapilla, S. Puri and P. Simard, "High Performance Convolutional Neural Networks
for Document Processing", IWFHR 2006.
"""

from __future__ import annotations

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.contraction.dense import check_factors, multiply_matrices
from refcomp.topi.contraction.fully_connected import add_bias
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.windows import (
    constant_sizes,
    make_windows,
    require_channels,
    sample_convolution,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, Pair, product, require_constant, require_rank
from refcomp.topi.spatial_padding import Padding
from refcomp.topi.tags import SHARED


def conv2d_im2col(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of images, as a product of a matrix of kernels and one of windows.

    It is `conv2d` without groups. It needs memory for all windows: n * h' * w' * c * kh * kw
    elements.

    Args:
        data: [n, c, h, w], of any numeric dtype; h and w are constant.
        weight: [o, c, kh, kw], of constant extents and of the dtype of `data`.
        bias: [o], of `out_dtype`; optional.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        out_dtype: a wider dtype of the same kind, in which products are added up. By default the
            dtype of `data`.

    Returns:
        A tensor [n, o, h', w'] of `out_dtype`. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: K. Chellapilla et al., "High Performance Convolutional Neural Networks for Document
    Processing", IWFHR 2006. NaN propagates as in `conv2d`.

    Example::

        >>> X, W = rc.placeholder((1, 1, 3, 3), name="X"), rc.placeholder((1, 1, 2, 2), name="W")
        >>> Y = rc.topi.conv2d_im2col(X, W)
        >>> x, w = np.arange(9).reshape(1, 1, 3, 3), np.array([[[[1, 0], [0, 10]]]])
        >>> (y,) = rc.oracle.evaluate([Y], {X: x.astype("float32"), W: w.astype("float32")})
        >>> print(y[0, 0])
        [[40. 51.]
         [73. 84.]]
    """
    name = "conv2d_im2col"
    require_rank(data, 4, name, "the data")
    sizes = constant_sizes(weight, "OIHW", name)
    check_factors(name, data, weight)
    require_channels(data, weight, sizes["I"], "NCHW", name)
    kernel = (sizes["H"], sizes["W"])
    windows = make_windows(name, "NCHW", kernel, strides, padding, dilation)
    what = f"{name}: height or width"
    height, width = (require_constant(count, what) for count in windows.counts(data))
    padded = windows.pad(data, const(0, data.dtype))
    batch = extents(data)[0]
    taps = kernel[0] * kernel[1]
    depth = sizes["I"] * taps

    def tap(k: Expr) -> tuple[Expr, Expr, Expr]:
        """Return the channel, row and column of an element of a kernel."""
        return k // taps, k // kernel[1] % kernel[0], k % kernel[1]

    def element_of_window(k: Expr, column: Expr) -> Expr:
        channel, ky, kx = tap(k)
        y = column // width % height
        x = column % width
        down = y * windows.strides[0] + ky * windows.dilation[0]
        across = x * windows.strides[1] + kx * windows.dilation[1]
        return padded[column // (height * width), channel, down, across]

    # Both matrices have memory of their own: their indices are costly, and each element is read
    # many times.
    columns = product((batch, height, width))
    patches = compute((depth, columns), element_of_window, name="windows", tag=SHARED)
    kernels = compute(
        (sizes["O"], depth),
        lambda o, k: weight[(o, *tap(k))],
        name="kernels",
        tag=SHARED,
    )
    sums = multiply_matrices(kernels, patches, "sums", out_dtype=out_dtype)
    result = compute(
        (batch, sizes["O"], height, width),
        lambda n, o, y, x: sums[o, (n * height + y) * width + x],
        name=name,
        tag=INJECTIVE,
    )
    return result if bias is None else add_bias(result, bias, name, 1)


def _sample_conv2d_im2col(draws: Draws) -> Sample:
    while True:
        sample = sample_convolution(draws, "NCHW", "OIHW")
        attributes = dict(sample.attributes)
        if attributes.pop("groups") == 1:
            return Sample(sample.operands, attributes)


@meaning_of(conv2d_im2col, sample=_sample_conv2d_im2col)
def conv2d_im2col_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
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
        out_dtype=out_dtype,
    )
