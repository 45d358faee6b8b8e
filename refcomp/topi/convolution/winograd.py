"""The stages of Winograd's minimal filtering, F(2, 3) or F(4, 3), in two dimensions.

A tile of m x m results needs (m + 2)^2 multiplications for each pair of channels, not 9 m^2. With
the matrices B, G and A of the algorithm, a tile d of the image and a kernel g give::

    transposed A ((G g transposed G) * (transposed B d B)) A

The products are summed over the channels before the outer transform. Errors are larger than those
of a direct sum, most of all for m = 4. Floats of 16 bits are transformed and added up in f32.
Intermediate results may be hundreds of times as large as the operands, and would overflow.

Reference: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016,
sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.foundation.dtype import F32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.convolution.windows import make_windows
from refcomp.topi.shapes import require_constant
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


MATRICES = {
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


def matrices_of(tile_size: int, operator: str) -> WinogradMatrices:
    """Return the matrices for tiles of this size. Raise UserError for other sizes than 2 and 4."""
    if tile_size not in MATRICES:
        raise UserError(
            f"{operator} does not have tiles of {tile_size}", remedy="use 2 or 4"
        )
    return MATRICES[tile_size]


def require_three_by_three(
    weight: Tensor, height: int, width: int, operator: str
) -> None:
    """Raise UserError for kernels of another size."""
    if (height, width) != (3, 3):
        raise UserError(
            f"{operator} does not take kernels of {height} x {width}",
            why="the matrices of the transforms belong to kernels of 3 x 3",
            remedy="use conv2d for other kernels",
            earlier=[weight.declaration()],
        )


def _wide(dtype: DType) -> DType:
    """Return the dtype of intermediate results."""
    return F32 if dtype.bits < 32 else dtype


def winograd_sums(
    data: Tensor, kernels: Tensor, padding: Padding, tile_size: int, operator: str
) -> Tensor:
    """Return the convolution of images [n, c, h, w] with transformed kernels [y, x, o, c]."""
    windows = make_windows(operator, "NCHW", (3, 3), (1, 1), padding, (1, 1))
    what = f"{operator}: height or width"
    counts = [require_constant(count, what) for count in windows.counts(data)]
    tiles = [-(-count // tile_size) for count in counts]
    borders = {}
    for axis in range(2):
        before, after = windows.borders[axis]
        # The last tile reaches beyond the last window.
        further = tiles[axis] * tile_size - counts[axis]
        borders[2 + axis] = (before, after + further)
    padded = pad_axes(data, borders, const(0, data.dtype))
    transformed = _transform_tiles(padded, tiles, tile_size)
    sums = _assemble(transformed, kernels, counts, tile_size, operator)
    if sums.dtype == data.dtype:
        return sums
    return compute(
        sums.shape,
        lambda *at: sums[at].astype(data.dtype),
        name="narrowed",
        tag=INJECTIVE,
    )


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


def transform_kernels(weight: Tensor, tile_size: int, dtype: DType) -> Tensor:
    """Return G g transposed G for the kernel g of each pair of channels: [y, x, o, c].

    The result is rounded to `dtype`.
    """
    matrices = MATRICES[tile_size]
    wide = _wide(weight.dtype)
    matrix = _matrix(matrices.kernel, wide, "kernel_matrix")
    edge = len(matrices.kernel)
    out, depth, *_ = extents(weight)
    ky = reduce_axis(3, "ky")
    kx = reduce_axis(3, "kx")

    def total(y: Expr, x: Expr, o: Expr, c: Expr) -> Expr:
        factor = matrix[y, ky] * matrix[x, kx]
        read = weight[o, c, ky, kx].astype(wide)
        return reducer.sum(read * factor, axis=[ky, kx])

    shape = (edge, edge, out, depth)
    scaled = compute(shape, total, name="scaled_kernels", tag=REDUCTION)
    # Each of both matrices has the denominator.
    denominator = const(matrices.scale**2, wide)
    return compute(
        shape,
        lambda *at: (scaled[at] / denominator).astype(dtype),
        name="kernels",
    )


def _transform_tiles(padded: Tensor, tiles: Sequence[int], tile_size: int) -> Tensor:
    """Return transposed B d B for each tile d: [y, x, c, n, row of tiles, column of tiles]."""
    matrices = MATRICES[tile_size]
    wide = _wide(padded.dtype)
    matrix = _matrix(matrices.image, wide, "image_matrix")
    edge = len(matrices.image)
    batch, channels, *_ = extents(padded)
    ty = reduce_axis(edge, "ty")
    tx = reduce_axis(edge, "tx")

    def total(y: Expr, x: Expr, c: Expr, n: Expr, down: Expr, across: Expr) -> Expr:
        read = padded[n, c, down * tile_size + ty, across * tile_size + tx]
        factor = matrix[y, ty] * matrix[x, tx]
        return reducer.sum(read.astype(wide) * factor, axis=[ty, tx])

    shape = (edge, edge, channels, batch, *tiles)
    return compute(shape, total, name="tiles", tag=REDUCTION)


def _assemble(
    tiles: Tensor,
    kernels: Tensor,
    counts: Sequence[int],
    tile_size: int,
    operator: str,
) -> Tensor:
    """Return the sums over the channels, transformed back to images of `counts` elements."""
    matrices = MATRICES[tile_size]
    matrix = _matrix(matrices.result, tiles.dtype, "result_matrix")
    edge, _, channels, batch, rows, columns = extents(tiles)
    out = extents(kernels)[2]
    c = reduce_axis(channels, "c")

    def product(y: Expr, x: Expr, o: Expr, n: Expr, down: Expr, across: Expr) -> Expr:
        kernel = kernels[y, x, o, c].astype(tiles.dtype)
        return reducer.sum(kernel * tiles[y, x, c, n, down, across], axis=c)

    shape = (edge, edge, out, batch, rows, columns)
    products = compute(shape, product, name="products", tag=REDUCTION)
    ry = reduce_axis(edge, "ry")
    rx = reduce_axis(edge, "rx")

    def element(n: Expr, o: Expr, y: Expr, x: Expr) -> Expr:
        read = products[ry, rx, o, n, y // tile_size, x // tile_size]
        factor = matrix[y % tile_size, ry] * matrix[x % tile_size, rx]
        return reducer.sum(read * factor, axis=[ry, rx])

    return compute((batch, out, *counts), element, name=operator, tag=REDUCTION)
