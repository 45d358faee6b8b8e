"""Batch normalization as it is at inference: a fixed affine map per channel.

y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor
from refcomp.topi.shapes import (
    Array,
    extents,
    normalize_axis,
    require_extent,
    require_rank,
    widen,
)
from refcomp.topi.tags import INJECTIVE


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
    """`data` normalized along the channel `axis`; the others have that axis' extent."""
    if not data.dtype.is_float:
        raise UserError(f"batch_norm takes a float tensor, {data.dtype} given")
    place = normalize_axis(axis, data.ndim, "batch_norm")
    for name, per_channel in (
        ("gamma", gamma),
        ("beta", beta),
        ("mean", mean),
        ("variance", variance),
    ):
        require_rank(per_channel, 1, "batch_norm", name)
        require_extent(
            extents(per_channel)[0], extents(data)[place], "batch_norm", name
        )

    def element(*index: Expr) -> Expr:
        c = index[place]
        deviation = maths.sqrt(variance[c] + const(epsilon, variance.dtype))
        return (data[index] - mean[c]) / deviation * gamma[c] + beta[c]

    result: Tensor = compute(data.shape, element, name="batch_norm", tag=INJECTIVE)
    return result


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
    return np.asarray((widen(data) - m) / np.sqrt(v + epsilon) * g + b).astype(
        data.dtype
    )
