"""Normalizations without parameters: by a norm along axes, or by mean and variance.

Reference: ONNX LpNormalization and MeanVarianceNormalization; TVM, topi.nn.l2_normalize.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.normalization.moments import (
    check_axes,
    drop_axes,
    mean_numpy,
    moments_along,
    reduce_along,
    rounded,
    sum_dtype,
    variance_numpy,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_float, widen
from refcomp.topi.tags import SHARED

# Added to a deviation by ONNX MeanVarianceNormalization.
_MVN_EPSILON = 1e-9


def _map_shared(
    data: Tensor, function: Callable[[Expr], Expr], name: str = "divisor"
) -> Tensor:
    """Return function(element) for each element, in memory of its own."""
    return compute(
        data.shape, lambda *index: function(data[index]), name=name, tag=SHARED
    )


def _root(value: Expr) -> Expr:
    """Return the square root, with the gradient 0 at 0, where the slope of the root is infinite."""
    is_zero = value == const(0, value.dtype)
    root = maths.sqrt(maths.select(is_zero, const(1, value.dtype), value))
    return maths.select(is_zero, const(0, value.dtype), root)


def _sum_squares(data: Tensor, axes: Sequence[int]) -> Tensor:
    wide = sum_dtype(data)

    def square(index: tuple[Expr, ...]) -> Expr:
        value = data[index].astype(wide)
        return value * value

    return reduce_along(data, axes, square, "squares")


def l2_normalize(
    data: Tensor, *, axis: Sequence[int], epsilon: float = 1e-12
) -> Tensor:
    """Return `data`, divided by its Euclidean norm along some axes.

        y = x / sqrt(maximum(sum of x * x, epsilon))

    Floats of 16 bits are added up in f32. A NaN makes all elements along the axes NaN. An
    infinity makes the others 0, and itself NaN.

    Args:
        data: floats of any shape with at least one dimension.
        axis: the axes of the norm, each once; -1 is the last one.
        epsilon: the least sum of squares; rounded to its dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, or an axis is missing, repeated, or does not exist.

    Reference: TVM, topi.nn.l2_normalize; TensorFlow, tf.math.l2_normalize.

    Example::

        >>> X = rc.placeholder((1, 2), name="X")
        >>> Y = rc.topi.l2_normalize(X, axis=(1,))
        >>> print(*rc.oracle.evaluate([Y], {X: np.array([[3, -4]], "float32")}))
        [[ 0.6 -0.8]]
    """
    require_float(data, "l2_normalize")
    axes = check_axes(axis, data.ndim, "l2_normalize")
    wide = sum_dtype(data)
    least = const(epsilon, wide)
    squares = _sum_squares(data, axes)
    norm = _map_shared(squares, lambda total: maths.sqrt(maths.maximum(total, least)))

    def element(*index: Expr) -> Expr:
        divided = data[index].astype(wide) / norm[drop_axes(index, axes)]
        return divided.astype(data.dtype)

    return compute(data.shape, element, name="l2_normalize", tag=INJECTIVE)


def _sample_axes(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.float_dtype())
    order = draws.order(data.ndim)
    chosen = order[: draws.integer(1, data.ndim)]
    axes = tuple(axis - draws.choice((0, data.ndim)) for axis in chosen)
    return Sample((data,), {"axis": axes})


def _sample_l2_normalize(draws: Draws) -> Sample:
    sample = _sample_axes(draws)
    attributes = {**sample.attributes, "epsilon": draws.choice((1e-12, 0.5))}
    return Sample(sample.operands, attributes)


@meaning_of(l2_normalize, sample=_sample_l2_normalize)
def l2_normalize_numpy(
    data: Array, *, axis: Sequence[int], epsilon: float = 1e-12
) -> Array:
    wide = widen(data)
    squares = np.square(wide).sum(axis=tuple(axis), keepdims=True)
    norm = np.sqrt(np.maximum(squares, rounded(epsilon, data)))
    return np.asarray(wide / norm, data.dtype)


def lp_normalize(data: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """Return `data`, divided by its norm of degree 1 or 2 along an axis.

        y = x / (sum of |x| ** p) ** (1 / p), and 0 where this norm is 0

    Floats of 16 bits are added up in f32. A NaN makes all elements along the axis NaN. An
    infinity makes the others 0, and itself NaN.

    Args:
        data: floats of any shape with at least one dimension.
        axis: the axis of the norm; -1 is the last one.
        p: the degree, 1 or 2.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, the axis does not exist, or p is another number.

    Reference: ONNX LpNormalization.

    Example::

        >>> X = rc.placeholder((2, 2), name="X")
        >>> Y = rc.topi.lp_normalize(X, p=1)
        >>> print(*rc.oracle.evaluate([Y], {X: np.array([[1, -3], [0, 0]], "float32")}))
        [[ 0.25 -0.75]
         [ 0.    0.  ]]
    """
    require_float(data, "lp_normalize")
    (place,) = check_axes((axis,), data.ndim, "lp_normalize")
    if p not in (1, 2):
        raise UserError(
            f"lp_normalize cannot take the norm of degree {p}", remedy="use 1 or 2"
        )
    axes = (place,)
    wide = sum_dtype(data)
    if p == 2:
        norm = _map_shared(_sum_squares(data, axes), maths.sqrt)
    else:
        norm = reduce_along(
            data, axes, lambda index: maths.fabs(data[index].astype(wide)), "norm"
        )

    def element(*index: Expr) -> Expr:
        divisor = norm[drop_axes(index, axes)]
        zero = const(0, wide)
        divided = data[index].astype(wide) / divisor
        return maths.select(divisor == zero, zero, divided).astype(data.dtype)

    return compute(data.shape, element, name="lp_normalize", tag=INJECTIVE)


def _sample_lp_normalize(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.float_dtype())
    return Sample((data,), {"axis": draws.axis(data.ndim), "p": draws.integer(1, 2)})


@meaning_of(lp_normalize, sample=_sample_lp_normalize)
def lp_normalize_numpy(data: Array, *, axis: int = -1, p: int = 2) -> Array:
    wide = widen(data)
    norm = np.linalg.norm(wide, ord=p, axis=axis, keepdims=True)
    return np.asarray(np.where(norm == 0, 0, wide / norm), data.dtype)


def mean_variance_normalization(
    data: Tensor, *, axis: Sequence[int] = (0, 2, 3)
) -> Tensor:
    """Return `data`, shifted and scaled to the mean 0 and the variance 1 along some axes.

        y = (x - mean) / (sqrt(variance) + 1e-9)

    The variance is that of the population. Floats of 16 bits are added up in f32. A NaN or an
    infinity makes all elements along the axes NaN.

    Args:
        data: floats of any shape with at least one dimension.
        axis: the axes of the mean, each once; -1 is the last one. By default those of the batch
            and of the image in the layout NCHW.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, or an axis is missing, repeated, or does not exist.

    Reference: ONNX MeanVarianceNormalization.

    Example::

        >>> X = rc.placeholder((2, 2), name="X")
        >>> Y = rc.topi.mean_variance_normalization(X, axis=(1,))
        >>> print(*rc.oracle.evaluate([Y], {X: np.array([[1, 3], [8, 8]], "float32")}))
        [[-1.  1.]
         [ 0.  0.]]
    """
    require_float(data, "mean_variance_normalization")
    axes = check_axes(axis, data.ndim, "mean_variance_normalization")
    found = moments_along(data, axes)
    wide = sum_dtype(data)
    epsilon = const(_MVN_EPSILON, wide)
    deviation = _map_shared(found.variance, lambda value: _root(value) + epsilon)

    def element(*index: Expr) -> Expr:
        reduced = drop_axes(index, axes)
        difference = data[index].astype(wide) - found.mean[reduced]
        return (difference / deviation[reduced]).astype(data.dtype)

    return compute(
        data.shape, element, name="mean_variance_normalization", tag=INJECTIVE
    )


@meaning_of(mean_variance_normalization, sample=_sample_axes)
def mean_variance_normalization_numpy(
    data: Array, *, axis: Sequence[int] = (0, 2, 3)
) -> Array:
    wide = widen(data)
    axes = tuple(axis)
    deviation = np.sqrt(variance_numpy(wide, axes)) + rounded(_MVN_EPSILON, data)
    return np.asarray((wide - mean_numpy(wide, axes)) / deviation, data.dtype)
