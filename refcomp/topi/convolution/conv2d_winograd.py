"""Convolution with 3 x 3 kernels by Winograd's minimal filtering, in one operator or in two.

The transform of the kernels is an operator of its own, too, so that it can be done in advance.

Reference: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016,
sections 4.1 and 4.2.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import F32
from refcomp.te.extents import extents, require_extent
from refcomp.te.tensor import Tensor
from refcomp.topi.contraction.fully_connected import add_bias
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.windows import (
    constant_sizes,
    require_channels,
    windows_numpy,
)
from refcomp.topi.convolution.winograd import (
    matrices_of,
    require_three_by_three,
    transform_kernels,
    winograd_sums,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)
from refcomp.topi.spatial_padding import Padding


def conv2d_winograd(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    padding: Padding = (0, 0, 0, 0),
    tile_size: int = 4,
) -> Tensor:
    """Return the convolution of images with 3 x 3 kernels, by fewer multiplications.

    It is `conv2d` with strides and dilation of 1, but for rounding: intermediate results are larger
    than those of a direct sum. If the (m + 2) x (m + 2) tile of an image has a NaN or an infinity,
    all m x m results of the tile are NaN. A NaN or an infinity in the weights of an output channel
    makes the channel NaN. Intermediate results of 16-bit floats are of f32.

    Args:
        data: [n, c, h, w], of floats; h and w are constant.
        weight: [o, c, 3, 3], of constant extents and of the dtype of `data`.
        bias: [o], of the dtype of `data`; optional.
        padding: zeros added at the top, left, bottom and right.
        tile_size: m, the number of rows and columns of results that are computed together: 2 or 4.

    Returns:
        A tensor [n, o, h', w'] of the dtype of `data`. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or the tile size is not 2 or 4.

    Reference: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.

    Example::

        >>> X, W = rc.placeholder((1, 1, 4, 4), name="X"), rc.placeholder((1, 1, 3, 3), name="W")
        >>> Y = rc.topi.conv2d_winograd(X, W, tile_size=2)
        >>> x, w = np.arange(16).reshape(1, 1, 4, 4), np.eye(3).reshape(1, 1, 3, 3)
        >>> (y,) = rc.oracle.evaluate([Y], {X: x.astype("float32"), W: w.astype("float32")})
        >>> print(y[0, 0])
        [[15. 18.]
         [27. 30.]]
    """
    name = "conv2d_winograd"
    require_rank(data, 4, name, "the data")
    require_float(data, name)
    require_one_dtype(name, data, weight)
    sizes = constant_sizes(weight, "OIHW", name)
    require_three_by_three(weight, sizes["H"], sizes["W"], name)
    matrices_of(tile_size, name)
    require_channels(data, weight, sizes["I"], "NCHW", name)
    dtype = weight.dtype if weight.dtype.bits >= 32 else F32
    kernels = transform_kernels(weight, tile_size, dtype)
    result = winograd_sums(data, kernels, padding, tile_size, name)
    return result if bias is None else add_bias(result, bias, name, 1)


def _sample_conv2d_winograd(draws: Draws) -> Sample:
    depth = draws.integer(0, 2)
    out = draws.integer(1, 2)
    dtype = draws.float_dtype()
    shape = (draws.integer(0, 2), depth, draws.integer(3, 7), draws.integer(3, 7))
    data = draws.array(shape, dtype)
    weight = draws.array((out, depth, 3, 3), dtype)
    bias = draws.array((out,), dtype) if draws.flag() else None
    attributes = {
        "padding": tuple(draws.integer(0, 1) for _ in range(4)),
        "tile_size": draws.choice((2, 4)),
    }
    return Sample((data, weight, bias), attributes)


@meaning_of(conv2d_winograd, sample=_sample_conv2d_winograd)
def conv2d_winograd_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    padding: Padding = (0, 0, 0, 0),
    tile_size: int = 4,
) -> Array:
    # Direct sums, but for tiles and channels with NaN or infinities.
    result = conv2d_numpy(data, weight, bias, padding=padding)
    result[:, ~np.isfinite(weight).all(axis=(1, 2, 3))] = np.nan
    height, width = result.shape[2:]
    tiles = _tiles_numpy(data, padding, tile_size)
    is_finite = np.isfinite(tiles).all(axis=(1, 4, 5))
    is_kept = is_finite.repeat(tile_size, axis=1).repeat(tile_size, axis=2)
    return np.where(is_kept[:, None, :height, :width], result, result.dtype.type("nan"))


def _tiles_numpy(data: Array, padding: Padding, tile_size: int) -> Array:
    """Return the tiles [n, c, down, across, y, x] of images, with zeros after the last window."""
    borders = [(0, 0), (0, 0)]
    for axis in range(2):
        before, after = padding[axis], padding[2 + axis]
        count = data.shape[2 + axis] + before + after - 2
        borders.append((before, after + -count % tile_size))
    edge = (tile_size + 2, tile_size + 2)
    strides = (tile_size, tile_size)
    return windows_numpy(np.pad(data, borders), edge, strides, (1, 1))


def conv2d_winograd_weight_transform(weight: Tensor, *, tile_size: int = 4) -> Tensor:
    """Return 3 x 3 kernels in the form in which `conv2d_winograd` multiplies them.

        result[y, x, o, c] = (G w[o, c] transposed G)[y, x]

    A NaN or an infinity makes elements NaN or infinite; an infinity times a zero of G is NaN.

    Args:
        weight: [o, c, 3, 3], of floats and of constant extents.
        tile_size: m, the edge of the tiles of results: 2 or 4.

    Returns:
        A tensor [m + 2, m + 2, o, c] of the dtype of `weight`.

    Raises:
        UserError: a rank, extent or dtype does not fit, or the tile size is not 2 or 4.

    Reference: TVM, topi.nn.conv2d_winograd_weight_transform; A. Lavin and S. Gray, CVPR 2016.

    Example::

        >>> W = rc.placeholder((1, 1, 3, 3), name="W")
        >>> U = rc.topi.conv2d_winograd_weight_transform(W, tile_size=2)
        >>> (u,) = rc.oracle.evaluate([U], {W: np.ones((1, 1, 3, 3), "float32")})
        >>> print(u[:, :, 0, 0])
        [[1.   1.5  0.5  1.  ]
         [1.5  2.25 0.75 1.5 ]
         [0.5  0.75 0.25 0.5 ]
         [1.   1.5  0.5  1.  ]]
    """
    name = "conv2d_winograd_weight_transform"
    require_rank(weight, 4, name, "the weight")
    require_float(weight, name)
    sizes = constant_sizes(weight, "OIHW", name)
    require_three_by_three(weight, sizes["H"], sizes["W"], name)
    matrices_of(tile_size, name)
    return transform_kernels(weight, tile_size, weight.dtype)


def _sample_conv2d_winograd_weight_transform(draws: Draws) -> Sample:
    shape = (draws.integer(0, 3), draws.integer(0, 3), 3, 3)
    weight = draws.array(shape, draws.float_dtype())
    return Sample((weight,), {"tile_size": draws.choice((2, 4))})


@meaning_of(
    conv2d_winograd_weight_transform, sample=_sample_conv2d_winograd_weight_transform
)
def conv2d_winograd_weight_transform_numpy(
    weight: Array, *, tile_size: int = 4
) -> Array:
    matrices = matrices_of(tile_size, "conv2d_winograd_weight_transform")
    # Integers are exact; an operator of f64 is judged by less than the roundings of f64.
    matrix = np.array(matrices.kernel, np.longdouble)
    wide = widen(weight).astype(np.longdouble)
    scaled = np.einsum("yk,xl,ockl->yxoc", matrix, matrix, wide)
    result = (scaled / matrices.scale**2).astype(np.float64)
    return np.asarray(result.astype(weight.dtype))


def conv2d_winograd_without_weight_transform(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    padding: Padding = (0, 0, 0, 0),
    tile_size: int = 4,
) -> Tensor:
    """Return the convolution of images with kernels that are transformed already.

    With the result of `conv2d_winograd_weight_transform`, it is `conv2d_winograd`.

    Args:
        data: [n, c, h, w], of floats; h and w are constant.
        weight: [m + 2, m + 2, o, c], of the dtype of `data`.
        bias: [o], of the dtype of `data`; optional.
        padding: zeros added at the top, left, bottom and right.
        tile_size: m, the edge of the tiles of results: 2 or 4.

    Returns:
        A tensor [n, o, h', w'] of the dtype of `data`, for kernels of 3 x 3.

    Raises:
        UserError: a rank, extent or dtype does not fit, or the tile size is not 2 or 4.

    Reference: TVM, topi.nn.conv2d_winograd_without_weight_transform. NaN and infinities spoil their
    tile, as in `conv2d_winograd`.

    Example::

        >>> X, W = rc.placeholder((1, 1, 4, 4), name="X"), rc.placeholder((1, 1, 3, 3), name="W")
        >>> U = rc.topi.conv2d_winograd_weight_transform(W, tile_size=2)
        >>> Y = rc.topi.conv2d_winograd_without_weight_transform(X, U, tile_size=2)
        >>> x, w = np.arange(16).reshape(1, 1, 4, 4), np.eye(3).reshape(1, 1, 3, 3)
        >>> (y,) = rc.oracle.evaluate([Y], {X: x.astype("float32"), W: w.astype("float32")})
        >>> print(y[0, 0])
        [[15. 18.]
         [27. 30.]]
    """
    name = "conv2d_winograd_without_weight_transform"
    require_rank(data, 4, name, "the data")
    require_rank(weight, 4, name, "the weight")
    require_float(data, name)
    require_one_dtype(name, data, weight)
    edge = len(matrices_of(tile_size, name).image)
    height, width, _, depth = extents(weight)
    for size in (height, width):
        require_extent(size, edge, name, "the edge of the weight", tensors=(weight,))
    what = "the data's channel extent"
    require_extent(extents(data)[1], depth, name, what, tensors=(data, weight))
    result = winograd_sums(data, weight, padding, tile_size, name)
    return result if bias is None else add_bias(result, bias, name, 1)


def _sample_conv2d_winograd_without_weight_transform(draws: Draws) -> Sample:
    sample = _sample_conv2d_winograd(draws)
    data, weight, bias = sample.operands
    assert data is not None and weight is not None
    edge = 2 + int(str(sample.attributes["tile_size"]))
    shape = (edge, edge, *weight.shape[:2])
    kernels = draws.array(shape, data.dtype.name)
    return Sample((data, kernels, bias), sample.attributes)


@meaning_of(
    conv2d_winograd_without_weight_transform,
    sample=_sample_conv2d_winograd_without_weight_transform,
)
def conv2d_winograd_without_weight_transform_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    padding: Padding = (0, 0, 0, 0),
    tile_size: int = 4,
) -> Array:
    matrices = matrices_of(tile_size, "conv2d_winograd_without_weight_transform")
    inner = np.array(matrices.image, np.float64)
    outer = np.array(matrices.result, np.float64)
    tiles = _tiles_numpy(widen(data), padding, tile_size)
    spread = np.einsum("ya,xb,nctuab->yxnctu", inner, inner, tiles)
    products = np.einsum("yxoc,yxnctu->yxnotu", widen(weight), spread)
    result = np.einsum("iy,jx,yxnotu->notiuj", outer, outer, products)
    batch, out, down, _, across, _ = result.shape
    image = result.reshape(batch, out, down * tile_size, across * tile_size)
    if bias is not None:
        image = image + widen(bias).reshape(-1, 1, 1)
    height = data.shape[2] + padding[0] + padding[2] - 2
    width = data.shape[3] + padding[1] + padding[3] - 2
    return np.asarray(image[:, :, :height, :width].astype(data.dtype))
