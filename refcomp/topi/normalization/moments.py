"""Sums, means and variances along axes, which the normalizations share.

Floats of 16 bits are added up in f32, as ONNX does by default (its attribute stash_type).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import F32, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.shapes import Array, normalize_axis, product
from refcomp.topi.tags import REDUCTION, SHARED

# Makes a term of a sum, for an index of the data.
Term = Callable[[tuple[Expr, ...]], Expr]


@dataclass(frozen=True, slots=True)
class Moments:
    """The mean and the variance of some data, as tensors of the same shape."""

    mean: Tensor
    variance: Tensor


def sum_dtype(data: Tensor) -> DType:
    """Return the dtype in which elements of `data` are added up: at least f32."""
    return F32 if data.dtype.bytes < F32.bytes else data.dtype


def check_axes(axes: Sequence[int], rank: int, operator: str) -> tuple[int, ...]:
    """Return the axes, counted from 0, in ascending order.

    Raises:
        UserError: no axis is given, an axis does not exist, or an axis is given twice.
    """
    places = sorted(normalize_axis(axis, rank, operator) for axis in axes)
    if not places or len(set(places)) < len(places):
        raise UserError(
            f"{operator} cannot reduce along the axes {tuple(axes)}",
            remedy="give one or more axes, each once",
        )
    return tuple(places)


def drop_axes(index: Sequence[Expr], axes: Sequence[int]) -> tuple[Expr | int, ...]:
    """Return `index` with 0 at `axes`: the index of a tensor that is reduced along them."""
    return tuple(0 if k in axes else i for k, i in enumerate(index))


def reduce_along(
    data: Tensor,
    axes: Sequence[int],
    term: Term,
    name: str,
    reduction: Callable[..., Expr] = reducer.sum,
) -> Tensor:
    """Return the reduction of `term` along `axes` of `data`, which stay with the extent 1."""
    sizes = extents(data)
    steps = {axis: reduce_axis(sizes[axis], f"r{axis}") for axis in axes}
    shape = tuple(1 if k in steps else size for k, size in enumerate(sizes))

    def element(*index: Expr) -> Expr:
        source = tuple(steps[k].var if k in steps else i for k, i in enumerate(index))
        return reduction(term(source), axis=list(steps.values()))

    return compute(shape, element, name=name, tag=REDUCTION)


def count_along(data: Tensor, axes: Sequence[int]) -> Extent:
    """Return the number of elements along `axes`."""
    sizes = extents(data)
    return product([sizes[axis] for axis in axes])


def divide_by_count(total: Tensor, count: Extent, name: str) -> Tensor:
    """Return each element of `total` divided by a number of elements."""
    divisor = (
        const(float(count), total.dtype)
        if isinstance(count, int)
        else cast(total.dtype, count)
    )
    return compute(
        total.shape, lambda *index: total[index] / divisor, name=name, tag=SHARED
    )


def moments_along(data: Tensor, axes: Sequence[int]) -> Moments:
    """Return the mean and the variance of `data` along `axes`, which stay with the extent 1.

    The variance is the mean of squared differences from the mean. Unlike the difference of two
    means of squares, it does not cancel.
    """
    wide = sum_dtype(data)
    count = count_along(data, axes)
    total = reduce_along(data, axes, lambda index: data[index].astype(wide), "total")
    mean = divide_by_count(total, count, "mean")

    def square(index: tuple[Expr, ...]) -> Expr:
        difference = data[index].astype(wide) - mean[drop_axes(index, axes)]
        return difference * difference

    squares = reduce_along(data, axes, square, "squares")
    return Moments(mean, divide_by_count(squares, count, "variance"))


def deviation_of(variance: Tensor, epsilon: float) -> Tensor:
    """Return the square root of variance + epsilon."""
    added = const(epsilon, variance.dtype)
    return compute(
        variance.shape,
        lambda *index: maths.sqrt(variance[index] + added),
        name="deviation",
        tag=SHARED,
    )


def mean_numpy(data: Array, axes: Sequence[int]) -> Array:
    """Return the means along `axes` in f64, NaN if that is of nothing."""
    count = np.prod([data.shape[axis] for axis in axes])
    with np.errstate(invalid="ignore"):  # 0 / 0
        return np.asarray(data.sum(axis=tuple(axes), keepdims=True) / count)


def variance_numpy(data: Array, axes: Sequence[int]) -> Array:
    """Return the population variances along `axes` in f64, NaN if that is of nothing."""
    with np.errstate(invalid="ignore"):  # infinity - infinity
        return mean_numpy((data - mean_numpy(data, axes)) ** 2, axes)


def rounded(number: float, data: Array) -> float:
    """Return a constant as computes have it: rounded to the dtype in which `data` is added up."""
    is_f64 = as_dtype(data.dtype).bytes == np.float64().nbytes
    return number if is_f64 else float(np.float32(number))
