"""Elements that are not zero, or that a condition selects: nonzero, argwhere, compress.

How many there are is known only at run time. Each operator returns a buffer of the greatest size,
whose tail is 0, and the number of its elements that count.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, is_same, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.search.compaction import set_positions
from refcomp.topi.search.flat_index import flat, index_at
from refcomp.topi.shapes import Array, normalize_axis, replace_entry, require_rank


def nonzero(data: Tensor) -> list[Tensor]:
    """Return the indices of the elements that are not zero, one column each.

    NaN is not zero, and -0 is zero. The elements are in row-major order. Up to 256 elements are
    counted by comparing all pairs, more of them by chunks in linear time.

    Args:
        data: a tensor of any shape and dtype.

    Returns:
        The indices, i64, of shape (rank, number of elements): element (d, k) is the index along
        axis d of element k that is not zero. Columns from the count on are 0. Then the count, an
        i64 tensor of shape (1,).

    Raises:
        UserError: `data` is not a tensor.

    Reference: ONNX NonZero; numpy.nonzero.

    Example::

        >>> A = rc.placeholder((2, 2), name="A")
        >>> a = np.array([[0, 5], [7, 0]], "float32")
        >>> indices, count = rc.oracle.evaluate(rc.topi.nonzero(A), {A: a})
        >>> print(indices[:, : count[0]])
        [[0 1]
         [1 0]]
    """
    require_tensor(data, "nonzero")
    positions, count = _nonzero_positions(data)
    (size,) = extents(positions)
    sizes = extents(data)

    def element(axis: Expr, k: Expr) -> Expr:
        return _choose(axis, index_at(positions[k], sizes))

    indices = compute((data.ndim, size), element, name="nonzero", tag=INJECTIVE)
    return [indices, count]


def _sample_nonzero(draws: Draws) -> Sample:
    return Sample((_sample_with_zeros(draws),))


def _sample_with_zeros(draws: Draws) -> Array:
    """Return an array of which about half of the elements are 0."""
    data = draws.array(draws.shape(0, 4), draws.choice(("bool", draws.number_dtype())))
    kept = draws.array(data.shape, "bool")
    return np.where(kept, data, np.zeros((), data.dtype))


@meaning_of(nonzero, pattern="opaque", sample=_sample_nonzero)
def nonzero_numpy(data: Array) -> list[Array]:
    rows, count = argwhere_numpy(data)
    return [np.ascontiguousarray(rows.T), count]


def argwhere(data: Tensor) -> list[Tensor]:
    """Return the indices of the elements that are not zero, one row each.

    It is `nonzero` with rows and columns exchanged.

    Args:
        data: a tensor of any shape and dtype.

    Returns:
        The indices, i64, of shape (number of elements, rank). Rows from the count on are 0. Then
        the count, an i64 tensor of shape (1,).

    Raises:
        UserError: `data` is not a tensor.

    Reference: TVM, topi.argwhere; numpy.argwhere.

    Example::

        >>> A = rc.placeholder((2, 2), name="A")
        >>> a = np.array([[0, 5], [7, 0]], "float32")
        >>> indices, count = rc.oracle.evaluate(rc.topi.argwhere(A), {A: a})
        >>> print(indices[: count[0]])
        [[0 1]
         [1 0]]
    """
    require_tensor(data, "argwhere")
    positions, count = _nonzero_positions(data)
    (size,) = extents(positions)
    sizes = extents(data)

    def element(k: Expr, axis: Expr) -> Expr:
        return _choose(axis, index_at(positions[k], sizes))

    indices = compute((size, data.ndim), element, name="argwhere", tag=INJECTIVE)
    return [indices, count]


@meaning_of(argwhere, pattern="opaque", sample=_sample_nonzero)
def argwhere_numpy(data: Array) -> list[Array]:
    rows = np.zeros((data.size, data.ndim), np.int64)
    found = np.argwhere(data)
    rows[: len(found)] = found
    return [rows, np.array([len(found)], np.int64)]


def _nonzero_positions(data: Tensor) -> tuple[Tensor, Tensor]:
    elements = flat(data)

    def flag(i: Expr) -> Expr:
        return elements[i].astype("bool").astype("int32")

    return set_positions(compute(elements.shape, flag, name="flags", tag=INJECTIVE))


def _choose(axis: Expr, index: tuple[Expr, ...]) -> Expr:
    """Return the part of `index` whose number is `axis`."""
    chosen: Expr = as_dim(0)
    for number, part in enumerate(index):
        chosen = maths.select(axis == number, part, chosen)
    return chosen


def compress(
    data: Tensor, condition: Tensor, *, axis: int | None = None
) -> list[Tensor]:
    """Return the slices of `data` along an axis for which a condition holds.

    The slices keep their order, to the bit. A condition that is shorter than the axis does not
    select the rest. Up to 256 conditions are counted by comparing all pairs, more of them by chunks
    in linear time.

    Args:
        data: a tensor of any shape and dtype.
        condition: bools or integers, of one dimension, at most as many as the axis has elements.
            0 is false.
        axis: the axis to select along; None for all elements in row-major order.

    Returns:
        The slices, in a tensor like `data` with as many slices as there are conditions. Slices from
        the count on are 0. Then the count, an i64 tensor of shape (1,).

    Raises:
        UserError: the axis does not exist, the condition has another rank or dtype, or it is longer
            than the axis.

    Reference: ONNX Compress; numpy.compress.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> C = rc.placeholder((3,), "bool", name="C")
        >>> a, c = np.array([4, 5, 6], "int32"), np.array([True, False, True])
        >>> print(*rc.oracle.evaluate(rc.topi.compress(A, C), {A: a, C: c}))
        [4 6 0] [2]
    """
    require_tensor(data, "compress")
    require_rank(condition, 1, "compress", "the condition")
    if condition.dtype.is_float:
        raise UserError(
            f"compress cannot select by conditions of the dtype {condition.dtype}",
            remedy="give bools or integers",
            earlier=[condition.declaration()],
        )
    source = flat(data) if axis is None else data
    place = 0 if axis is None else normalize_axis(axis, data.ndim, "compress")
    (size,) = extents(condition)
    _check_length(size, extents(source)[place], condition)
    positions, count = _nonzero_positions(condition)

    zero = const(0, data.dtype)

    def element(*index: Expr) -> Expr:
        k = index[place]
        chosen = source[replace_entry(index, place, positions[k])]
        return maths.select(k < count[0], chosen, zero)

    shape = replace_entry(extents(source), place, size)
    return [compute(shape, element, name="compress", tag=INJECTIVE), count]


def _check_length(size: Extent, extent: Extent, condition: Tensor) -> None:
    if isinstance(size, int) and isinstance(extent, int):
        is_short = size <= extent
    else:
        is_short = is_same(size, extent)
    if not is_short:
        raise UserError(
            "compress: the condition may be longer than the axis",
            why="it would select slices that do not exist",
            remedy="give at most one condition for each slice",
            earlier=[condition.declaration()],
        )


def _sample_compress(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 3), draws.number_dtype())
    axis = draws.choice((None, draws.axis(data.ndim)))
    longest = data.size if axis is None else data.shape[axis]
    condition = draws.array((draws.integer(0, longest),), "bool")
    if draws.flag():
        condition = condition * draws.array(condition.shape, draws.integer_dtype())
    return Sample((data, condition), {} if axis is None else {"axis": axis})


@meaning_of(compress, pattern="opaque", sample=_sample_compress)
def compress_numpy(
    data: Array, condition: Array, *, axis: int | None = None
) -> list[Array]:
    found = np.compress(condition != 0, data, axis=axis)
    place = 0 if axis is None else axis % data.ndim
    shape = replace_entry(found.shape, place, len(condition))
    result = np.zeros(shape, data.dtype)
    count = found.shape[place]
    np.moveaxis(result, place, 0)[:count] = np.moveaxis(found, place, 0)
    return [result, np.array([count], np.int64)]
