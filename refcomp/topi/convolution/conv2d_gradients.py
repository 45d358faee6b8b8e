"""The gradients of `conv2d` with respect to its images and its weights, as operators.

`te.gradient` of a convolution gives the same numbers. These operators take the gradient of the
result alone, as the classic backward passes do. An infinite weight times an inserted zero is NaN.

Reference: V. Dumoulin and F. Visin, "A guide to convolution arithmetic for deep learning", arXiv
1603.07285, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.contraction.dense import check_factors
from refcomp.topi.convolution.transposed import (
    convolve_transposed_numpy,
    factors_of,
    sum_spread,
)
from refcomp.topi.convolution.windows import (
    Windows,
    check_groups,
    check_numbers,
    constant_sizes,
    make_windows,
    require_channels,
    sample_convolution,
    windows_numpy,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    Pair,
    require_constant,
    require_rank,
    widen,
    window_extent,
)
from refcomp.topi.spatial_padding import Padding
from refcomp.topi.tags import REDUCTION


def conv2d_backward_data(
    grad: Tensor,
    weight: Tensor,
    *,
    size: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv2d` with respect to its images.

        result[n, c, y] = sum of all grad[n, o, i] * w[o, c, k] with y = i * stride + k * dilation -
        before

    where i, k and y are pairs. Elements that no window reads have the gradient 0.

    Args:
        grad: [n, o, h', w'], the gradient of the result, of any numeric dtype.
        weight: [o, c / groups, kh, kw], of constant extents and of the dtype of `grad`.
        size: height and width of the images, without padding.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        groups: number of groups into which the channels are divided.

    Returns:
        A tensor [n, c, h, w] of the dtype of `grad`.

    Raises:
        UserError: a rank or dtype does not fit, or images of this size do not give a result of the
            extents of `grad`.

    Reference: cuDNN, cudnnConvolutionBackwardData.

    Example::

        >>> G, W = rc.placeholder((1, 1, 1, 2), name="G"), rc.placeholder((1, 1, 1, 2), name="W")
        >>> D = rc.topi.conv2d_backward_data(G, W, size=(1, 4), strides=(1, 2))
        >>> g, w = np.array([[[[1, 10]]]], "float32"), np.array([[[[2, 3]]]], "float32")
        >>> print(*rc.oracle.evaluate([D], {G: g, W: w}))
        [[[[ 2.  3. 20. 30.]]]]
    """
    name = "conv2d_backward_data"
    require_rank(grad, 4, name, "the gradient")
    sizes = constant_sizes(weight, "OIHW", name)
    check_factors(name, grad, weight)
    check_groups(groups, sizes["O"], name)
    require_channels(grad, weight, sizes["O"], "NCHW", name)
    height, width = check_numbers(size, 2, name, "size")
    windows = make_windows(
        name, "NCHW", (sizes["H"], sizes["W"]), strides, padding, dilation
    )
    require_windows(grad, windows, (height, width))
    # The channels of the gradient are those that the transposed convolution reads.
    return sum_spread(
        grad,
        factors_of(weight, "IOHW", groups),
        windows,
        (height, width),
        out=sizes["I"] * groups,
        groups=groups,
        dtype=grad.dtype,
    )


def require_windows(grad: Tensor, windows: Windows, size: Sequence[int]) -> None:
    """Raise UserError unless images of this size have as many windows as the gradient."""
    sizes = dict(zip(windows.layout, extents(grad), strict=True))
    for place, letter in enumerate(windows.spatial):
        before, after = windows.borders[place]
        count = window_extent(
            size[place],
            windows.kernel[place],
            windows.strides[place],
            windows.dilation[place],
            before,
            after,
        )
        what = f"the gradient's extent along {letter}"
        require_extent(sizes[letter], count, windows.operator, what, tensors=(grad,))


def sample_gradient(draws: Draws) -> tuple[Array, Array, Array, dict[str, object]]:
    """Return images, weights, a gradient of the result, and attributes."""
    sample = sample_convolution(draws, "NCHW", "OIHW")
    data, weight, _ = sample.operands
    assert data is not None and weight is not None
    attributes = dict(sample.attributes)
    attributes.pop("out_dtype", None)
    strides = sample.attributes["strides"]
    dilation = sample.attributes["dilation"]
    padding = sample.attributes["padding"]
    assert isinstance(strides, tuple)
    assert isinstance(dilation, tuple)
    assert isinstance(padding, tuple)
    borders = [(0, 0), (0, 0), *zip(padding[:2], padding[2:], strict=True)]
    seen = windows_numpy(np.pad(data, borders), weight.shape[2:], strides, dilation)
    shape = (len(data), len(weight), *seen.shape[2:4])
    return data, weight, draws.array(shape, data.dtype.name), attributes


def _sample_conv2d_backward_data(draws: Draws) -> Sample:
    data, weight, grad, attributes = sample_gradient(draws)
    return Sample((grad, weight), {**attributes, "size": data.shape[2:]})


