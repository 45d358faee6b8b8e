"""Batch normalization in training: by statistics of the batch, which also move the running ones.

Reference: S. Ioffe and C. Szegedy, "Batch Normalization", ICML 2015, algorithm 1; ONNX
BatchNormalization with training_mode = 1.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.normalization.moments import (
    deviation_of,
    drop_axes,
    mean_numpy,
    moments_along,
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


def batch_norm_train(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    axis: int = 1,
) -> list[Tensor]:
    """Return `data`, normalized by the statistics of the batch, and these statistics.

        y = (x - batch_mean) / sqrt(batch_variance + epsilon) * gamma + beta
        running = running * momentum + batch * (1 - momentum)

    The mean and the population variance are of all elements of a channel. Floats of 16 bits are
    added up in f32. A NaN or an infinity makes its channel NaN. Without elements, the statistics
    are NaN.

    Args:
        data: floats of any shape [..., c, ...] with at least two dimensions.
        gamma: [c], the scale of each channel, of the dtype of `data`, as are the next three.
        beta: [c], the shift of each channel.
        mean: [c], the running mean.
        variance: [c], the running variance.
        epsilon: added to the variance; rounded to its dtype.
        momentum: the share of the running statistics that is kept.
        axis: the axis of the channels; -1 is the last one.

    Returns:
        Five tensors of the dtype of `data`: y of its shape, then the new running mean and running
        variance, and the mean and variance of the batch, each [c].

    Raises:
        UserError: `data` does not hold floats or has fewer than two dimensions, the axis does not
            exist, an extent is not c, or the dtypes differ.

    Reference: S. Ioffe, C. Szegedy, "Batch Normalization", 2015; ONNX BatchNormalization.

    Example::

        >>> X = rc.placeholder((2, 1), name="X")
        >>> G, B, M, V = (rc.placeholder((1,), name=name) for name in "GBMV")
        >>> outputs = rc.topi.batch_norm_train(X, G, B, M, V, epsilon=0.0, momentum=0.5)
        >>> x, one = np.array([[1], [3]], "float32"), np.ones(1, "float32")
        >>> found = rc.oracle.evaluate(outputs, {X: x, G: one, B: 0 * one, M: 0 * one, V: one})
        >>> [array.ravel().tolist() for array in found]
        [[-1.0, 1.0], [1.0], [1.0], [2.0], [1.0]]
    """
    place = _check_operands(data, axis, (gamma, beta, mean, variance))
    axes = [k for k in range(data.ndim) if k != place]
    found = moments_along(data, axes)
    deviation = deviation_of(found.variance, epsilon)
    wide = sum_dtype(data)

    def element(*index: Expr) -> Expr:
        reduced = drop_axes(index, axes)
        difference = data[index].astype(wide) - found.mean[reduced]
        scaled = difference / deviation[reduced] * gamma[index[place]].astype(wide)
        return (scaled + beta[index[place]].astype(wide)).astype(data.dtype)

    def of_batch(moment: Tensor, name: str) -> Tensor:
        def channel(c: Expr) -> Expr:
            source = tuple(c if k == place else 0 for k in range(data.ndim))
            return moment[source].astype(data.dtype)

        return compute((data.shape[place],), channel, name=name, tag=INJECTIVE)

    def moved(running: Tensor, moment: Tensor, name: str) -> Tensor:
        kept = const(momentum, wide)
        rest = const(1 - momentum, wide)

        def channel(c: Expr) -> Expr:
            source = tuple(c if k == place else 0 for k in range(data.ndim))
            value = running[c].astype(wide) * kept + moment[source] * rest
            return value.astype(data.dtype)

        return compute(running.shape, channel, name=name, tag=INJECTIVE)

    return [
        compute(data.shape, element, name="batch_norm_train", tag=INJECTIVE),
        moved(mean, found.mean, "running_mean"),
        moved(variance, found.variance, "running_variance"),
        of_batch(found.mean, "batch_mean"),
        of_batch(found.variance, "batch_variance"),
    ]


def _check_operands(data: Tensor, axis: int, parameters: tuple[Tensor, ...]) -> int:
    """Return the axis of the channels. Raise UserError for operands that do not fit."""
    operator = "batch_norm_train"
    require_float(data, operator)
    if data.ndim < 2:
        raise UserError(
            f"{operator} takes data of two or more dimensions, not {data.ndim}",
            remedy="give a tensor with an axis of the batch and one of the channels",
            earlier=[data.declaration()],
        )
    place = normalize_axis(axis, data.ndim, operator)
    require_one_dtype(operator, data, *parameters)
    names = ("gamma", "beta", "mean", "variance")
    for parameter, name in zip(parameters, names, strict=True):
        require_rank(parameter, 1, operator, name)
        require_extent(
            extents(parameter)[0],
            extents(data)[place],
            operator,
            name,
            tensors=(data, parameter),
        )
    return place


def _sample_batch_norm_train(draws: Draws) -> Sample:
    shape = draws.shape(2, 4)
    axis = draws.axis(len(shape))
    dtype = draws.float_dtype()
    parameters = [draws.array((shape[axis],), dtype) for _ in range(4)]
    attributes = {
        "epsilon": draws.number(0.001, 0.1),
        "momentum": draws.choice((0.0, 0.5, 0.9)),
        "axis": axis,
    }
    return Sample((draws.array(shape, dtype), *parameters), attributes)


# An anchor, since a fused kernel has only one output.
@meaning_of(batch_norm_train, pattern="opaque", sample=_sample_batch_norm_train)
def batch_norm_train_numpy(
    data: Array,
    gamma: Array,
    beta: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    axis: int = 1,
) -> list[Array]:
    wide = np.moveaxis(widen(data), axis, -1)
    axes = range(data.ndim - 1)
    batch_mean = mean_numpy(wide, axes).reshape(-1)
    batch_variance = variance_numpy(wide, axes).reshape(-1)
    deviation = np.sqrt(batch_variance + rounded(epsilon, data))
    y = (wide - batch_mean) / deviation * widen(gamma) + widen(beta)
    kept = rounded(momentum, data)
    rest = rounded(1 - momentum, data)
    found = [
        np.moveaxis(y, -1, axis),
        widen(mean) * kept + batch_mean * rest,
        widen(variance) * kept + batch_variance * rest,
        batch_mean,
        batch_variance,
    ]
    return [np.asarray(array, data.dtype) for array in found]
