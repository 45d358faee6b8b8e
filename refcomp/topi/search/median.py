"""The middle of sorted elements: median."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.search.sort import sort
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    require_constant,
    require_float,
    widen,
)


def median(data: Tensor, *, axis: int = -1) -> Tensor:
    """Return the middle element along an axis, or the mean of both middle elements.

    If an element is NaN, so is the median. The mean rounds, and may overflow. The cost is that of
    `sort`.

    Args:
        data: floats of any shape with at least one dimension.
        axis: the axis to search along; -1 is the last one. Its extent is constant and at least 1.

    Returns:
        A tensor of the dtype of `data`, without the axis.

    Raises:
        UserError: `data` does not hold floats, or the axis does not exist or has no elements.

    Reference: numpy.median.

    Example::

        >>> A = rc.placeholder((2, 4), name="A")
        >>> a = np.array([[4, 1, 3, 9], [1, 2, np.nan, 0]], "float32")
        >>> print(*rc.oracle.evaluate([rc.topi.median(A)], {A: a}))
        [3.5 nan]
    """
    require_float(data, "median")
    place = normalize_axis(axis, data.ndim, "median")
    size = require_constant(extents(data)[place], "median: the extent of the axis")
    if not size:
        raise UserError(
            "median cannot find the middle of no elements",
            remedy="give an axis of one or more elements",
            earlier=[data.declaration()],
        )
    ordered = sort(data, axis=place)
    half = const(0.5, data.dtype)

    def element(*index: Expr) -> Expr:
        def number(k: int) -> Expr:
            return ordered[(*index[:place], as_dim(k), *index[place:])]

        middle = number(size // 2)
        if size % 2 == 0:
            middle = (number(size // 2 - 1) + middle) * half
        last = number(size - 1)  # a NaN comes last
        return maths.select(maths.isnan(last), last, middle)

    shape = (*data.shape[:place], *data.shape[place + 1 :])
    return compute(shape, element, name="median", tag=INJECTIVE)


def _sample_median(draws: Draws) -> Sample:
    shape = draws.shape(1, 4)
    axis = draws.axis(len(shape))
    wanted = list(shape)
    wanted[axis] = max(1, wanted[axis])
    return Sample((draws.array(wanted, draws.float_dtype()),), {"axis": axis})


@meaning_of(median, sample=_sample_median)
def median_numpy(data: Array, *, axis: int = -1) -> Array:
    wide = widen(data)
    if not wide.size:
        return np.zeros(np.delete(data.shape, axis), data.dtype)
    return np.asarray(np.median(wide, axis=axis), data.dtype)
