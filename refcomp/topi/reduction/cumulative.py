"""Cumulative sums and products along an axis. Reference: ONNX CumSum and CumProd."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast
from refcomp.te import reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import accumulator_of, finish
from refcomp.topi.shapes import (
    Array,
    extents,
    normalize_axis,
    replace_entry,
    require_number,
    widen,
)
from refcomp.topi.tags import REDUCTION


def _accumulate(
    data: Tensor,
    combine: Callable[..., Expr],
    axis: int,
    exclusive: bool,
    reverse: bool,
    name: str,
) -> Tensor:
    """Return `combine` of the elements that come before each one along the axis."""
    require_number(data, name)
    place = normalize_axis(axis, data.ndim, name)
    wide = accumulator_of(data.dtype)
    is_whole = wide == data.dtype
    k = reduce_axis(extents(data)[place], "k")

    def element(*index: Expr) -> Expr:
        near, far = index[place], k.var
        if reverse:
            near, far = far, near
        counts = far < near if exclusive else far <= near
        value = cast(wide, data[replace_entry(index, place, k.var)])
        return combine(value, axis=k, where=counts)

    reduced = compute(
        extents(data),
        element,
        name=name if is_whole else f"{name}_reduced",
        tag=REDUCTION,
    )
    return reduced if is_whole else finish(reduced, None, data.dtype, name)


def _numpy_accumulate(
    accumulate: Callable[..., Array],
    data: Array,
    axis: int,
    exclusive: bool,
    reverse: bool,
    neutral: int,
) -> Array:
    wide = np.moveaxis(widen(data), axis, 0)
    if reverse:
        wide = np.flip(wide, 0)
    if exclusive and len(wide):
        first = np.full_like(wide[:1], neutral)
        wide = np.concatenate([first, wide[:-1]])
    result = accumulate(wide, axis=0, dtype=wide.dtype)
    if reverse:
        result = np.flip(result, 0)
    return np.asarray(np.moveaxis(result, 0, axis), data.dtype)


def _sample_cumulative(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.number_dtype())
    attributes = {
        "axis": draws.axis(data.ndim),
        "exclusive": draws.flag(),
        "reverse": draws.flag(),
    }
    return Sample((data,), attributes)


def cumsum(
    data: Tensor,
    *,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Return the sums of all elements up to each one along an axis.

    The sum of no elements is 0. NaN propagates to all later results. Integers wrap. f16 and bf16
    are accumulated in f32.

    Each result is a reduction of its own, so that all are computed in parallel: n results cost n *
    n steps.

    Args:
        data: a tensor of floats or integers, with one axis or more.
        axis: the axis to accumulate along; a negative one counts from the last.
        exclusive: True to leave each element out of its own result.
        reverse: True to begin with the last element.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of numbers, or the axis does not exist.

    Reference: TVM relay.cumsum; ONNX CumSum; numpy.cumsum.

    Example::

        >>> A = rc.placeholder((4,), "int32", name="A")
        >>> B = rc.topi.cumsum(A, axis=0)
        >>> C = rc.topi.cumsum(A, axis=0, exclusive=True, reverse=True)
        >>> print(*rc.oracle.evaluate([B, C], {A: np.array([1, 2, 3, 4], "int32")}))
        [ 1  3  6 10] [9 7 4 0]
    """
    return _accumulate(data, reducer.sum, axis, exclusive, reverse, "cumsum")


@meaning_of(cumsum, sample=_sample_cumulative)
def cumsum_numpy(
    data: Array,
    *,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
) -> Array:
    return _numpy_accumulate(np.cumsum, data, axis, exclusive, reverse, 0)


def cumprod(
    data: Tensor,
    *,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Return the products of all elements up to each one along an axis.

    The product of no elements is 1. NaN propagates to all later results. Integers wrap. f16 and
    bf16 are accumulated in f32.

    Each result is a reduction of its own, so that all are computed in parallel: n results cost n *
    n steps.

    Args:
        data: a tensor of floats or integers, with one axis or more.
        axis: the axis to accumulate along; a negative one counts from the last.
        exclusive: True to leave each element out of its own result.
        reverse: True to begin with the last element.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of numbers, or the axis does not exist.

    Reference: TVM relay.cumprod; ONNX CumProd; numpy.cumprod.

    Example::

        >>> A = rc.placeholder((4,), "int32", name="A")
        >>> B = rc.topi.cumprod(A, axis=0)
        >>> C = rc.topi.cumprod(A, axis=0, exclusive=True, reverse=True)
        >>> print(*rc.oracle.evaluate([B, C], {A: np.array([1, 2, 3, 4], "int32")}))
        [ 1  2  6 24] [24 12  4  1]
    """
    return _accumulate(data, reducer.prod, axis, exclusive, reverse, "cumprod")


@meaning_of(cumprod, sample=_sample_cumulative)
def cumprod_numpy(
    data: Array,
    *,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
) -> Array:
    return _numpy_accumulate(np.cumprod, data, axis, exclusive, reverse, 1)
