"""Convolution of 3 x 3 kernels on channels in blocks, by Winograd's minimal filtering F(2, 3).

A tile of 2 x 2 results takes 16 multiplications for each pair of channels, where direct sums take
36. With the matrices of `winograd`, in which all entries are 0, 1, -1 and halves::

    tiles    = transposed B d B          of each tile d of 4 x 4 elements of the image
    products = sum over the channels of tiles * (G g transposed G)
    result   = transposed A products A

The kernels are transformed by an operator of their own, so that it can be done in advance. Zeros of
the matrices are left out: an infinity spoils only those results that it takes part in. Errors are
hardly larger than those of a direct sum, which is not so for larger tiles.

Reference: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016,
sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from refcomp.foundation.dtype import F32, F64
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.convolution.windows import make_windows
from refcomp.topi.convolution.winograd import MATRICES, require_three_by_three
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)
from refcomp.topi.spatial_padding import Padding, pad_axes
from refcomp.topi.tags import CONV2D_WINOGRAD, REDUCTION, SHARED

# The rows and columns of results in a tile, and of the elements that they depend on.
TILE = 2
EDGE = 4
_IMAGE = MATRICES[TILE].image
_RESULT = MATRICES[TILE].result
_LAYOUT = "NCHWc"

_Term = TypeVar("_Term", Expr, Array)


def conv2d_nchwc_winograd(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    padding: Padding = (0, 0, 0, 0),
) -> Tensor:
    """Return the convolution of images in blocks of channels with transformed 3 x 3 kernels.

    It is `conv2d_nchwc` with strides and dilation of 1 and one group, except for rounding. A NaN or
    an infinity may make all 2 x 2 results of a tile NaN.

    Args:
        data: [n, C, h, w, c], of f32 or f64: C blocks of c channels; h and w are constant.
        weight: [4, 4, O, C, c, o], of constant extents and of the dtype of `data`, as
            `conv2d_nchwc_winograd_weight` returns it.
        bias: [O, o], of the dtype of `data`; optional.
        padding: zeros added at the top, left, bottom and right.

    Returns:
        A tensor [n, O, h', w', o] of the dtype of `data`, for kernels of 3 x 3.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.

    Example::

        >>> X = rc.placeholder((1, 1, 4, 4, 1), name="X")
        >>> W = rc.placeholder((1, 1, 3, 3, 1, 1), name="W")
        >>> U = rc.topi.conv2d_nchwc_winograd_weight(W)
        >>> Y = rc.topi.conv2d_nchwc_winograd(X, U)
        >>> x, w = np.arange(16).reshape(1, 1, 4, 4, 1), np.eye(3)
        >>> w = w.reshape(1, 1, 3, 3, 1, 1).astype("float32")
        >>> (y,) = rc.oracle.evaluate([Y], {X: x.astype("float32"), W: w})
        >>> print(y.reshape(2, 2))
        [[15. 18.]
         [27. 30.]]
    """
    name = "conv2d_nchwc_winograd"
    require_rank(data, 5, name, "the data")
    require_rank(weight, 6, name, "the weight")
    if bias is not None:
        require_rank(bias, 2, name, "the bias")
    _require_wide_float(data, name)
    require_one_dtype(name, data, weight, bias)
    height, width, outs, depth, lanes, out = (
        require_constant(e, f"{name}: the weight's shape") for e in extents(weight)
    )
    for size in (height, width):
        require_extent(size, EDGE, name, "the edge of the weight", tensors=(weight,))
    what = "the number of the data's channel blocks"
    require_extent(extents(data)[1], depth, name, what, tensors=(data, weight))
    what = "the data's channel block"
    require_extent(extents(data)[4], lanes, name, what, tensors=(data, weight))
    windows = make_windows(name, _LAYOUT, (3, 3), (1, 1), padding, (1, 1))
    what = f"{name}: height or width"
    counts = [require_constant(count, what) for count in windows.counts(data)]
    borders = {
        # The last tile may reach beyond the last window.
        2 + axis: (before, after + -counts[axis] % TILE)
        for axis, (before, after) in enumerate(windows.borders)
    }
    padded = pad_axes(data, borders, const(0, data.dtype))
    tiles = _transform_tiles(padded, [-(-count // TILE) for count in counts])
    result = _transform_back(_multiply(tiles, weight), counts)
    if bias is None:
        return result
    for actual, expected in zip(extents(bias), (outs, out), strict=True):
        require_extent(actual, expected, name, "the bias' extent", tensors=(bias,))
    return compute(
        result.shape,
        lambda *at: result[at] + bias[at[1], at[4]],
        name="bias",
        tag=INJECTIVE,
    )


def _require_wide_float(data: Tensor, operator: str) -> None:
    require_float(data, operator)
    if data.dtype not in (F32, F64):
        raise UserError(
            f"{operator} does not take tensors of {data.dtype}",
            why="the sums of a transform may overflow a narrower dtype than f32",
            remedy="use conv2d_nchwc",
            earlier=[data.declaration()],
        )


def _signed_sum(row: Sequence[int], terms: Sequence[_Term]) -> _Term:
    """Return the sum of `terms` times the entries of `row`, which are 0, 1 and -1.

    The first entry that is not 0 may be -1 only if a later one is 1.
    """
    added = [term for entry, term in zip(row, terms, strict=True) if entry > 0]
    taken = [term for entry, term in zip(row, terms, strict=True) if entry < 0]
    total = added[0]
    for term in added[1:]:
        total = total + term
    for term in taken:
        total = total - term
    return total


def _row_of(
    matrix: Sequence[Sequence[int]], place: Expr, term: Callable[[int], Expr]
) -> Expr:
    """Return element `place` of the product of a matrix with the column of `term`.

    A schedule unrolls the loop over `place`, so that one of the rows remains.
    """
    terms = [term(column) for column in range(EDGE)]
    *others, value = [_signed_sum(row, terms) for row in matrix]
    for number, other in reversed(tuple(enumerate(others))):
        value = maths.select(place.equal(number), other, value)
    return value


def _transform_tiles(padded: Tensor, tiles: Sequence[int]) -> Tensor:
    """Return transposed B d B for each tile d: [n, y, x, C, tile, c].

    Tiles are numbered row by row.
    """
    batch, blocks, _, width, lanes = extents(padded)
    down, across = tiles

    def element(n: Expr, b: Expr, y: Expr, row: Expr, column: Expr, c: Expr) -> Expr:
        return _row_of(_IMAGE, y, lambda k: padded[n, b, row * TILE + k, column, c])

    shape = (batch, blocks, EDGE, down, width, lanes)
    rows = compute(shape, element, name="tile_rows", tag=INJECTIVE)

    def point(n: Expr, y: Expr, x: Expr, b: Expr, tile: Expr, c: Expr) -> Expr:
        row = tile // across
        first = tile % across * TILE
        return _row_of(_IMAGE, x, lambda k: rows[n, b, y, row, first + k, c])

    count = down * across
    whole = (batch, EDGE, EDGE, blocks, count, lanes)
    return compute(whole, point, name="tiles", tag=SHARED)


def _multiply(tiles: Tensor, weight: Tensor) -> Tensor:
    """Return the sums over the channels: [n, y, x, O, tile, o]."""
    batch, _, _, blocks, count, lanes = extents(tiles)
    _, _, outs, _, _, out = extents(weight)
    rb = reduce_axis(blocks, "rb")
    rc = reduce_axis(lanes, "rc")

    def total(n: Expr, y: Expr, x: Expr, o: Expr, tile: Expr, lane: Expr) -> Expr:
        read = tiles[n, y, x, rb, tile, rc]
        return reducer.sum(read * weight[y, x, o, rb, rc, lane], axis=[rb, rc])

    shape = (batch, EDGE, EDGE, outs, count, out)
    return compute(shape, total, name="products", tag=REDUCTION)


def _transform_back(products: Tensor, counts: Sequence[int]) -> Tensor:
    """Return transposed A p A for the products p of each tile, as images [n, O, h', w', o]."""
    batch, _, _, outs, _, out = extents(products)
    height, width = counts
    across = -(-width // TILE)

    def half(n: Expr, o: Expr, y: Expr, x: Expr, column: Expr, lane: Expr) -> Expr:
        tile = y // TILE * across + column
        return _row_of(_RESULT, y % TILE, lambda k: products[n, k, x, o, tile, lane])

    shape = (batch, outs, height, EDGE, across, out)
    halves = compute(shape, half, name="result_rows", tag=INJECTIVE)
    return compute(
        (batch, outs, height, width, out),
        lambda n, o, y, x, lane: _row_of(
            _RESULT, x % TILE, lambda k: halves[n, o, y, k, x // TILE, lane]
        ),
        name="conv2d",
        tag=CONV2D_WINOGRAD,
    )


def _sample_conv2d_nchwc_winograd(draws: Draws) -> Sample:
    blocks = draws.integer(1, 2)
    outs = draws.integer(1, 2)
    dtype = draws.choice(("float32", "float64"))
    data = draws.array((draws.extent(0), blocks, *draws.pair(3, 5), 2), dtype)
    weight = draws.array((EDGE, EDGE, outs, blocks, 2, 2), dtype, special=False)
    bias = draws.array((outs, 2), dtype) if draws.flag() else None
    padding = tuple(draws.integer(0, 1) for _ in range(4))
    return Sample((data, weight, bias), {"padding": padding})


@meaning_of(conv2d_nchwc_winograd, sample=_sample_conv2d_nchwc_winograd)
def conv2d_nchwc_winograd_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    padding: Padding = (0, 0, 0, 0),
) -> Array:
    top, left, bottom, right = padding
    height = data.shape[2] + top + bottom - 2
    width = data.shape[3] + left + right - 2
    borders = [(0, 0)] * 2 + [
        (top, bottom + height % TILE),
        (left, right + width % TILE),
        (0, 0),
    ]
    padded = np.pad(widen(data), borders)
    rows = [padded[:, :, k : k + height : TILE] for k in range(EDGE)]
    points = []
    for image_row in _IMAGE:
        row = _signed_sum(image_row, rows)
        columns = [row[:, :, :, k : k + width : TILE] for k in range(EDGE)]
        points.append([_signed_sum(entries, columns) for entries in _IMAGE])
    spread: Array = np.array(points)
    products = np.einsum("yxnbtuc,yxobcl->yxnotul", spread, widen(weight))
    halves = [_signed_sum(entries, products) for entries in _RESULT]
    result = np.empty(
        (*data.shape[:1], weight.shape[2], height, width, weight.shape[5])
    )
    for y, half in enumerate(halves):
        for x, entries in enumerate(_RESULT):
            part = result[:, :, y::TILE, x::TILE]
            whole = _signed_sum(entries, half)
            part[...] = whole[:, :, : part.shape[2], : part.shape[3]]
    if bias is not None:
        result += widen(bias)[:, None, None, :]
    return np.asarray(result.astype(data.dtype))


def conv2d_nchwc_winograd_weight(weight: Tensor) -> Tensor:
    """Return blocked 3 x 3 kernels in the form in which `conv2d_nchwc_winograd` multiplies them.

        result[y, x, O, C, c, o] = (G w[O, C, :, :, c, o] transposed G)[y, x]

    Args:
        weight: [O, C, 3, 3, c, o], of f32 or f64 and of constant extents.

    Returns:
        A tensor [4, 4, O, C, c, o] of the dtype of `weight`. Each of the two products with G
        rounds at most twice; halves of the smallest numbers round, too.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.

    Example::

        >>> W = rc.placeholder((1, 1, 3, 3, 1, 1), name="W")
        >>> U = rc.topi.conv2d_nchwc_winograd_weight(W)
        >>> (u,) = rc.oracle.evaluate([U], {W: np.ones((1, 1, 3, 3, 1, 1), "float32")})
        >>> print(u[:, :, 0, 0, 0, 0])
        [[1.   1.5  0.5  1.  ]
         [1.5  2.25 0.75 1.5 ]
         [0.5  0.75 0.25 0.5 ]
         [1.   1.5  0.5  1.  ]]
    """
    name = "conv2d_nchwc_winograd_weight"
    require_rank(weight, 6, name, "the weight")
    _require_wide_float(weight, name)
    outs, blocks, height, width, lanes, out = (
        require_constant(e, f"{name}: the weight's shape") for e in extents(weight)
    )
    require_three_by_three(weight, height, width, name)
    half = const(0.5, weight.dtype)

    def row(place: Expr, terms: Sequence[Expr]) -> Expr:
        first, middle, last, end = _kernel_row(terms, half)
        rows = maths.select(place.equal(2), last, end)
        rows = maths.select(place.equal(1), middle, rows)
        return maths.select(place.equal(0), first, rows)

    def element(y: Expr, x: Expr, o: Expr, b: Expr, c: Expr, lane: Expr) -> Expr:
        columns = [
            row(y, [weight[o, b, k, j, c, lane] for k in range(3)]) for j in range(3)
        ]
        return row(x, columns)

    shape = (EDGE, EDGE, outs, blocks, lanes, out)
    return compute(shape, element, name="kernels", tag=INJECTIVE)


def _kernel_row(terms: Sequence[_Term], half: _Term | float) -> list[_Term]:
    """Return G times a column of three terms."""
    first, middle, last = terms
    outer = first + last
    return [first, (outer + middle) * half, (outer - middle) * half, last]


def _sample_conv2d_nchwc_winograd_weight(draws: Draws) -> Sample:
    blocks = draws.pair(0, 2)
    dtype = draws.choice(("float32", "float64"))
    return Sample((draws.array((*blocks, 3, 3, *draws.pair(1, 2)), dtype),))


@meaning_of(
    conv2d_nchwc_winograd_weight,
    pattern="injective",
    sample=_sample_conv2d_nchwc_winograd_weight,
)
def conv2d_nchwc_winograd_weight_numpy(weight: Array) -> Array:
    outs, blocks, _, _, lanes, out = weight.shape
    result = np.empty((EDGE, EDGE, outs, blocks, lanes, out), weight.dtype)
    # One block after the other: in f64, large weights would take 7 times their memory.
    for place in range(outs):
        wide = widen(weight[place])
        down = [wide[:, k] for k in range(3)]
        rows = [[row[:, k] for k in range(3)] for row in _kernel_row(down, 0.5)]
        result[:, :, place] = [_kernel_row(row, 0.5) for row in rows]
    return result
