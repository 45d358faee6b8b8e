"""Counts of values: bincount, histogram; and membership in a set of values: isin."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.scattering import Scatter
from refcomp.topi.operator import meaning_of
from refcomp.topi.search.bisection import bisect
from refcomp.topi.search.flat_index import flat
from refcomp.topi.search.ordering import sorted_order, take_along
from refcomp.topi.shapes import Array, require_constant, require_one_dtype, require_rank
from refcomp.topi.tags import REDUCTION

# The most values that are compared with each element; more of them are sorted and searched.
MOST_COMPARED = 64


def isin(data: Tensor, test_elements: Tensor, *, invert: bool = False) -> Tensor:
    """Return for each element of a tensor if it is one of some values.

    NaN is not equal to any value. Up to 64 values are compared with each element. More of them are
    sorted, and then each element takes log n comparisons.

    Args:
        data: numbers of any shape.
        test_elements: the values, of the dtype of `data` and any shape.
        invert: True to return the elements that are not among the values.

    Returns:
        A tensor of bools of the shape of `data`.

    Raises:
        UserError: the dtypes differ.

    Reference: numpy.isin; torch.isin.

    Example::

        >>> A, T = rc.placeholder((4,), "int32", name="A"), rc.placeholder((2,), "int32", name="T")
        >>> a, t = np.array([1, 2, 3, 4], "int32"), np.array([4, 2], "int32")
        >>> print(*rc.oracle.evaluate([rc.topi.isin(A, T)], {A: a, T: t}))
        [False  True False  True]
    """
    require_tensor(data, "isin")
    require_tensor(test_elements, "isin")
    require_one_dtype("isin", data, test_elements)
    values = flat(test_elements)
    (size,) = extents(values)
    if isinstance(size, int) and size > MOST_COMPARED:
        found = _searched(data, values, size)
    else:
        found = _compared(data, values)

    def element(*index: Expr) -> Expr:
        is_found = found[index] > 0
        return ~is_found if invert else is_found

    return compute(data.shape, element, name="isin", tag=INJECTIVE)


def _compared(data: Tensor, values: Tensor) -> Tensor:
    j = reduce_axis(values.shape[0], "j")

    def matches(*index: Expr) -> Expr:
        is_equal = data[index].equal(values[j])
        return reducer.sum(is_equal.astype("int32"), axis=j)

    return compute(data.shape, matches, name="matches", tag=REDUCTION)


def _searched(data: Tensor, values: Tensor, size: int) -> Tensor:
    order = sorted_order(values, 0, is_ascend=True)
    keys = take_along(values, order, 0, "keys")
    places = bisect(keys, data, right=False)

    def is_there(*index: Expr) -> Expr:
        key = keys[maths.minimum(places[index], size - 1)]
        return key.equal(data[index]).astype("int32")

    return compute(data.shape, is_there, name="matches", tag=INJECTIVE)


def _sample_isin(draws: Draws) -> Sample:
    dtype = draws.number_dtype()
    data = draws.array(draws.shape(), dtype)
    values = draws.array(draws.shape(0, 2), dtype)
    if data.size and values.size and draws.flag():
        values[...] = draws.choice(data.ravel().tolist())
    return Sample((data, values), {"invert": draws.flag()})


@meaning_of(isin, sample=_sample_isin)
def isin_numpy(data: Array, test_elements: Array, *, invert: bool = False) -> Array:
    return np.asarray(np.isin(data, test_elements, invert=invert))


def bincount(data: Tensor, weights: Tensor | None = None, *, length: int) -> Tensor:
    """Count how often each of the numbers 0 ... length - 1 occurs, or add up their weights.

    Other numbers are left out. Each number takes one step; many of them are taken one after the
    other (see `scatter_elements`). Sums of floats round after each weight.

    Args:
        data: integers of any shape.
        weights: of the shape of `data`, which are added in place of 1.
        length: how many numbers are counted, at least 0.

    Returns:
        A tensor of shape (length,): i64 without weights, else of the dtype of the weights.

    Raises:
        UserError: `data` does not hold integers, the weights have another shape or hold bools, or
            the length is negative.

    Reference: numpy.bincount; torch.bincount. Both return as many counts as the data needs.

    Example::

        >>> A = rc.placeholder((4,), "int32", name="A")
        >>> B = rc.topi.bincount(A, length=4)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, 3, 1, 9], "int32")}))
        [0 2 0 1]
    """
    require_tensor(data, "bincount")
    if not data.dtype.is_int:
        raise UserError(
            f"bincount takes integers, not {data.dtype}",
            remedy='convert them first: x[i].astype("int32")',
            earlier=[data.declaration()],
        )
    if length < 0:
        raise UserError(
            f"bincount cannot count {length} numbers", remedy="give a length >= 0"
        )
    numbers = flat(data)
    added = None
    if weights is not None:
        _check_weights(data, weights)
        added = flat(weights)

    def place(i: Expr) -> Expr:
        # A negative number would count from the end.
        number = numbers[i].astype("int64")
        return maths.select(number < 0, as_dim(length), number)

    places = compute(numbers.shape, place, name="places", tag=INJECTIVE)
    return _counted(places, added, length, "bincount")


def _check_weights(data: Tensor, weights: Tensor) -> None:
    require_rank(weights, data.ndim, "bincount", "the tensor of weights")
    if weights.dtype.is_bool:
        raise UserError(
            "bincount cannot add up bools",
            remedy='convert them first: x[i].astype("int32")',
            earlier=[weights.declaration()],
        )
    for k, (extent, wanted) in enumerate(
        zip(extents(weights), extents(data), strict=True)
    ):
        what = f"extent {k} of the weights"
        require_extent(extent, wanted, "bincount", what, tensors=(weights, data))


def _counted(
    places: Tensor, weights: Tensor | None, length: int, operator: str
) -> Tensor:
    """Return the number of places, or the sum of their weights, for each place < length."""
    (count,) = extents(places)
    if weights is None:
        one = const(1, "int64")
        weights = compute(places.shape, lambda i: one, name="ones", tag=INJECTIVE)
    zero = const(0, weights.dtype)
    start = compute((length,), lambda i: zero, name="start", tag=INJECTIVE)
    return Scatter(
        operator=operator,
        data=start,
        updates=weights,
        indices=(places,),
        axes=(0,),
        count=count,
        coordinate=lambda read, _place, number, _index: read[0][(number,)],
        source=lambda number, _index: (number,),
        reduction="add",
    ).result()


def _sample_bincount(draws: Draws) -> Sample:
    length = draws.integer(0, 6)
    data = draws.integers(draws.shape(0, 3), 0, 7, draws.integer_dtype())
    if np.issubdtype(data.dtype, np.signedinteger) and draws.flag():
        data = data - data.dtype.type(2)
    weights = draws.array(data.shape, draws.number_dtype()) if draws.flag() else None
    return Sample((data, weights), {"length": length})


@meaning_of(bincount, sample=_sample_bincount)
def bincount_numpy(data: Array, weights: Array | None = None, *, length: int) -> Array:
    is_counted = (data >= 0) & (data < length)
    if weights is None:
        counted = data[is_counted].astype(np.int64)
        return np.bincount(counted, minlength=length).astype(np.int64)
    is_float = np.issubdtype(weights.dtype, np.floating)
    wide = weights.astype(np.longdouble) if is_float else weights
    masked = [wide[is_counted & (data == number)] for number in range(length)]
    sums = [part.sum(dtype=wide.dtype) for part in masked]
    return np.asarray(sums, wide.dtype).astype(weights.dtype)


def histogram(data: Tensor, edges: Tensor) -> Tensor:
    """Count the elements between neighbouring edges.

    Bin i holds x with edges[i] <= x < edges[i + 1]; the last bin also holds its upper edge. NaN and
    elements beyond the outer edges are left out. Each element takes log n comparisons.

    Args:
        data: numbers of any shape.
        edges: of the dtype of `data`, ascending, of one dimension with at least two elements.

    Returns:
        An i64 tensor with an element less than `edges`.

    Raises:
        UserError: the dtypes differ, or there are less than two edges or a symbolic number of them.

    Reference: numpy.histogram with given edges.

    Example::

        >>> A, E = rc.placeholder((5,), name="A"), rc.placeholder((3,), name="E")
        >>> a, e = np.array([0, 1, 1.5, 2, 7], "float32"), np.array([0, 1, 2], "float32")
        >>> print(*rc.oracle.evaluate([rc.topi.histogram(A, E)], {A: a, E: e}))
        [1 3]
    """
    require_tensor(data, "histogram")
    require_rank(edges, 1, "histogram", "the tensor of edges")
    require_one_dtype("histogram", data, edges)
    size = require_constant(extents(edges)[0], "histogram: the number of edges")
    if size < 2:
        raise UserError(
            f"histogram cannot make bins between {size} edges",
            remedy="give two or more edges",
            earlier=[edges.declaration()],
        )
    elements = flat(data)
    bins = size - 1
    number = bisect(edges, elements, right=True, name="number")

    def place(i: Expr) -> Expr:
        inside = maths.select(number[i] > 0, number[i] - 1, as_dim(bins))
        is_last = elements[i].equal(edges[bins])
        return maths.select(is_last, as_dim(bins - 1), inside)

    places = compute(elements.shape, place, name="places", tag=INJECTIVE)
    return _counted(places, None, bins, "histogram")


def _sample_histogram(draws: Draws) -> Sample:
    dtype = draws.number_dtype()
    edges = draws.array((draws.integer(2, 6),), dtype, special=False)
    return Sample((draws.array(draws.shape(), dtype), np.sort(edges)))


@meaning_of(histogram, pattern="opaque", sample=_sample_histogram)
def histogram_numpy(data: Array, edges: Array) -> Array:
    bins = len(edges) - 1
    counts = np.zeros(bins, np.int64)
    for number in range(bins):
        is_last = number == bins - 1
        upper = edges[number + 1]
        is_below = data <= upper if is_last else data < upper
        counts[number] = np.sum((data >= edges[number]) & is_below)
    return counts
