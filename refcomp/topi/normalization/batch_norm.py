"""Batch normalization at inference: a fixed affine map of each channel.

    y = (x - mean) / sqrt(variance + epsilon) * gamma + beta

Reference: S. Ioffe and C. Szegedy, "Batch Normalization", ICML 2015, algorithm 2; ONNX
BatchNormalization with training_mode = 0.
"""

from __future__ import annotations

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    require_float,
    require_rank,
    widen,
)


def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    epsilon: float = 1e-5,
    axis: int = 1,
) -> Tensor:
    """Return `data`, normalized along its channel axis.

    NaN propagates. If variance + epsilon is negative, the result is NaN. If the sum is 0, the
    result is an infinity, or NaN where x = mean.

    Args:
        data: floats of any shape [..., c, ...] with at least one dimension.
        gamma: [c], the scale of each channel, of the dtype of `data`, as are the next three.
        beta: [c], the shift of each channel.
        mean: [c], the mean that training found.
        variance: [c], the variance that training found.
        epsilon: added to the variance; rounded to its dtype.
        axis: the axis of the channels; -1 is the last one.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, the axis does not exist, or an extent is not c.

    Reference: S. Ioffe, C. Szegedy, "Batch Normalization", 2015; ONNX BatchNormalization.

    Example::

        >>> X = rc.placeholder((1, 2, 2), name="X")
        >>> G, B, M, V = (rc.placeholder((2,), name=name) for name in "GBMV")
        >>> Y = rc.topi.batch_norm(X, G, B, M, V, epsilon=0.0)
        >>> x = np.array([[[1, 3], [10, 30]]], "float32")
        >>> g, b, m, v = np.array([[1, 1], [0, 5], [2, 20], [1, 100]], "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, G: g, B: b, M: m, V: v}))
        [[[-1.  1.]
          [ 4.  6.]]]
    """
    require_float(data, "batch_norm")
    place = normalize_axis(axis, data.ndim, "batch_norm")
    channels = extents(data)[place]
    parameters = {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance}
    for name, parameter in parameters.items():
        require_rank(parameter, 1, "batch_norm", name)
        require_extent(
            extents(parameter)[0],
            channels,
            "batch_norm",
            name,
            tensors=(data, parameter),
        )

    def element(*index: Expr) -> Expr:
        c = index[place]
        # Not folded into one factor and one summand: the roundings would differ from frameworks.
        deviation = maths.sqrt(variance[c] + const(epsilon, variance.dtype))
        return (data[index] - mean[c]) / deviation * gamma[c] + beta[c]

    return compute(data.shape, element, name="batch_norm", tag=INJECTIVE)


def _sample_batch_norm(draws: Draws) -> Sample:
    shape = draws.shape(1, 4)
    axis = draws.axis(len(shape))
    dtype = draws.float_dtype()
    gamma, beta, mean = (draws.array((shape[axis],), dtype) for _ in range(3))
    variance = draws.uniform((shape[axis],), 0, 4, dtype)
    operands = (draws.array(shape, dtype), gamma, beta, mean, variance)
    return Sample(operands, {"epsilon": draws.number(0.001, 0.1), "axis": axis})


@meaning_of(batch_norm, sample=_sample_batch_norm, pattern="broadcast")
def batch_norm_numpy(
    data: Array,
    gamma: Array,
    beta: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float = 1e-5,
    axis: int = 1,
) -> Array:
    shape = [1] * data.ndim
    shape[axis] = -1
    g, b, m, v = (widen(a).reshape(shape) for a in (gamma, beta, mean, variance))
    normalized = (widen(data) - m) / np.sqrt(v + epsilon)
    return np.asarray(normalized * g + b, data.dtype)
