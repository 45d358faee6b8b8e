"""Sampling of images at positions that are known at run time only.

Reference: M. Jaderberg et al., "Spatial Transformer Networks", NeurIPS 2015; ONNX GridSample and
AffineGrid.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from refcomp.foundation.dtype import F32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import ExprLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.image.positions import require_choice
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_one_dtype,
)
from refcomp.topi.tags import REDUCTION, SHARED

_PADDINGS = ("zeros", "border", "reflection")
# Mode -> neighbours along an axis.
_NEIGHBOURS = {"nearest": 1, "linear": 2, "cubic": 4}
# Positions are limited, so that they are exact integers of every dtype that is computed in.
_FARTHEST = float(2**22)
# The parameter a of Keys' cubic kernel.
_CUBIC = -0.75


def grid_sample(
    data: Tensor,
    grid: Tensor,
    *,
    mode: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """Sample images at the positions of a grid, by interpolation.

    The last axis of `grid` holds the coordinates of a point, x first. For a coordinate g, along an
    axis of n elements, the position p is

        g * n / 2 + (n - 1) / 2          -1 and 1 are the borders of the image
        g * (n - 1) / 2 + (n - 1) / 2    with align_corners: the centres of its outer elements

    The mode nearest takes the element nearest to p, and the even one of two. Along each axis, the
    mode linear sums the elements floor(p) and floor(p) + 1 with the weights 1 - f and f. Here f is
    p - floor(p). The mode cubic sums 4 elements along each axis with the weights of the cubic
    kernel on the page of `resize`, with a = -0.75. Positions are limited to -2^22 and 2^22.

    An element outside of the image is 0, or with the padding border the nearest element of the
    image, or with reflection the mirror image. The mirrors are at the borders, or with
    align_corners at the centres of the outer elements. A neighbour of weight 0 counts: its NaN or
    infinity makes NaN. A NaN in `grid` makes NaN.

    Args:
        data: floats [n, c, h, w], or [n, c, d, h, w] for volumes. h, w and d are constant and at
            least 1.
        grid: floats [n, h', w', 2], or [n, d', h', w', 3], of the dtype of `data`.
        mode: nearest, linear or cubic.
        padding: zeros, border or reflection.
        align_corners: True if -1 and 1 are centres of elements.

    Returns:
        A tensor [n, c, h', w'] or [n, c, d', h', w'] of the dtype of `data`. f16 and bf16 are
        computed in f32.

    Raises:
        UserError: an argument is not as described.

    Reference: ONNX GridSample, opset 20.

    Example::

        >>> A = rc.placeholder((1, 1, 1, 3), name="A")
        >>> G = rc.placeholder((1, 1, 2, 2), name="G")
        >>> B = rc.topi.grid_sample(A, G, align_corners=True)
        >>> a = np.array([1, 2, 4], "float32").reshape(1, 1, 1, 3)
        >>> g = np.array([[0, 0], [0.5, 0]], "float32").reshape(1, 1, 2, 2)
        >>> print(rc.oracle.evaluate([B], {A: a, G: g})[0].ravel())
        [2. 3.]
    """
    sizes = _check_grid_sample(data, grid, mode, padding)
    rank = len(sizes)
    work = data.dtype if data.dtype.bits >= 32 else F32
    positions = _positions(grid, sizes, align_corners, work)
    weights = _weights(positions, mode)
    steps = [reduce_axis(_NEIGHBOURS[mode], f"k{axis}") for axis in range(rank)]
    batch, channels = extents(data)[:2]
    shape = (batch, channels, *extents(grid)[1:-1])

    def element(n: Expr, c: Expr, *point: Expr) -> Expr:
        factors: list[Expr] = []
        source: list[Expr] = []
        inside: list[Expr] = []
        for axis, (step, size) in enumerate(zip(steps, sizes, strict=True)):
            place: tuple[ExprLike, ...] = (n, *point, axis)
            factors.append(weights[(*place, step.var)])
            neighbour = _floor(positions[place], mode) + step.var
            neighbour = neighbour - (_NEIGHBOURS[mode] - 1) // 2
            inside += [neighbour >= 0, neighbour < size]
            source.append(_moved_inside(neighbour, size, padding, align_corners))
        value = cast(work, data[(n, c, *source)])
        if padding == "zeros":
            value = maths.select(maths.all(*inside), value, const(0, work))
        for factor in factors:
            value = value * factor
        return reducer.sum(value, axis=steps)

    sampled = compute(shape, element, name="grid_sample", tag=REDUCTION)
    if work == data.dtype:
        return sampled
    return compute(
        shape,
        lambda *index: cast(data.dtype, sampled[index]),
        name="rounded",
        tag=INJECTIVE,
    )


def _check_grid_sample(
    data: Tensor, grid: Tensor, mode: str, padding: str
) -> list[int]:
    """Return the spatial extents of the data. Raise UserError if an argument is ill-formed."""
    require_float(data, "grid_sample")
    require_float(grid, "grid_sample")
    require_one_dtype("grid_sample", data, grid)
    require_choice(mode, tuple(_NEIGHBOURS), "grid_sample", "mode")
    require_choice(padding, _PADDINGS, "grid_sample", "padding")
    if data.ndim not in (4, 5) or grid.ndim != data.ndim:
        raise UserError(
            f"grid_sample cannot sample data of {data.ndim} dimensions "
            f"by a grid of {grid.ndim}",
            remedy="give 4 dimensions for images, or 5 for volumes, to both",
            earlier=[data.declaration(), grid.declaration()],
        )
    require_extent(
        extents(grid)[0],
        extents(data)[0],
        "grid_sample",
        "the batch of the grid",
        tensors=(data, grid),
    )
    require_extent(
        extents(grid)[-1],
        data.ndim - 2,
        "grid_sample",
        "the last extent of the grid",
        tensors=(grid,),
    )
    sizes = [require_constant(size, "a spatial extent") for size in extents(data)[2:]]
    if 0 in sizes:
        raise UserError(
            "grid_sample cannot sample an image without elements",
            remedy="give data with elements along each spatial axis",
            earlier=[data.declaration()],
        )
    return sizes


def _positions(
    grid: Tensor, sizes: Sequence[int], align_corners: bool, work: DType
) -> Tensor:
    """Return the positions [n, ..., axis], with the first spatial axis of the data first."""
    rank = len(sizes)

    def position(*index: Expr) -> Expr:
        axis = index[-1]
        coordinate = cast(work, grid[(*index[:-1], rank - 1 - axis)])
        factors = [(size - 1 if align_corners else size) / 2 for size in sizes]
        factor = _entry(factors, axis, work)
        centre = _entry([(size - 1) / 2 for size in sizes], axis, work)
        limit = const(_FARTHEST, work)
        above = maths.maximum(coordinate * factor + centre, -limit)
        return maths.minimum(above, limit)

    return compute(extents(grid), position, name="position", tag=SHARED)


def _entry(numbers: Sequence[float], place: Expr, dtype: DType) -> Expr:
    """Return numbers[place]."""
    chosen = const(numbers[-1], dtype)
    for k, number in enumerate(numbers[:-1]):
        chosen = maths.select(place.equal(k), const(number, dtype), chosen)
    return chosen


def _floor(position: Expr, mode: str) -> Expr:
    """Return the first neighbour of a position, but for one on the left in the mode cubic."""
    function = maths.round if mode == "nearest" else maths.floor
    return cast("int64", function(position))


def _weights(positions: Tensor, mode: str) -> Tensor:
    """Return the weights [n, ..., axis, neighbour] of the neighbours."""
    shape = (*extents(positions), _NEIGHBOURS[mode])

    def weight(*index: Expr) -> Expr:
        position = positions[index[:-1]]
        neighbour = index[-1]
        dtype = position.dtype
        one = const(1, dtype)
        if mode == "nearest":
            return maths.select(maths.isnan(position), position, one)
        f = position - maths.floor(position)
        if mode == "linear":
            return maths.select(neighbour.equal(0), one - f, f)
        offset = neighbour - 1
        distance = maths.abs(f - cast(dtype, offset))
        is_near = maths.any(offset.equal(0), offset.equal(1))
        return maths.select(is_near, _near(distance), _far(distance))

    return compute(shape, weight, name="weights", tag=SHARED)


def _near(d: Expr) -> Expr:
    return ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1.0


def _far(d: Expr) -> Expr:
    return ((_CUBIC * d - 5 * _CUBIC) * d + 8 * _CUBIC) * d - 4 * _CUBIC


def _moved_inside(
    neighbour: Expr, size: int, padding: str, align_corners: bool
) -> Expr:
    """Return an element of the image that stands for a neighbour."""
    if padding == "reflection" and (size > 1 or not align_corners):
        period = 2 * size - 2 if align_corners else 2 * size
        phase = maths.floormod(neighbour, period)
        # The second half of a period goes back.
        back = period - phase if align_corners else period - 1 - phase
        return maths.minimum(phase, back)
    zero = const(0, neighbour.dtype)
    last = const(size - 1, neighbour.dtype)
    return maths.minimum(maths.maximum(neighbour, zero), last)


def _sample_grid_sample(draws: Draws) -> Sample:
    rank = draws.choice((2, 2, 3))
    mode = draws.choice(tuple(_NEIGHBOURS))
    batch = draws.choice((0, 1, 1, 2))
    dtype = draws.float_dtype()
    longest = 4 if rank == 2 else 3
    data_shape = (
        batch,
        draws.integer(1, 2),
        *[draws.integer(1, longest) for _ in range(rank)],
    )
    grid_shape = (batch, *[draws.extent(0) for _ in range(rank - 1)], 2, rank)
    if draws.flag():
        grid = draws.array(grid_shape, dtype)
    else:
        # Coordinates whose positions are exact, and often those of elements.
        grid = draws.integers(grid_shape, -24, 24).astype(dtype)
        grid = (grid / grid.dtype.type(16)).astype(dtype)
    options = {
        "mode": mode,
        "padding": draws.choice(_PADDINGS),
        "align_corners": draws.flag(),
    }
    return Sample((draws.array(data_shape, dtype), grid), options)


@meaning_of(grid_sample, sample=_sample_grid_sample)
def grid_sample_numpy(
    data: Array,
    grid: Array,
    *,
    mode: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
) -> Array:
    sizes = np.array(data.shape[2:])
    wide = data.astype(np.longdouble)
    points = grid.astype(np.longdouble)[..., ::-1]
    reach = sizes - 1 if align_corners else sizes
    positions = (points * reach + (sizes - 1)) / 2
    positions = np.clip(positions, -_FARTHEST, _FARTHEST)
    is_nan = np.isnan(positions)
    known = np.where(is_nan, 0, positions)
    first = (np.rint(known) if mode == "nearest" else np.floor(known)).astype(np.int64)
    fraction = positions - first
    total = np.zeros((*data.shape[:2], *grid.shape[1:-1]))
    offsets = {"nearest": [0], "linear": [0, 1], "cubic": [-1, 0, 1, 2]}[mode]
    batch = np.arange(len(data)).reshape(-1, *[1] * len(sizes))
    for offset in itertools.product(offsets, repeat=len(sizes)):
        places = first + np.array(offset)
        inside = np.all((places >= 0) & (places < sizes), axis=-1)
        source = [
            _stand_in(places[..., k], int(size), padding, align_corners)
            for k, size in enumerate(sizes)
        ]
        # The channels come last, because the indices around their axis broadcast.
        index: tuple[Any, ...] = (batch, slice(None), *source)
        value = wide[index]
        if padding == "zeros":
            value = np.where(inside[..., None], value, 0)
        distance = np.abs(fraction - np.array(offset))
        weight = _kernel(distance, mode).prod(axis=-1)
        total += np.moveaxis(value * weight[..., None], -1, 1)
    return np.asarray(total, data.dtype)


def _stand_in(place: Array, size: int, padding: str, align_corners: bool) -> Array:
    if padding == "reflection":
        # The image forwards and backwards, over and over.
        forwards = list(range(size))
        backwards = forwards[-2:0:-1] if align_corners else forwards[::-1]
        cycle = np.array(forwards + backwards)
        return np.asarray(cycle[place % len(cycle)])
    return np.asarray(np.clip(place, 0, size - 1))


def _kernel(distance: Array, mode: str) -> Array:
    if mode == "nearest":
        return np.where(np.isnan(distance), np.nan, 1.0)
    if mode == "linear":
        return np.asarray(1 - distance)
    near = np.polyval([_CUBIC + 2, -(_CUBIC + 3), 0, 1], distance)
    far = np.polyval([_CUBIC, -5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC], distance)
    return np.where(distance <= 1, near, far)


def affine_grid(
    theta: Tensor, *, size: Sequence[int], align_corners: bool = False
) -> Tensor:
    """Return the points of a regular grid, moved by an affine map for each image.

    Point i of n, along an axis, has the coordinate (2 * i + 1 - n) / n. With `align_corners`, it is
    (2 * i + 1 - n) / (n - 1), and 0 if n is 1. For the coordinates (x, y) of a point, the result
    holds

        theta[b, :, 0] * x + theta[b, :, 1] * y + theta[b, :, 2]

    and for volumes likewise with a third coordinate z. NaN and infinity propagate; 0 times infinity
    is NaN. `grid_sample` takes the result.

    Args:
        theta: floats [n, 2, 3] for images, or [n, 3, 4] for volumes.
        size: extents of the grid: (h, w) or (d, h, w), each at least 1.
        align_corners: True if -1 and 1 are centres of elements, as for `grid_sample`.

    Returns:
        A tensor [n, h, w, 2] or [n, d, h, w, 3] of the dtype of `theta`. f16 and bf16 are computed
        in f32.

    Raises:
        UserError: an argument is not as described.

    Reference: ONNX AffineGrid, whose size also names the batch and the channels.

    Example::

        >>> T = rc.placeholder((1, 2, 3), name="T")
        >>> G = rc.topi.affine_grid(T, size=(1, 2), align_corners=True)
        >>> t = np.array([[[1, 0, 0.5], [0, 1, 0]]], "float32")
        >>> print(rc.oracle.evaluate([G], {T: t})[0].reshape(2, 2))
        [[-0.5  0. ]
         [ 1.5  0. ]]
    """
    require_float(theta, "affine_grid")
    rank = len(size)
    if rank not in (2, 3) or any(extent < 1 for extent in size):
        raise UserError(
            f"affine_grid cannot make a grid of the size {tuple(size)}",
            remedy="give two or three numbers >= 1: height and width, or depth first",
        )
    if theta.ndim != 3 or extents(theta)[1:] != (rank, rank + 1):
        raise UserError(
            f"affine_grid takes theta of the shape [n, {rank}, {rank + 1}] "
            f"for a grid of {rank} axes",
            remedy="give a matrix with one more column than rows, for each image",
            earlier=[theta.declaration()],
        )
    work = theta.dtype if theta.dtype.bits >= 32 else F32

    def coordinate(i: Expr, extent: int) -> Expr:
        if extent == 1:
            return const(0, work)
        unit = extent - 1 if align_corners else extent
        return cast(work, 2 * i + (1 - extent)) / const(float(unit), work)

    def element(n: Expr, *index: Expr) -> Expr:
        row = index[-1]
        total = cast(work, theta[n, row, rank])
        # x is the last axis of the grid, and the first column of theta.
        for column, (i, extent) in enumerate(
            zip(index[-2::-1], size[::-1], strict=True)
        ):
            factor = cast(work, theta[n, row, column])
            total = factor * coordinate(i, extent) + total
        return cast(theta.dtype, total)

    shape: list[Extent] = [extents(theta)[0], *size, rank]
    return compute(shape, element, name="affine_grid", tag=INJECTIVE)


def _sample_affine_grid(draws: Draws) -> Sample:
    rank = draws.choice((2, 3))
    theta = draws.array((draws.extent(0), rank, rank + 1), draws.float_dtype())
    size = tuple(draws.integer(1, 4) for _ in range(rank))
    return Sample((theta,), {"size": size, "align_corners": draws.flag()})


@meaning_of(affine_grid, sample=_sample_affine_grid)
def affine_grid_numpy(
    theta: Array, *, size: Sequence[int], align_corners: bool = False
) -> Array:
    centres = []
    for extent in size:
        unit = extent - 1 if align_corners else extent
        steps = np.arange(1 - extent, extent, 2, dtype=np.longdouble)
        centres.append(steps / max(unit, 1))
    coordinates = np.meshgrid(*centres, indexing="ij")[::-1]
    points = np.stack([*coordinates, np.ones(tuple(size))], axis=-1)
    # No matrix product of a library, which might skip 0 times infinity.
    products = theta.astype(np.longdouble)[:, None] * points.reshape(
        1, -1, 1, len(size) + 1
    )
    shape = (len(theta), *size, len(size))
    return np.asarray(products.sum(axis=-1).reshape(shape), theta.dtype)
