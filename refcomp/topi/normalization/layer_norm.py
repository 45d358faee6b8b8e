"""Normalizations over the last axes of each sample: by mean and variance, or by the mean square.

Reference: ONNX LayerNormalization and RMSNormalization.
"""

from __future__ import annotations

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.normalization.moments import (
    count_along,
    deviation_of,
    divide_by_count,
    drop_axes,
    mean_numpy,
    moments_along,
    reduce_along,
    rounded,
    sum_dtype,
    variance_numpy,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)


def layer_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """Return `data`, normalized over its axes from `axis` to the last one.

        y = (x - mean) / sqrt(variance + epsilon) * gamma + beta

    The mean and the population variance are of all elements along these axes. Floats of 16 bits
    are added up in f32. A NaN or an infinity makes all these elements NaN.

    Args:
        data: floats of any shape with at least one dimension.
        gamma: the scale, of the dtype of `data` and the shape of its axes from `axis` on.
        beta: the shift, of the shape and dtype of `gamma`; left out, it is 0.
        axis: the first axis that is normalized; -1 is the last one.
        epsilon: added to the variance; rounded to its dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, the axis does not exist, or a shape or dtype of
            `gamma` or `beta` differs.

    Reference: J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer Normalization", 2016; ONNX
    LayerNormalization.

    Example::

        >>> X, G = rc.placeholder((2, 2), name="X"), rc.placeholder((2,), name="G")
        >>> Y = rc.topi.layer_norm(X, G, epsilon=0.0)
        >>> x, g = np.array([[1, 3], [5, -5]], "float32"), np.array([1, 2], "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, G: g}))
        [[-1.  2.]
         [ 1. -2.]]
    """
    axes = _checked_axes("layer_norm", data, axis, gamma, beta)
    found = moments_along(data, axes)
    deviation = deviation_of(found.variance, epsilon)
    wide = sum_dtype(data)

    def element(*index: Expr) -> Expr:
        reduced = drop_axes(index, axes)
        parameter = index[axes[0] :]
        difference = data[index].astype(wide) - found.mean[reduced]
        scaled = difference / deviation[reduced] * gamma[parameter].astype(wide)
        if beta is not None:
            scaled = scaled + beta[parameter].astype(wide)
        return scaled.astype(data.dtype)

    return compute(data.shape, element, name="layer_norm", tag=INJECTIVE)


def _checked_axes(
    operator: str, data: Tensor, axis: int, gamma: Tensor, beta: Tensor | None = None
) -> tuple[int, ...]:
    """Return the axes from `axis` on. Raise UserError for operands that do not fit."""
    require_float(data, operator)
    require_tensor(gamma, operator)
    parameters = (gamma, beta)
    place = normalize_axis(axis, data.ndim, operator)
    require_one_dtype(operator, data, *parameters)
    for parameter, name in zip(parameters, ("gamma", "beta"), strict=True):
        if parameter is None:
            continue
        require_rank(parameter, data.ndim - place, operator, name)
        pairs = zip(extents(parameter), extents(data)[place:], strict=True)
        for actual, expected in pairs:
            require_extent(actual, expected, operator, name, tensors=(data, parameter))
    return tuple(range(place, data.ndim))


def _sample_layer_norm(draws: Draws) -> Sample:
    shape = draws.shape(1, 4)
    axis = draws.axis(len(shape))
    dtype = draws.float_dtype()
    gamma = draws.array(shape[axis:], dtype, special=False)
    beta = draws.array(shape[axis:], dtype) if draws.flag() else None
    attributes = {"axis": axis, "epsilon": draws.number(0.001, 0.1)}
    return Sample((draws.array(shape, dtype), gamma, beta), attributes)


@meaning_of(layer_norm, sample=_sample_layer_norm)
def layer_norm_numpy(
    data: Array,
    gamma: Array,
    beta: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> Array:
    axes = range(axis % data.ndim, data.ndim)
    wide = widen(data)
    difference = wide - mean_numpy(wide, axes)
    deviation = np.sqrt(variance_numpy(wide, axes) + rounded(epsilon, data))
    scaled = difference / deviation * widen(gamma)
    return np.asarray(scaled if beta is None else scaled + widen(beta), data.dtype)


def rms_norm(
    data: Tensor, gamma: Tensor, *, axis: int = -1, epsilon: float = 1e-5
) -> Tensor:
    """Return `data`, divided by the root of its mean square over the axes from `axis` on.

        y = x / sqrt(mean of x * x + epsilon) * gamma

    Floats of 16 bits are added up in f32. A NaN makes all elements over these axes NaN. An
    infinity makes the others 0, and itself NaN.

    Args:
        data: floats of any shape with at least one dimension.
        gamma: the scale, of the dtype of `data` and the shape of its axes from `axis` on.
        axis: the first axis that is normalized; -1 is the last one.
        epsilon: added to the mean square; rounded to its dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, the axis does not exist, or the shape or dtype of
            `gamma` differs.

    Reference: B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", 2019; ONNX
    RMSNormalization; TVM, topi.nn.rms_norm.

    Example::

        >>> X, G = rc.placeholder((1, 2), name="X"), rc.placeholder((2,), name="G")
        >>> Y = rc.topi.rms_norm(X, G, epsilon=0.0)
        >>> x, g = np.array([[1, 7]], "float32"), np.array([10, 5], "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, G: g}))
        [[2. 7.]]
    """
    axes = _checked_axes("rms_norm", data, axis, gamma)
    wide = sum_dtype(data)

    def square(index: tuple[Expr, ...]) -> Expr:
        value = data[index].astype(wide)
        return value * value

    squares = reduce_along(data, axes, square, "squares")
    mean = divide_by_count(squares, count_along(data, axes), "mean_square")
    root = deviation_of(mean, epsilon)

    def element(*index: Expr) -> Expr:
        normalized = data[index].astype(wide) / root[drop_axes(index, axes)]
        return (normalized * gamma[index[axes[0] :]].astype(wide)).astype(data.dtype)

    return compute(data.shape, element, name="rms_norm", tag=INJECTIVE)


def _sample_rms_norm(draws: Draws) -> Sample:
    data, gamma, _ = _sample_layer_norm(draws).operands
    assert data is not None and gamma is not None
    axis = data.ndim - gamma.ndim
    return Sample((data, gamma), {"axis": axis, "epsilon": draws.number(0.001, 0.1)})


@meaning_of(rms_norm, sample=_sample_rms_norm)
def rms_norm_numpy(
    data: Array, gamma: Array, *, axis: int = -1, epsilon: float = 1e-5
) -> Array:
    axes = range(axis % data.ndim, data.ndim)
    wide = widen(data)
    root = np.sqrt(mean_numpy(np.square(wide), axes) + rounded(epsilon, data))
    return np.asarray(wide / root * widen(gamma), data.dtype)
