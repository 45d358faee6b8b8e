"""Padding of spatial axes with a constant, for convolutions and pooling.

Reference: ONNX Pad with mode = "constant".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import Extent, extents
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor
from refcomp.topi.shapes import Array
from refcomp.topi.tags import PAD

# Elements added at the (top, left, bottom, right), in the order of ONNX.
Padding = Sequence[int]


def check_padding(padding: Padding, operator: str) -> tuple[int, int, int, int]:
    """Return the padding as four ints. Raise UserError unless it is four numbers >= 0."""
    if len(padding) != 4 or any(p < 0 for p in padding):
        raise UserError(
            f"{operator} cannot use the padding {tuple(padding)}",
            remedy="give four numbers >= 0: top, left, bottom, right",
        )
    top, left, bottom, right = padding
    return top, left, bottom, right


def check_borders(
    padding: Padding, rank: int, operator: str
) -> tuple[tuple[int, int], ...]:
    """Return the elements before and after each of `rank` spatial axes.

    Args:
        padding: the elements before each axis, then those after each axis, as in ONNX.
        rank: the number of spatial axes.
        operator: the name in messages.

    Raises:
        UserError: these are not 2 * rank numbers >= 0.
    """
    if len(padding) != 2 * rank or any(count < 0 for count in padding):
        raise UserError(
            f"{operator} cannot use the padding {tuple(padding)}",
            remedy=f"give {2 * rank} numbers >= 0: before each axis, then after each axis",
        )
    return tuple(zip(padding[:rank], padding[rank:], strict=True))


def pad_spatial(data: Tensor, padding: Padding, value: Expr, first_axis: int) -> Tensor:
    """Return `data` with `value` around its axes y and x, or `data` itself if nothing is added.

    Args:
        data: a tensor of any dtype, with at least `first_axis` + 2 dimensions.
        padding: elements to add: (top, left, bottom, right), each >= 0.
        value: the value of the added elements, of the dtype of `data`.
        first_axis: the axis y; `first_axis` + 1 is the axis x.
    """
    top, left, bottom, right = padding
    borders = {first_axis: (top, bottom), first_axis + 1: (left, right)}
    return pad_axes(data, borders, value)


def pad_axes(
    data: Tensor, borders: Mapping[int, tuple[int, int]], value: Expr
) -> Tensor:
    """Return `data` with `value` around some axes, or `data` itself if nothing is added.

    Args:
        data: a tensor of any dtype.
        borders: an axis -> the numbers of elements to add before and after it, each >= 0.
        value: the value of the added elements, of the dtype of `data`.
    """
    if not any(any(border) for border in borders.values()):
        return data
    shape: list[Extent] = list(extents(data))
    for axis, (low, high) in borders.items():
        shape[axis] = shape[axis] + (low + high)

    def element(*index: Expr) -> Expr:
        source = list(index)
        inside = []
        for axis, (low, high) in borders.items():
            source[axis] = index[axis] - low if low else index[axis]
            # Without a border on one side, no index lies beyond that side.
            if low:
                inside.append(index[axis] >= low)
            if high:
                inside.append(index[axis] < data.shape[axis] + low)
        # `if_then_else`, not `select`: elements outside must not be read.
        return maths.if_then_else(maths.all(*inside), data[tuple(source)], value)

    return compute(shape, element, name="pad", tag=PAD)


def pad_numpy(data: Array, padding: Padding, value: float, first_axis: int) -> Array:
    top, left, bottom, right = padding
    widths = [(0, 0)] * data.ndim
    widths[first_axis] = (top, bottom)
    widths[first_axis + 1] = (left, right)
    return np.pad(data, widths, constant_values=data.dtype.type(value))
