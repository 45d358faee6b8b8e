"""Cumulative sums and products along an axis.

Each result is a reduction of its own, so that all are computed in parallel. Sums along a long axis
are computed in blocks: those of whole blocks, and those inside of each block.

Reference: ONNX CumSum and CumProd; G. E. Blelloch, "Prefix sums and their applications", 1990.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import accumulator_of, finish
from refcomp.topi.shapes import Array, normalize_axis, replace_entry, require_number
from refcomp.topi.tags import PAD, REDUCTION

# Sums along an axis that is longer, and constant, are computed in blocks.
_LONGEST_DIRECT = 32
# Elements of a block: a vector of f32, so that no vector crosses the end of a block.
_BLOCK = 8


@dataclass(frozen=True, slots=True)
class _Accumulation:
    """A cumulative reduction of `data` along the axis at `place`, in the dtype `wide`."""

    data: Tensor
    place: int
    wide: DType
    combine: Callable[..., Expr]  # reduces a value over an axis
    length: Extent  # of the axis in the result
    neutral: int  # the result for no elements
    exclusive: bool
    reverse: bool
    name: str  # of the result

    def value_at(
        self, index: Sequence[Expr], position: Expr, *conditions: Expr
    ) -> Expr:
        """Return the element at `position` along the axis if conditions hold, else `neutral`."""
        value = cast(self.wide, self.data[replace_entry(index, self.place, position)])
        if not conditions:
            return value
        # Not a condition of the reduction: a result that always changes stays in a register.
        neutral = const(self.neutral, self.wide)
        return maths.select(maths.all(*conditions), value, neutral)

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
            return self.combine(self.value_at(index, k.var, counts), axis=k)

        return compute(sizes, element, name=self.name, tag=REDUCTION)

    def sums(self) -> Tensor:
        """Return each sum as that of the blocks before its block, and of a part of its block.

        The sums of blocks are accumulated alike. A sum of n elements has some 8 * log8(n) terms.
        """
        sizes = extents(self.data)
        length = sizes[self.place]
        if not isinstance(length, int) or length <= _LONGEST_DIRECT:
            return self.of_whole_axis()
        place = self.place
        blocks = -(-length // _BLOCK)
        if length % _BLOCK:
            return self._filled(blocks * _BLOCK).sums()
        r = reduce_axis(_BLOCK, "r")

        def element(index: Sequence[Expr], offset: Expr, *conditions: Expr) -> Expr:
            """Return the element at `offset` in the block at `index`."""
            position = index[place] * _BLOCK + offset
            return self.value_at(index, position, *conditions)

        def sum_in_block(*index: Expr) -> Expr:
            block = (*index[: place + 1], *index[place + 2 :])
            counts = self.counts(r.var, index[place + 1])
            return self.combine(element(block, r.var, counts), axis=r)

        shape = (*sizes[:place], blocks, _BLOCK, *sizes[place + 1 :])
        inside = compute(shape, sum_in_block, name="inside", tag=REDUCTION)

        def at_offset(index: Sequence[Expr], block: Expr, offset: Expr) -> Expr:
            return inside[(*index[:place], block, offset, *index[place + 1 :])]

        def sum_of_block(*index: Expr) -> Expr:
            last = as_dim(0 if self.reverse else _BLOCK - 1)
            result = at_offset(index, index[place], last)
            return result + element(index, last) if self.exclusive else result

        by_block = replace_entry(sizes, place, blocks)
        totals = compute(by_block, sum_of_block, name="totals", tag=INJECTIVE)
        before = replace(
            self, data=totals, length=blocks, exclusive=True, name="before"
        ).sums()

        def whole_sum(*index: Expr) -> Expr:
            block = maths.floordiv(index[place], _BLOCK)
            offset = maths.floormod(index[place], _BLOCK)
            sum_before = before[replace_entry(index, place, block)]
            return sum_before + at_offset(index, block, offset)

        shape = replace_entry(sizes, place, self.length)
        return compute(shape, whole_sum, name=self.name, tag=INJECTIVE)

    def _filled(self, length: int) -> _Accumulation:
        """Return the same accumulation of data that have neutral elements up to `length`."""

        def element(*index: Expr) -> Expr:
            position = index[self.place]
            nearest = maths.minimum(position, self.length - 1)
            return self.value_at(index, nearest, position < self.length)

        shape = replace_entry(extents(self.data), self.place, length)
        filled = compute(shape, element, name="filled", tag=PAD)
        return replace(self, data=filled)


def _accumulation(
    data: Tensor,
    combine: Callable[..., Expr],
    neutral: int,
    axis: int,
    exclusive: bool,
    reverse: bool,
    name: str,
) -> _Accumulation:
    require_number(data, name)
    place = normalize_axis(axis, data.ndim, name)
    return _Accumulation(
        data=data,
        place=place,
        wide=accumulator_of(data.dtype),
        length=extents(data)[place],
        combine=combine,
        neutral=neutral,
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

    Along a constant axis of n > 32 elements, each sum takes some 8 * log8(n) additions, and all
    are computed in parallel. Along others, each sum takes n additions.

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
    accumulation = _accumulation(
        data, reducer.sum, 0, axis, exclusive, reverse, "cumsum"
    )
    return _converted(accumulation.sums(), data.dtype, "cumsum")


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
        data, reducer.prod, 1, axis, exclusive, reverse, "cumprod"
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
