"""Scales and zero points of quantized tensors: for a whole tensor, per axis, or per block.

An integer q with a scale s and a zero point z stands for the number s * (q - z).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import extents, is_same, require_extent, require_tensor
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    replace_entry,
    require_constant,
    require_float,
    require_one_dtype,
)

_MAX_BITS = 32  # of a quantized integer


@dataclass(frozen=True, slots=True)
class ScaleLayout:
    """The elements of a tensor that share a scale.

    Attributes:
        rank: 0 if all elements share one; 1 for one of each index along `axis`; the rank of the
            tensor for one of each block.
        axis: the axis, counted from 0.
        block: the number of elements of a block along `axis`; 1 without blocks.
        is_single: True if the scale has one element, and so concerns all.
    """

    rank: int
    axis: int
    block: int
    is_single: bool

    def read(self, parameter: Tensor, index: tuple[Expr, ...]) -> Expr:
        """Return the scale, or the zero point, of the element at `index`."""
        if self.is_single:
            return parameter[(0,) * parameter.ndim]
        if self.block == 1 and self.rank == 1:
            return parameter[index[self.axis]]
        position = maths.floordiv(index[self.axis], self.block)
        return parameter[replace_entry(index, self.axis, position)]


def layout_of(
    data: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    *,
    axis: int,
    block_size: int,
    operator: str,
) -> ScaleLayout:
    """Return the way in which elements of `data` share scales, or raise UserError.

    Args:
        data: the tensor, of floats or integers.
        scale: floats; a scalar or [1], [extent of the axis], or with blocks a tensor of the rank of
            `data`.
        zero_point: integers of the shape of `scale`; None for 0.
        axis: the axis of a scale per axis or per block.
        block_size: the number of elements that share a scale along the axis; 0 without blocks.
        operator: the name for messages.
    """
    require_tensor(data, operator)
    require_float(scale, operator)
    if zero_point is not None:
        require_tensor(zero_point, operator)
        if zero_point.ndim != scale.ndim:
            raise UserError(
                f"{operator}: the scale has {scale.ndim} dimensions, "
                f"the zero point {zero_point.ndim}",
                remedy="give both of one shape",
                earlier=[scale.declaration(), zero_point.declaration()],
            )
        for actual, expected in zip(extents(zero_point), extents(scale), strict=True):
            what = "an extent of the zero point"
            require_extent(actual, expected, operator, what, tensors=(scale,))
    if block_size < 0:
        raise UserError(
            f"{operator} cannot have blocks of {block_size} elements",
            remedy="use a size >= 1, or 0 for a scale without blocks",
        )
    if block_size:
        return _blocked(data, scale, axis, block_size, operator)
    if scale.ndim == 0 or (scale.ndim == 1 and is_same(extents(scale)[0], 1)):
        return ScaleLayout(scale.ndim, 0, block=1, is_single=True)
    if scale.ndim > 1:
        raise UserError(
            f"{operator}: the scale has {scale.ndim} dimensions",
            remedy="give a scalar or a vector; or set block_size for a scale per block",
            earlier=[scale.declaration()],
        )
    place = normalize_axis(axis, data.ndim, operator)
    size = extents(data)[place]
    require_extent(
        extents(scale)[0], size, operator, "the extent of the scale", tensors=(data,)
    )
    return ScaleLayout(1, place, block=1, is_single=False)


def _blocked(
    data: Tensor, scale: Tensor, axis: int, block_size: int, operator: str
) -> ScaleLayout:
    place = normalize_axis(axis, data.ndim, operator)
    if scale.ndim != data.ndim:
        raise UserError(
            f"{operator}: the scale has {scale.ndim} dimensions instead of {data.ndim}",
            why="each block has a scale of its own",
            remedy="give a scale of the rank of the data",
            earlier=[scale.declaration(), data.declaration()],
        )
    sizes = extents(data)
    size = require_constant(sizes[place], f"{operator}: extent {place}")
    wanted = replace_entry(sizes, place, -(-size // block_size))
    for actual, expected in zip(extents(scale), wanted, strict=True):
        what = "an extent of the scale"
        require_extent(actual, expected, operator, what, tensors=(data, scale))
    return ScaleLayout(data.ndim, place, block=block_size, is_single=False)


def require_quantized(data: Tensor, operator: str) -> None:
    """Raise UserError unless `data` is a tensor of integers of at most 32 bits."""
    require_tensor(data, operator)
    if not data.dtype.is_int or data.dtype.bits > _MAX_BITS:
        raise UserError(
            f"{operator} takes integers of at most {_MAX_BITS} bits, not {data.dtype}",
            remedy="quantize floats by rc.topi.quantize",
            earlier=[data.declaration()],
        )


def result_dtype(dtype: DType, zero_point: Tensor | None, operator: str) -> DType:
    """Return the dtype of quantized integers, or raise UserError if it cannot be."""
    if not dtype.is_int or dtype.bits > _MAX_BITS or dtype.lanes > 1:
        raise UserError(
            f"{operator} cannot return {dtype}",
            remedy=f"use an integer dtype of at most {_MAX_BITS} bits",
        )
    if zero_point is not None and zero_point.dtype != dtype:
        raise UserError(
            f"{operator} cannot return {dtype} with a zero point of {zero_point.dtype}",
            remedy="give a zero point of the dtype of the result",
            earlier=[zero_point.declaration()],
        )
    return dtype


def require_same_integers(
    data: Tensor, zero_point: Tensor | None, operator: str
) -> None:
    """Raise UserError unless both are quantized integers of one dtype."""
    require_quantized(data, operator)
    require_one_dtype(operator, data, zero_point)


@dataclass(frozen=True, slots=True)
class DrawnScale:
    """Random parameters of a quantized tensor.

    Attributes:
        scale: positive floats.
        zero_point: integers of the shape of `scale`, or None.
        axis: the axis of both.
        block_size: the number of elements of a block; 0 without blocks.
    """

    scale: Array
    zero_point: Array | None
    axis: int
    block_size: int


def sample_scale(
    draws: Draws, shape: tuple[int, ...], dtype: str, integers: str
) -> DrawnScale:
    """Return a scale of `dtype`, and perhaps a zero point of integers, for a tensor."""
    axis = draws.axis(len(shape)) if shape else 0
    block_size = 0
    kind = draws.choice(("single", "axis", "block")) if shape else "single"
    sizes: tuple[int, ...] = draws.choice(((), (1,)))
    if kind == "axis":
        sizes = (shape[axis],)
    elif kind == "block":
        block_size = draws.integer(1, 3)
        blocks = -(-shape[axis] // block_size)
        sizes = replace_entry(shape, axis % len(shape), blocks)
    # Of a few digits, often: then many quotients are ties.
    scale = draws.choice(
        (
            draws.uniform(sizes, 0.01, 2, dtype),
            (2.0 ** draws.integers(sizes, -4, 2)).astype(dtype),
        )
    )
    zero_point = draws.array(sizes, integers) if draws.flag() else None
    return DrawnScale(scale, zero_point, axis, block_size)


def spread_numpy(
    parameter: Array, shape: tuple[int, ...], axis: int, block_size: int
) -> Array:
    """Return the parameter of each element of an array of `shape`, or what broadcasts to it."""
    if block_size:
        whole = np.repeat(parameter, block_size, axis=axis)
        return np.asarray(np.take(whole, range(shape[axis]), axis=axis))
    if parameter.size == 1:
        return parameter.reshape(())
    sizes = [1] * len(shape)
    sizes[axis] = parameter.size
    return parameter.reshape(sizes)
