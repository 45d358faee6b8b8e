"""A border around the spatial axes, and what its numpy meaning is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor
from refcomp.topi.shapes import Array, Extent, extents
from refcomp.topi.tags import PAD

# How much is added (top, left, bottom, right), as ONNX orders it.
Padding = Sequence[int]


def check_padding(padding: Padding, operator: str) -> tuple[int, int, int, int]:
    """The padding as four ints; UserError for another number of them or a negative one."""
    if len(padding) != 4 or any(p < 0 for p in padding):
        raise UserError(
            f"{operator}: padding {tuple(padding)}",
            remedy="give four numbers >= 0: top, left, bottom, right",
        )
    top, left, bottom, right = padding
    return top, left, bottom, right


def pad_spatial(data: Tensor, padding: Padding, value: Expr, first_axis: int) -> Tensor:
    """`data` with `value` around its axes `first_axis` (y) and `first_axis + 1` (x).

    `data` itself when there is nothing to add.
    """
    if not any(padding):
        return data
    before, after = padding[:2], padding[2:]
    places = (first_axis, first_axis + 1)
    shape: list[Extent] = list(extents(data))
    for place, low, high in zip(places, before, after, strict=True):
        shape[place] = shape[place] + (low + high)

    def element(*index: Expr) -> Expr:
        source = list(index)
        inside = []
        for place, low, high in zip(places, before, after, strict=True):
            source[place] = index[place] - low if low else index[place]
            if low:
                inside.append(index[place] >= low)
            if high:
                inside.append(index[place] < data.shape[place] + low)
        return maths.if_then_else(maths.all(*inside), data[tuple(source)], value)

    result: Tensor = compute(shape, element, name="pad", tag=PAD)
    return result


def pad_numpy(data: Array, padding: Padding, value: float, first_axis: int) -> Array:
    top, left, bottom, right = padding
    widths = [(0, 0)] * data.ndim
    widths[first_axis], widths[first_axis + 1] = (top, bottom), (left, right)
    return np.pad(data, widths, constant_values=data.dtype.type(value))
