"""Cumulative sums and products along an axis.

Each result is a reduction of its own, so that all are computed in parallel. Sums along a long axis
are computed in blocks: those of whole blocks, and those inside of each block.

Reference: ONNX CumSum and CumProd; G. E. Blelloch, "Prefix sums and their applications", 1990.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast
from refcomp.te import maths, reducer
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
    require_constant,
    require_number,
)
from refcomp.topi.tags import INJECTIVE, REDUCTION

# Sums along an axis that is longer, and constant, are computed in blocks.
_LONGEST_DIRECT = 64


@dataclass(frozen=True, slots=True)
class _Accumulation:
    """A cumulative reduction of `data` along the axis at `place`, in the dtype `wide`."""

    data: Tensor
    place: int
    wide: DType
    combine: Callable[
        ..., Expr
    ]  # reduces a value over an axis, where a condition holds
    exclusive: bool
    reverse: bool
    name: str  # of the result

    def value_at(self, index: Sequence[Expr], position: Expr) -> Expr:
        """Return the element that is at `position` along the axis."""
        return cast(self.wide, self.data[replace_entry(index, self.place, position)])

    def counts(self, position: Expr, result: Expr) -> Expr:
        """Return the condition that the element at `position` belongs to that result."""
        first, second = (result, position) if self.reverse else (position, result)
        return first < second if self.exclusive else first <= second

    def of_whole_axis(self) -> Tensor:
        """Return each result as one reduction over the whole axis."""
        sizes = extents(self.data)
        k = reduce_axis(sizes[self.place], "k")

        def element(*index: Expr) -> Expr:
            counts = self.counts(k.var, index[self.place])
            return self.combine(self.value_at(index, k.var), axis=k, where=counts)

        return compute(sizes, element, name=self.name, tag=REDUCTION)

    def of_blocks(self, size: int) -> Tensor:
        """Return each sum as that of the blocks before its block, and of a part of its block.

        For n elements and blocks of sqrt(n), a sum has some 2 * sqrt(n) terms instead of n.
        """
        sizes = extents(self.data)
        length = require_constant(sizes[self.place], "the length")
        blocks = -(-length // size)
        k = reduce_axis(size, "k")
        r = reduce_axis(size, "r")
        c = reduce_axis(blocks, "c")

        def total_of_block(*index: Expr) -> Expr:
            position = index[self.place] * size + k.var
            exists = position < length
            return self.combine(self.value_at(index, position), axis=k, where=exists)

        by_block = replace_entry(sizes, self.place, blocks)
        totals = compute(by_block, total_of_block, name="totals", tag=REDUCTION)

        def sum_before_block(*index: Expr) -> Expr:
            block = index[self.place]
            counts = c.var > block if self.reverse else c.var < block
            total = totals[replace_entry(index, self.place, c.var)]
            return self.combine(total, axis=c, where=counts)

        before = compute(by_block, sum_before_block, name="before", tag=REDUCTION)

        def sum_in_block(*index: Expr) -> Expr:
            result = index[self.place]
            position = maths.floordiv(result, size) * size + r.var
            counts = maths.all(position < length, self.counts(position, result))
            return self.combine(self.value_at(index, position), axis=r, where=counts)

        inside = compute(sizes, sum_in_block, name="inside", tag=REDUCTION)

        def whole_sum(*index: Expr) -> Expr:
            block = maths.floordiv(index[self.place], size)
            return before[replace_entry(index, self.place, block)] + inside[index]

        return compute(sizes, whole_sum, name=self.name, tag=INJECTIVE)


def _accumulation(
    data: Tensor,
    combine: Callable[..., Expr],
    axis: int,
    exclusive: bool,
    reverse: bool,
    name: str,
) -> _Accumulation:
    require_number(data, name)
    return _Accumulation(
        data=data,
        place=normalize_axis(axis, data.ndim, name),
        wide=accumulator_of(data.dtype),
        combine=combine,
        exclusive=exclusive,
        reverse=reverse,
        name=name,
    )


def _converted(result: Tensor, dtype: DType, name: str) -> Tensor:
    return result if result.dtype == dtype else finish(result, None, dtype, name)


def _numpy_accumulate(
    accumulate: Callable[..., Array],
    data: Array,
    axis: int,
    exclusive: bool,
    reverse: bool,
    neutral: int,
) -> Array:
    # Long doubles, since numpy adds in order, and so rounds more often than blocks do.
    is_float = data.dtype.kind == "f"
    wide = np.moveaxis(data.astype(np.longdouble) if is_float else data, axis, 0)
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
    shape = draws.shape(1, 4)
    axis = draws.axis(len(shape))
    if draws.integer(0, 5) == 0:
        shape = (draws.integer(_LONGEST_DIRECT + 1, 90),)
        axis = 0
    data = draws.array(shape, draws.number_dtype())
    attributes = {
        "axis": axis,
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

    Along a constant axis of n > 64 elements, each sum takes some 2 * sqrt(n) additions, and all are
    computed in parallel. Along others, each sum takes n additions.

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
    accumulation = _accumulation(data, reducer.sum, axis, exclusive, reverse, "cumsum")
    length = extents(data)[accumulation.place]
    if isinstance(length, int) and length > _LONGEST_DIRECT:
        sums = accumulation.of_blocks(math.isqrt(length))
    else:
        sums = accumulation.of_whole_axis()
    return _converted(sums, data.dtype, "cumsum")


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

    Each product takes n multiplications, and all are computed in parallel. Products of whole blocks
    might overflow where these do not.

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
    accumulation = _accumulation(
        data, reducer.prod, axis, exclusive, reverse, "cumprod"
    )
    return _converted(accumulation.of_whole_axis(), data.dtype, "cumprod")


@meaning_of(cumprod, sample=_sample_cumulative)
def cumprod_numpy(
    data: Array,
    *,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
) -> Array:
    return _numpy_accumulate(np.cumprod, data, axis, exclusive, reverse, 1)
