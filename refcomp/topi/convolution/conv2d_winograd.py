"""Convolution with 3 x 3 kernels by Winograd's minimal filtering, F(2, 3) or F(4, 3).

A tile of m x m results needs (m + 2)^2 multiplications for each pair of channels, not 9 m^2. With
the matrices B, G and A of the algorithm, a tile d of the image and a kernel g give::

    transposed A ((G g transposed G) * (transposed B d B)) A

The products are summed over the channels before the outer transform. Errors are larger than those
of a direct sum, most of all for m = 4.

Reference: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016,
sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.contraction.fully_connected import add_bias
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.windows import (
    constant_sizes,
    make_windows,
    require_channels,
    windows_numpy,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    extents,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.spatial_padding import Padding, pad_axes
from refcomp.topi.tags import REDUCTION

_Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class WinogradMatrices:
    """The matrices of F(m, 3), all of integers, so that they are exact in every float.

    Attributes:
        image: transposed B, [m + 2, m + 2].
        kernel: G times `scale`, [m + 2, 3].
        result: transposed A, [m, m + 2].
        scale: the common denominator of G.
    """

    image: _Rows
    kernel: _Rows
    result: _Rows
    scale: int


_MATRICES = {
    2: WinogradMatrices(
        image=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        kernel=((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2)),
        result=((1, 1, 1, 0), (0, 1, -1, -1)),
        scale=2,
    ),
    4: WinogradMatrices(
        image=(
            (4, 0, -5, 0, 1, 0),
            (0, -4, -4, 1, 1, 0),
            (0, 4, -4, -1, 1, 0),
            (0, -2, -1, 2, 1, 0),
            (0, 2, -1, -2, 1, 0),
            (0, 4, 0, -5, 0, 1),
        ),
        kernel=(
            (6, 0, 0),
            (-4, -4, -4),
            (-4, 4, -4),
            (1, 2, 4),
            (1, -2, 4),
            (0, 0, 24),
        ),
        result=(
            (1, 1, 1, 1, 1, 0),
            (0, 1, -1, 2, -2, 0),
            (0, 1, 1, 4, 4, 0),
            (0, 1, -1, 8, -8, 1),
        ),
        scale=24,
    ),
}


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
    than those of a direct sum. A NaN or an infinity in the (m + 2) x (m + 2) tile of an image makes
    the m x m results of this tile NaN. A NaN or an infinity in the weights of an output channel
    makes the channel NaN.

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
    if (sizes["H"], sizes["W"]) != (3, 3):
        raise UserError(
            f"{name} does not take kernels of {sizes['H']} x {sizes['W']}",
            why="the matrices of the transforms belong to kernels of 3 x 3",
            remedy="use conv2d for other kernels",
            earlier=[weight.declaration()],
        )
    if tile_size not in _MATRICES:
        raise UserError(
            f"{name} does not have tiles of {tile_size}", remedy="use 2 or 4"
        )
    require_channels(data, weight, sizes["I"], "NCHW", name)
    windows = make_windows(name, "NCHW", (3, 3), (1, 1), padding, (1, 1))
    what = f"{name}: height or width"
    counts = [require_constant(count, what) for count in windows.counts(data)]
    tiles = [-(-count // tile_size) for count in counts]
    borders = {}
    for axis in range(2):
        before, after = windows.borders[axis]
        # The last tile reaches beyond the last window.
        further = tiles[axis] * tile_size - counts[axis]
        borders[2 + axis] = (before, after + further)
    padded = pad_axes(data, borders, const(0, data.dtype))
    result = _assemble(
        _transform_tiles(padded, tiles, tile_size),
        _transform_kernels(weight, tile_size),
        counts,
        tile_size,
    )
    return result if bias is None else add_bias(result, bias, name, 1)


def _matrix(rows: _Rows, dtype: DType, name: str) -> Tensor:
    """Return a matrix of constants as a tensor."""

    def element(i: Expr, j: Expr) -> Expr:
        value: Expr = const(0, dtype)
        for row, entries in enumerate(rows):
            for column, entry in enumerate(entries):
                if entry:
                    is_here = maths.all(i.equal(row), j.equal(column))
                    value = maths.select(is_here, const(entry, dtype), value)
        return value

    return compute((len(rows), len(rows[0])), element, name=name)


def _transform_kernels(weight: Tensor, tile_size: int) -> Tensor:
    """Return G g transposed G for the kernel g of each pair of channels: [y, x, o, c]."""
    matrices = _MATRICES[tile_size]
    matrix = _matrix(matrices.kernel, weight.dtype, "kernel_matrix")
    edge = len(matrices.kernel)
    out, depth, *_ = extents(weight)
    ky = reduce_axis(3, "ky")
    kx = reduce_axis(3, "kx")

    def total(y: Expr, x: Expr, o: Expr, c: Expr) -> Expr:
        factor = matrix[y, ky] * matrix[x, kx]
        return reducer.sum(weight[o, c, ky, kx] * factor, axis=[ky, kx])

    shape = (edge, edge, out, depth)
    scaled = compute(shape, total, name="scaled_kernels", tag=REDUCTION)
    # Each of both matrices has the denominator.
    denominator = const(matrices.scale**2, weight.dtype)
    return compute(
        shape,
        lambda *at: scaled[at] / denominator,
        name="kernels",
    )


def _transform_tiles(padded: Tensor, tiles: Sequence[int], tile_size: int) -> Tensor:
    """Return transposed B d B for each tile d: [y, x, c, n, row of tiles, column of tiles]."""
    matrices = _MATRICES[tile_size]
    matrix = _matrix(matrices.image, padded.dtype, "image_matrix")
    edge = len(matrices.image)
    batch, channels, *_ = extents(padded)
    ty = reduce_axis(edge, "ty")
    tx = reduce_axis(edge, "tx")

    def total(y: Expr, x: Expr, c: Expr, n: Expr, down: Expr, across: Expr) -> Expr:
        read = padded[n, c, down * tile_size + ty, across * tile_size + tx]
        factor = matrix[y, ty] * matrix[x, tx]
        return reducer.sum(read * factor, axis=[ty, tx])

    shape = (edge, edge, channels, batch, *tiles)
    return compute(shape, total, name="tiles", tag=REDUCTION)


def _assemble(
    tiles: Tensor, kernels: Tensor, counts: Sequence[int], tile_size: int
) -> Tensor:
    """Return the sums over the channels, transformed back to images of `counts` elements."""
    matrices = _MATRICES[tile_size]
    matrix = _matrix(matrices.result, tiles.dtype, "result_matrix")
    edge, _, channels, batch, rows, columns = extents(tiles)
    out = extents(kernels)[2]
    c = reduce_axis(channels, "c")

    def product(y: Expr, x: Expr, o: Expr, n: Expr, down: Expr, across: Expr) -> Expr:
        term = kernels[y, x, o, c] * tiles[y, x, c, n, down, across]
        return reducer.sum(term, axis=c)

    shape = (edge, edge, out, batch, rows, columns)
    products = compute(shape, product, name="products", tag=REDUCTION)
    ry = reduce_axis(edge, "ry")
    rx = reduce_axis(edge, "rx")

    def element(n: Expr, o: Expr, y: Expr, x: Expr) -> Expr:
        read = products[ry, rx, o, n, y // tile_size, x // tile_size]
        factor = matrix[y % tile_size, ry] * matrix[x % tile_size, rx]
        return reducer.sum(read * factor, axis=[ry, rx])

    return compute(
        (batch, out, *counts), element, name="conv2d_winograd", tag=REDUCTION
    )


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
    borders = [(0, 0), (0, 0)]
    for axis, count in enumerate((height, width)):
        further = -count % tile_size
        borders.append((padding[axis], padding[2 + axis] + further))
    edge = (tile_size + 2, tile_size + 2)
    strides = (tile_size, tile_size)
    tiles = windows_numpy(np.pad(data, borders), edge, strides, (1, 1))
    is_finite = np.isfinite(tiles).all(axis=(1, 4, 5))
    is_kept = is_finite.repeat(tile_size, axis=1).repeat(tile_size, axis=2)
    return np.where(is_kept[:, None, :height, :width], result, result.dtype.type("nan"))
