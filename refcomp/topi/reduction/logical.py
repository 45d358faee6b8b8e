"""Conjunction and disjunction of bools along axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import (
    Axes,
    Combine,
    as_numpy_axis,
    draw_reduction,
    normalize_axes,
    reduce_along,
)
from refcomp.topi.shapes import Array, require_bool

_all_of = reducer.comm_reducer(maths.all, lambda dtype: const(True, dtype), name="all")
_any_of = reducer.comm_reducer(maths.any, lambda dtype: const(False, dtype), name="any")


def _reduce_bools(
    data: Tensor, combine: Combine, *, axis: Axes, keepdims: bool, name: str
) -> Tensor:
    require_bool(data, name)
    return reduce_along(
        data,
        normalize_axes(axis, data.ndim, name),
        lambda *index: data[index],
        combine,
        name=name,
        keepdims=keepdims,
    )


def _sample_bools(draws: Draws) -> Sample:
    return draw_reduction(draws, "bool")


def all(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return True where every element along the axes holds.

    Without elements, the result is True.

    Args:
        data: a tensor of bool, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of bool.

    Raises:
        UserError: `data` is not a tensor of bool, or an axis does not exist or is named twice.

    Reference: TVM topi.all; numpy.all.

    Example::

        >>> A = rc.placeholder((2, 2), "bool", name="A")
        >>> B = rc.topi.all(A, axis=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[True, False], [True, True]])}))
        [False  True]
    """
    return _reduce_bools(data, _all_of, axis=axis, keepdims=keepdims, name="all")


@meaning_of(all, pattern="reduction", sample=_sample_bools)
def all_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    return np.asarray(np.all(data, axis=as_numpy_axis(axis), keepdims=keepdims))


def any(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return True where at least one element along the axes holds.

    Without elements, the result is False.

    Args:
        data: a tensor of bool, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of bool.

    Raises:
        UserError: `data` is not a tensor of bool, or an axis does not exist or is named twice.

    Reference: TVM topi.any; numpy.any.

    Example::

        >>> A = rc.placeholder((2, 2), "bool", name="A")
        >>> B = rc.topi.any(A, axis=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[True, False], [True, True]])}))
        [ True  True]
    """
    return _reduce_bools(data, _any_of, axis=axis, keepdims=keepdims, name="any")


@meaning_of(any, pattern="reduction", sample=_sample_bools)
def any_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    return np.asarray(np.any(data, axis=as_numpy_axis(axis), keepdims=keepdims))
