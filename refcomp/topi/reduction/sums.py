"""Sums and products of elements along axes, and logarithms of sums.

Reference: ONNX ReduceSum, ReduceProd, ReduceSumSquare, ReduceLogSum and ReduceLogSumExp.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import (
    accumulator_of,
    as_numpy_axis,
    drop_axes,
    keep_index,
    normalize_axes,
    reduce_along,
    reduce_elements,
    reduced_shape,
    reduction_of_floats,
    reduction_of_numbers,
)
from refcomp.topi.shapes import Array, require_float, widen


def sum(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the sum of the elements along axes.

    It is 0 without elements. NaN propagates. Integers wrap. f16 and bf16 are accumulated in f32.

    Args:
        data: a tensor of floats or integers, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of numbers, or an axis does not exist or is named twice.

    Reference: TVM topi.sum; ONNX ReduceSum; numpy.sum.

    Example::

        >>> A = rc.placeholder((2, 3), "float32", name="A")
        >>> B = rc.topi.sum(A, axis=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 2, 3], [4, 5, 6]], "float32")}))
        [ 6. 15.]
    """
    return reduce_elements(
        data,
        reducer.sum,
        axis=axis,
        keepdims=keepdims,
        name="sum",
    )


@meaning_of(sum, pattern="reduction", sample=reduction_of_numbers)
def sum_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    wide = widen(data)
    total = np.sum(wide, axis=as_numpy_axis(axis), keepdims=keepdims, dtype=wide.dtype)
    return np.asarray(total, data.dtype)


def prod(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the product of the elements along axes.

    It is 1 without elements. NaN propagates. Integers wrap. f16 and bf16 are accumulated in f32.

    Args:
        data: a tensor of floats or integers, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of numbers, or an axis does not exist or is named twice.

    Reference: TVM topi.prod; ONNX ReduceProd; numpy.prod.

    Example::

        >>> A = rc.placeholder((2, 3), "float32", name="A")
        >>> B = rc.topi.prod(A, axis=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 2, 3], [4, 5, 6]], "float32")}))
        [  6. 120.]
    """
    return reduce_elements(
        data,
        reducer.prod,
        axis=axis,
        keepdims=keepdims,
        name="prod",
    )


@meaning_of(prod, pattern="reduction", sample=reduction_of_numbers)
def prod_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    wide = widen(data)
    result = np.prod(
        wide, axis=as_numpy_axis(axis), keepdims=keepdims, dtype=wide.dtype
    )
    return np.asarray(result, data.dtype)


def sum_square(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the sum of the squares of the elements along axes.

    It is 0 without elements. NaN propagates. Integers wrap. f16 and bf16 are accumulated in f32.

    Args:
        data: a tensor of floats or integers, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of numbers, or an axis does not exist or is named twice.

    Reference: ONNX ReduceSumSquare.

    Example::

        >>> A = rc.placeholder((2, 3), "float32", name="A")
        >>> B = rc.topi.sum_square(A, axis=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 2, 3], [4, 5, 6]], "float32")}))
        [14. 77.]
    """
    return reduce_elements(
        data,
        reducer.sum,
        axis=axis,
        keepdims=keepdims,
        name="sum_square",
        before=lambda x: x * x,
    )


@meaning_of(sum_square, pattern="reduction", sample=reduction_of_numbers)
def sum_square_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    wide = widen(data)
    squares = np.square(wide)
    total = np.sum(
        squares, axis=as_numpy_axis(axis), keepdims=keepdims, dtype=wide.dtype
    )
    return np.asarray(total, data.dtype)


def log_sum(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the natural logarithm of the sum of the elements along axes.

    It is minus infinity without elements, and NaN if the sum is negative or a NaN occurs. f16 and
    bf16 are accumulated in f32.

    Args:
        data: a tensor of floats, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of floats, or an axis does not exist or is named twice.

    Reference: ONNX ReduceLogSum.

    Example::

        >>> A = rc.placeholder((2, 3), "float32", name="A")
        >>> B = rc.topi.log_sum(A, axis=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[0, 0, 1], [2, 3, -6]], "float32")}))
        [ 0. nan]
    """
    require_float(data, "log_sum")
    return reduce_elements(
        data,
        reducer.sum,
        axis=axis,
        keepdims=keepdims,
        name="log_sum",
        after=maths.log,
    )


@meaning_of(log_sum, pattern="reduction", sample=reduction_of_floats)
def log_sum_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    total = np.sum(widen(data), axis=as_numpy_axis(axis), keepdims=keepdims)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.log(total), data.dtype)


def logsumexp(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return log(sum of exp(x)) along axes, which cannot overflow.

    It is computed as `m + log(sum of exp(x - m))`, where m is the maximum. If m is infinite, 0
    replaces it: one infinity gives infinity. Without elements, or if all are minus infinity, the
    result is minus infinity. NaN propagates.

    Args:
        data: a tensor of floats, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of floats, or an axis does not exist or is named twice.

    Reference: P. Blanchard, D. J. Higham and N. J. Higham, "Accurately computing the log-sum-exp
    and softmax functions", IMA Journal of Numerical Analysis 41, 2021; ONNX ReduceLogSumExp.

    Example::

        >>> A = rc.placeholder((2, 3), "float32", name="A")
        >>> B = rc.topi.logsumexp(A, axis=1)
        >>> a = np.array([[0, 0, -np.inf], [1000, 0, 0]], "float32")
        >>> print(*rc.oracle.evaluate([B], {A: a}))
        [6.931472e-01 1.000000e+03]
    """
    require_float(data, "logsumexp")
    places = normalize_axes(axis, data.ndim, "logsumexp")
    wide = accumulator_of(data.dtype)
    greatest = reduce_along(
        data,
        places,
        lambda *index: cast(wide, data[index]),
        reducer.max,
        name="greatest",
        keepdims=True,
    )

    def shift(index: Sequence[Expr]) -> Expr:
        most = greatest[keep_index(index, places)]
        return maths.select(maths.isfinite(most), most, const(0.0, wide))

    total = reduce_along(
        data,
        places,
        lambda *index: maths.exp(cast(wide, data[index]) - shift(index)),
        reducer.sum,
        name="total",
        keepdims=True,
    )
    whole = compute(
        reduced_shape(extents(data), places, keepdims=True),
        lambda *index: cast(data.dtype, maths.log(total[index]) + shift(index)),
        name="logsumexp",
        tag=INJECTIVE,
    )
    return whole if keepdims else drop_axes(whole, places, "logsumexp")


@meaning_of(logsumexp, sample=reduction_of_floats)
def logsumexp_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    # Long doubles, since the pairwise function rounds at each element.
    wide = data.astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        result = np.logaddexp.reduce(wide, axis=as_numpy_axis(axis), keepdims=True)
    if not keepdims:
        result = np.squeeze(result, as_numpy_axis(axis))
    return np.asarray(result, data.dtype)