@meaning_of(conv2d_backward_data, sample=_sample_conv2d_backward_data)
def conv2d_backward_data_numpy(
    grad: Array,
    weight: Array,
    *,
    size: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    # Rows and columns after the last window are the output padding of the transpose.
    further = []
    for axis in range(2):
        window = dilation[axis] * (weight.shape[2 + axis] - 1) + 1
        reached = (grad.shape[2 + axis] - 1) * strides[axis] + window
        further.append(size[axis] + padding[axis] + padding[2 + axis] - reached)
    return convolve_transposed_numpy(
        grad,
        weight,
        None,
        layout="NCHW",
        weight_layout="IOHW",
        strides=strides,
        padding=padding,
        output_padding=further,
        dilation=dilation,
        groups=groups,
        dtype=grad.dtype,
    )


def conv2d_backward_weight(
    grad: Tensor,
    data: Tensor,
    *,
    kernel_size: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv2d` with respect to its weights.

        result[o, c, k] = sum over (n, i) of grad[n, o, i] * x[n, c, i * stride + k * dilation -
        before]

    where i and k are pairs, and x is 0 outside of the image. A NaN of the gradient or of an image
    reaches all weights that it meets. Without images, the gradient is 0.

    Args:
        grad: [n, o, h', w'], the gradient of the result, of any numeric dtype.
        data: [n, c, h, w], of the dtype of `grad`. All extents but n must be constant.
        kernel_size: height and width of the kernels.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        groups: number of groups into which the channels are divided.

    Returns:
        A tensor [o, c / groups, kh, kw] of the dtype of `grad`.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: TVM, relay.nn.conv2d_backward_weight; cuDNN, cudnnConvolutionBackwardFilter.

    Example::

        >>> G, X = rc.placeholder((1, 1, 1, 2), name="G"), rc.placeholder((1, 1, 1, 3), name="X")
        >>> D = rc.topi.conv2d_backward_weight(G, X, kernel_size=(1, 2))
        >>> g, x = np.array([[[[1, 10]]]], "float32"), np.array([[[[1, 2, 3]]]], "float32")
        >>> print(*rc.oracle.evaluate([D], {G: g, X: x}))
        [[[[21. 32.]]]]
    """
    name = "conv2d_backward_weight"
    require_rank(grad, 4, name, "the gradient")
    require_rank(data, 4, name, "the data")
    check_factors(name, grad, data)
    batch, *sizes = extents(data)
    what = f"{name}: the data's shape"
    channels, height, width = (require_constant(e, what) for e in sizes)
    out = require_constant(extents(grad)[1], f"{name}: the gradient's channels")
    check_groups(groups, out, name)
    if channels % groups:
        raise UserError(
            f"{name} cannot divide {channels} channels into {groups} groups",
            remedy="let groups divide the number of channels of the data",
            earlier=[data.declaration()],
        )
    kernel = check_numbers(kernel_size, 2, name, "kernel_size")
    windows = make_windows(name, "NCHW", kernel, strides, padding, dilation)
    require_extent(extents(grad)[0], batch, name, "the number of gradients")
    require_windows(grad, windows, (height, width))
    padded = windows.pad(data, const(0, data.dtype))
    depth = channels // groups
    rn = reduce_axis(batch, "rn")
    ry = reduce_axis(extents(grad)[2], "ry")
    rx = reduce_axis(extents(grad)[3], "rx")

    def element(o: Expr, c: Expr, ky: Expr, kx: Expr) -> Expr:
        channel = c if groups == 1 else o // (out // groups) * depth + c
        row = ry * windows.strides[0] + ky * windows.dilation[0]
        column = rx * windows.strides[1] + kx * windows.dilation[1]
        read = padded[rn, channel, row, column]
        return reducer.sum(grad[rn, o, ry, rx] * read, axis=[rn, ry, rx])

    return compute((out, depth, *kernel), element, name=name, tag=REDUCTION)


def _sample_conv2d_backward_weight(draws: Draws) -> Sample:
    data, weight, grad, attributes = sample_gradient(draws)
    kernel = weight.shape[2:]
    return Sample((grad, data), {**attributes, "kernel_size": kernel})


@meaning_of(conv2d_backward_weight, sample=_sample_conv2d_backward_weight)
def conv2d_backward_weight_numpy(
    grad: Array,
    data: Array,
    *,
    kernel_size: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    borders = [(0, 0), (0, 0), *zip(padding[:2], padding[2:], strict=True)]
    seen = windows_numpy(np.pad(widen(data), borders), kernel_size, strides, dilation)
    wide = widen(grad)
    parts = []
    for group in range(groups):
        own = np.split(wide, groups, axis=1)[group]
        read = np.split(seen, groups, axis=1)[group]
        parts.append(np.einsum("noij,ncijyx->ocyx", own, read))
    return np.concatenate(parts).astype(grad.dtype)
