"""Mean, variance and standard deviation of elements along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import (
    Axes,
    accumulator_of,
    as_numpy_axis,
    count_of,
    finish,
    keep_index,
    normalize_axes,
    reduce_along,
    reduce_elements,
    reduction_of_floats,
)
from refcomp.topi.shapes import Array, require_float, widen


def mean(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the arithmetic mean of the elements along axes.

    It is NaN without elements. NaN propagates. f16 and bf16 are accumulated in f32.

    Args:
        data: a tensor of floats, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of floats, or an axis does not exist or is named twice.

    Reference: ONNX ReduceMean, of floats; numpy.mean.

    Example::

        >>> A = rc.placeholder((2, 4), name="A")
        >>> B = rc.topi.mean(A, axis=1)
        >>> a = np.array([[1, 1, 3, 3], [0, 0, 8, 0]], "float32")
        >>> print(*rc.oracle.evaluate([B], {A: a}))
        [2. 2.]
    """
    require_float(data, "mean")
    wide = accumulator_of(data.dtype)
    count = cast(wide, count_of(data, normalize_axes(axis, data.ndim, "mean")))
    return reduce_elements(
        data,
        reducer.sum,
        axis=axis,
        keepdims=keepdims,
        name="mean",
        after=lambda total: total / count,
    )


@meaning_of(mean, pattern="reduction", sample=reduction_of_floats)
def mean_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    with np.errstate(all="ignore"):
        total = np.sum(widen(data), axis=as_numpy_axis(axis), keepdims=keepdims)
        count = _count(data, axis)
        return np.asarray(np.divide(total, count), data.dtype)


def _count(data: Array, axis: Axes) -> int:
    """Return the number of elements that are reduced to one."""
    places = normalize_axes(axis, data.ndim, "count")
    return math.prod(data.shape[place] for place in places)


def _same(x: Expr) -> Expr:
    return x


def _root(x: Expr) -> Expr:
    """Return the square root, whose slope at 0 is finite here."""
    is_positive = x > const(0.0, x.dtype)
    # The root of 1 in place of that of 0, whose slope is infinite: times 0, it would be NaN.
    safe = maths.select(is_positive, x, const(1.0, x.dtype))
    return maths.select(is_positive, maths.sqrt(safe), x)


def _spread(
    data: Tensor,
    axis: Axes,
    keepdims: bool,
    *,
    correction: int,
    name: str,
    after: Callable[[Expr], Expr],
) -> Tensor:
    """Return after(variance) along the axes."""
    require_float(data, name)
    places = normalize_axes(axis, data.ndim, name)
    wide = accumulator_of(data.dtype)
    count = as_dim(count_of(data, places))
    total = reduce_along(
        data,
        places,
        lambda *index: cast(wide, data[index]),
        reducer.sum,
        name="total",
        keepdims=True,
    )
    mean = finish(total, lambda x: x / cast(wide, count), wide, "mean")

    def squared(*index: Expr) -> Expr:
        difference = cast(wide, data[index]) - mean[keep_index(index, places)]
        return difference * difference

    squares = reduce_along(
        data, places, squared, reducer.sum, name="squares", keepdims=keepdims
    )
    divisor = maths.maximum(count - correction, 0)
    return finish(squares, lambda x: after(x / cast(wide, divisor)), data.dtype, name)


def _numpy_variance(data: Array, axis: Axes, keepdims: bool, correction: int) -> Array:
    wide = widen(data)
    where = as_numpy_axis(axis)
    count = _count(data, axis)
    mean = np.divide(np.sum(wide, axis=where, keepdims=True), count)
    squares = np.square(wide - mean)
    total = np.sum(squares, axis=where, keepdims=keepdims)
    return np.asarray(np.divide(total, max(count - correction, 0)))


def _sample_variance(draws: Draws) -> Sample:
    sample = reduction_of_floats(draws)
    attributes = {**sample.attributes, "correction": draws.integer(0, 2)}
    return Sample(sample.operands, attributes)


_sample_std = _sample_variance


def variance(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    correction: int = 0,
) -> Tensor:
    """Return the variance of the elements along axes.

    It is the sum of the squared differences from the mean, divided by the number of elements less
    `correction`. If this divisor is not positive, 0 replaces it: the result is NaN or infinite. A
    NaN or an infinity gives NaN. f16 and bf16 are accumulated in f32.

    Args:
        data: a tensor of floats, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.
        correction: what is subtracted from the number of elements: 0 for a whole population, 1 for
            an unbiased estimate from a sample.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of floats, or an axis does not exist or is named twice.

    Reference: T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample
    variance", The American Statistician 37, 1983 (the two-pass algorithm); numpy.var.

    Example::

        >>> A = rc.placeholder((2, 4), name="A")
        >>> B = rc.topi.variance(A, axis=1)
        >>> a = np.array([[1, 1, 3, 3], [0, 0, 8, 0]], "float32")
        >>> print(*rc.oracle.evaluate([B], {A: a}))
        [ 1. 12.]
    """
    return _spread(
        data, axis, keepdims, correction=correction, name="variance", after=_same
    )


@meaning_of(variance, sample=_sample_variance)
def variance_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    correction: int = 0,
) -> Array:
    with np.errstate(all="ignore"):
        return _numpy_variance(data, axis, keepdims, correction).astype(data.dtype)


def std(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    correction: int = 0,
) -> Tensor:
    """Return the standard deviation of the elements along axes.

    It is the square root of `variance`, computed in the same way. Its gradient is 0
    where all elements are equal.

    Args:
        data: a tensor of floats, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.
        correction: what is subtracted from the number of elements: 0 for a whole population, 1 for
            an unbiased estimate from a sample.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of floats, or an axis does not exist or is named twice.

    Reference: numpy.std.

    Example::

        >>> A = rc.placeholder((2, 4), name="A")
        >>> B = rc.topi.std(A, axis=1)
        >>> a = np.array([[1, 1, 3, 3], [0, 0, 8, 0]], "float32")
        >>> print(*rc.oracle.evaluate([B], {A: a}))
        [1.        3.4641016]
    """
    return _spread(data, axis, keepdims, correction=correction, name="std", after=_root)


@meaning_of(std, sample=_sample_std)
def std_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    correction: int = 0,
) -> Array:
    with np.errstate(all="ignore"):
        squared = _numpy_variance(data, axis, keepdims, correction)
        return np.asarray(np.sqrt(squared), data.dtype)
