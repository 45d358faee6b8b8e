"""Normalizations of each sample by the statistics of its channels, or of groups of channels.

    y = (x - mean) / sqrt(variance + epsilon) * gamma + beta

Reference: ONNX InstanceNormalization and GroupNormalization.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.normalization.moments import (
    deviation_of,
    divide_by_count,
    mean_numpy,
    rounded,
    sum_dtype,
    variance_numpy,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    product,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)
from refcomp.topi.tags import REDUCTION


def group_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
) -> Tensor:
    """Return `data`, normalized over each group of channels of each sample.

        y = (x - mean) / sqrt(variance + epsilon) * gamma + beta

    The mean and the population variance are of a group: neighbouring channels with all their
    elements. Floats of 16 bits are added up in f32. A NaN or an infinity makes its group NaN.

    Args:
        data: floats [n, c, ...] with at least two dimensions.
        gamma: [c], the scale of each channel, of the dtype of `data`.
        beta: [c], the shift of each channel, of the dtype of `data`.
        num_groups: the number of groups, which divides c.
        epsilon: added to the variance; rounded to its dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats or has fewer than two dimensions, an extent is not c,
            the dtypes differ, or the number of groups does not divide c.

    Reference: Y. Wu, K. He, "Group Normalization", 2018; ONNX GroupNormalization since opset 21.

    Example::

        >>> X = rc.placeholder((1, 4), name="X")
        >>> G, B = rc.placeholder((4,), name="G"), rc.placeholder((4,), name="B")
        >>> Y = rc.topi.group_norm(X, G, B, num_groups=2, epsilon=0.0)
        >>> x, one = np.array([[1, 3, 0, 8]], "float32"), np.ones(4, "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, G: one, B: 0 * one}))
        [[-1.  1. -1.  1.]]
    """
    _check_operands("group_norm", data, gamma, beta)
    channels = require_constant(extents(data)[1], "group_norm: the number of channels")
    if num_groups < 1 or channels % num_groups:
        raise UserError(
            f"group_norm cannot divide {channels} channels into {num_groups} groups",
            remedy="give a number of groups >= 1 that divides the channels",
        )
    # Channels of one group.
    size = channels // num_groups
    return _normalize_groups("group_norm", data, gamma, beta, num_groups, size, epsilon)


def instance_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, *, epsilon: float = 1e-5
) -> Tensor:
    """Return `data`, normalized over each channel of each sample.

        y = (x - mean) / sqrt(variance + epsilon) * gamma + beta

    The mean and the population variance are of all elements of the channel. Floats of 16 bits are
    added up in f32. A NaN or an infinity makes its channel of its sample NaN.

    Args:
        data: floats [n, c, ...] with at least two dimensions.
        gamma: [c], the scale of each channel, of the dtype of `data`.
        beta: [c], the shift of each channel, of the dtype of `data`.
        epsilon: added to the variance; rounded to its dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats or has fewer than two dimensions, an extent is not c,
            or the dtypes differ.

    Reference: D. Ulyanov, A. Vedaldi, V. Lempitsky, "Instance Normalization", 2016; ONNX
    InstanceNormalization.

    Example::

        >>> X = rc.placeholder((1, 2, 2), name="X")
        >>> G, B = rc.placeholder((2,), name="G"), rc.placeholder((2,), name="B")
        >>> Y = rc.topi.instance_norm(X, G, B, epsilon=0.0)
        >>> x, one = np.array([[[1, 3], [9, 5]]], "float32"), np.ones(2, "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, G: one, B: 0 * one}))
        [[[-1.  1.]
          [ 1. -1.]]]
    """
    _check_operands("instance_norm", data, gamma, beta)
    channels = extents(data)[1]
    return _normalize_groups("instance_norm", data, gamma, beta, channels, 1, epsilon)


def _check_operands(operator: str, data: Tensor, gamma: Tensor, beta: Tensor) -> None:
    require_float(data, operator)
    if data.ndim < 2:
        raise UserError(
            f"{operator} takes data of two or more dimensions, not {data.ndim}",
            remedy="give a tensor [n, c, ...]",
            earlier=[data.declaration()],
        )
    require_one_dtype(operator, data, gamma, beta)
    for parameter, name in ((gamma, "gamma"), (beta, "beta")):
        require_rank(parameter, 1, operator, name)
        require_extent(
            extents(parameter)[0],
            extents(data)[1],
            operator,
            name,
            tensors=(data, parameter),
        )


def _normalize_groups(
    operator: str,
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    groups: Extent,
    size: int,
    epsilon: float,
) -> Tensor:
    """Return the normalized data; each group has `size` channels."""
    wide = sum_dtype(data)
    batch, _, *spatial = extents(data)
    count = product((size, *spatial))

    def sum_groups(term: Callable[[tuple[Expr, ...]], Expr], name: str) -> Tensor:
        channel = reduce_axis(size, "rc")
        steps = [reduce_axis(extent, f"r{k}") for k, extent in enumerate(spatial)]

        def element(n: Expr, group: Expr) -> Expr:
            source = (n, group * size + channel.var, *(step.var for step in steps))
            return reducer.sum(term(source), axis=[channel, *steps])

        return compute((batch, groups), element, name=name, tag=REDUCTION)

    total = sum_groups(lambda index: data[index].astype(wide), "total")
    mean = divide_by_count(total, count, "mean")

    def group_of(index: tuple[Expr, ...]) -> tuple[Expr, Expr]:
        n, channel = index[:2]
        return n, channel if size == 1 else maths.floordiv(channel, size)

    def square(index: tuple[Expr, ...]) -> Expr:
        difference = data[index].astype(wide) - mean[group_of(index)]
        return difference * difference

    variance = divide_by_count(sum_groups(square, "squares"), count, "variance")
    deviation = deviation_of(variance, epsilon)

    def element(*index: Expr) -> Expr:
        group = group_of(index)
        channel = index[1]
        normalized = (data[index].astype(wide) - mean[group]) / deviation[group]
        scaled = normalized * gamma[channel].astype(wide)
        return (scaled + beta[channel].astype(wide)).astype(data.dtype)

    return compute(data.shape, element, name=operator, tag=INJECTIVE)


def _sample_group_norm(draws: Draws) -> Sample:
    groups = draws.integer(1, 3)
    channels = groups * draws.integer(0 if draws.integer(0, 9) == 0 else 1, 2)
    dtype = draws.float_dtype()
    shape = (draws.extent(0), channels, *draws.shape(0, 2))
    gamma = draws.array((channels,), dtype, special=False)
    beta = draws.array((channels,), dtype)
    attributes = {"num_groups": groups, "epsilon": draws.number(0.001, 0.1)}
    return Sample((draws.array(shape, dtype), gamma, beta), attributes)


def _sample_instance_norm(draws: Draws) -> Sample:
    sample = _sample_group_norm(draws)
    return Sample(sample.operands, {"epsilon": sample.attributes["epsilon"]})


@meaning_of(group_norm, sample=_sample_group_norm)
def group_norm_numpy(
    data: Array, gamma: Array, beta: Array, *, num_groups: int, epsilon: float = 1e-5
) -> Array:
    batch, channels, *spatial = data.shape
    size = channels // num_groups
    grouped = widen(data).reshape(batch, num_groups, size, *spatial)
    axes = range(2, grouped.ndim)
    deviation = np.sqrt(variance_numpy(grouped, axes) + rounded(epsilon, data))
    normalized = (grouped - mean_numpy(grouped, axes)) / deviation
    shape = (channels, *[1] * len(spatial))
    scaled = normalized.reshape(data.shape) * widen(gamma).reshape(shape)
    return np.asarray(scaled + widen(beta).reshape(shape), data.dtype)


@meaning_of(instance_norm, sample=_sample_instance_norm)
def instance_norm_numpy(
    data: Array, gamma: Array, beta: Array, *, epsilon: float = 1e-5
) -> Array:
    axes = range(2, data.ndim)
    wide = widen(data)
    deviation = np.sqrt(variance_numpy(wide, axes) + rounded(epsilon, data))
    shape = (data.shape[1], *[1] * len(axes))
    normalized = (wide - mean_numpy(wide, axes)) / deviation
    scaled = normalized * widen(gamma).reshape(shape) + widen(beta).reshape(shape)
    return np.asarray(scaled, data.dtype)
