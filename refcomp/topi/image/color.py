"""Colours of pixels, converted by one matrix: RGB, grey and YUV.

Reference: ITU-R BT.601; tf.image.rgb_to_grayscale, rgb_to_yuv and yuv_to_rgb.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths
from refcomp.te.extents import extents, is_same
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, normalize_axis, replace_entry, require_float

_Matrix = Sequence[Sequence[float]]
_GREY = ((0.2989, 0.587, 0.114),)
_YUV = (
    (0.299, 0.587, 0.114),
    (-0.14714119, -0.28886916, 0.43601035),
    (0.61497538, -0.51496512, -0.10001026),
)
_RGB = (
    (1.0, 0.0, 1.13988303),
    (1.0, -0.394642334, -0.58062185),
    (1.0, 2.03206185, 0.0),
)


def rgb_to_grayscale(data: Tensor, *, axis: int = -1) -> Tensor:
    """Return the luma of each pixel: 0.2989 R + 0.587 G + 0.114 B.

    NaN and infinity propagate. The weights are rounded to the dtype that is computed in.

    Args:
        data: floats of any shape with at least one dimension. The extent of `axis` is 3: red, green
            and blue.
        axis: the axis of the colours; -1 is the last one.

    Returns:
        A tensor whose extent of `axis` is 1, of the dtype of `data`. f16 and bf16 are computed in
        f32.

    Raises:
        UserError: an argument is not as described.

    Reference: tf.image.rgb_to_grayscale.

    Example::

        >>> A = rc.placeholder((2, 3), name="A")
        >>> a = np.array([[1, 0, 0], [1, 1, 1]], "float32")
        >>> print(rc.oracle.evaluate([rc.topi.rgb_to_grayscale(A)], {A: a})[0].round(4))
        [[0.2989]
         [0.9999]]
    """
    return _convert("rgb_to_grayscale", data, _GREY, axis)


def rgb_to_yuv(data: Tensor, *, axis: int = -1) -> Tensor:
    """Return the luma Y and the chroma U and V of each pixel.

    Y is 0.299 R + 0.587 G + 0.114 B, U is -0.14714119 R - 0.28886916 G + 0.43601035 B, and V is
    0.61497538 R - 0.51496512 G - 0.10001026 B. NaN and infinity propagate. The weights are rounded
    to the dtype that is computed in.

    Args:
        data: floats of any shape with at least one dimension. The extent of `axis` is 3: red, green
            and blue.
        axis: the axis of the colours; -1 is the last one.

    Returns:
        A tensor of the shape and dtype of `data`. f16 and bf16 are computed in f32.

    Raises:
        UserError: an argument is not as described.

    Reference: tf.image.rgb_to_yuv.

    Example::

        >>> A = rc.placeholder((1, 3), name="A")
        >>> a = np.array([[1, 0, 0]], "float32")
        >>> print(rc.oracle.evaluate([rc.topi.rgb_to_yuv(A)], {A: a})[0].round(4))
        [[ 0.299  -0.1471  0.615 ]]
    """
    return _convert("rgb_to_yuv", data, _YUV, axis)


def yuv_to_rgb(data: Tensor, *, axis: int = -1) -> Tensor:
    """Return the red, green and blue of each pixel, which is given by luma and chroma.

    R is Y + 1.13988303 V, G is Y - 0.394642334 U - 0.58062185 V, and B is Y + 2.03206185 U. NaN and
    infinity propagate, except through a weight of 0. The weights are rounded to the dtype that is
    computed in.

    Args:
        data: floats of any shape with at least one dimension. The extent of `axis` is 3: Y, U and
            V.
        axis: the axis of the colours; -1 is the last one.

    Returns:
        A tensor of the shape and dtype of `data`. f16 and bf16 are computed in f32.

    Raises:
        UserError: an argument is not as described.

    Reference: tf.image.yuv_to_rgb.

    Example::

        >>> A = rc.placeholder((1, 3), name="A")
        >>> a = np.array([[0.5, 0, 0]], "float32")
        >>> print(*rc.oracle.evaluate([rc.topi.yuv_to_rgb(A)], {A: a}))
        [[0.5 0.5 0.5]]
    """
    return _convert("yuv_to_rgb", data, _RGB, axis)


def _convert(operator: str, data: Tensor, matrix: _Matrix, axis: int) -> Tensor:
    """Return the product of a matrix and the colours of each pixel."""
    require_float(data, operator)
    place = normalize_axis(axis, data.ndim, operator)
    if not is_same(extents(data)[place], 3):
        raise UserError(
            f"{operator} takes three colours along axis {axis}",
            remedy="give a tensor whose extent of that axis is 3",
            earlier=[data.declaration()],
        )
    work = data.dtype if data.dtype.bits >= 32 else F32

    def colour(index: tuple[Expr, ...], weights: Sequence[float]) -> Expr:
        total: Expr | None = None
        for k, weight in enumerate(weights):
            if weight == 0:
                continue
            element = cast(work, data[replace_entry(index, place, const(k, "int64"))])
            term = element * const(weight, work)
            total = term if total is None else total + term
        assert total is not None
        return cast(data.dtype, total)

    def element(*index: Expr) -> Expr:
        result = colour(index, matrix[-1])
        for k, weights in enumerate(matrix[:-1]):
            is_here = index[place].equal(k)
            result = maths.select(is_here, colour(index, weights), result)
        return result

    shape = replace_entry(extents(data), place, len(matrix))
    return compute(shape, element, name=operator, tag=INJECTIVE)


def _sample_colours(draws: Draws) -> Sample:
    shape = draws.shape(0, 3)
    axis = draws.integer(0, len(shape))
    shape = (*shape[:axis], 3, *shape[axis:])
    data = draws.array(shape, draws.float_dtype())
    return Sample((data,), {"axis": draws.choice((axis, axis - len(shape)))})


def _convert_numpy(data: Array, matrix: _Matrix, axis: int) -> Array:
    work = np.float64 if data.dtype == np.float64 else np.float32
    weights = np.asarray(matrix, work).astype(np.longdouble)
    colours = np.moveaxis(data.astype(np.longdouble), axis, 0)
    rows = []
    for row in weights:
        used = [
            colour * weight
            for colour, weight in zip(colours, row, strict=True)
            if weight
        ]
        rows.append(np.sum(used, axis=0))
    return np.moveaxis(np.stack(rows), 0, axis).astype(data.dtype)


@meaning_of(rgb_to_grayscale, sample=_sample_colours)
def rgb_to_grayscale_numpy(data: Array, *, axis: int = -1) -> Array:
    return _convert_numpy(data, _GREY, axis)


@meaning_of(rgb_to_yuv, sample=_sample_colours)
def rgb_to_yuv_numpy(data: Array, *, axis: int = -1) -> Array:
    return _convert_numpy(data, _YUV, axis)


@meaning_of(yuv_to_rgb, sample=_sample_colours)
def yuv_to_rgb_numpy(data: Array, *, axis: int = -1) -> Array:
    return _convert_numpy(data, _RGB, axis)
