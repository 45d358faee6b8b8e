"""Operators that replace elements by their place: one_hot, sequence_mask, tril, triu, diagonals."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.indices import clamp_count, from_end, from_end_numpy
from refcomp.topi.movement.rearrange import rearrange
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    require_constant,
    require_integer,
    require_matrices,
    require_one_dtype,
    require_rank,
)


def one_hot(
    indices: Tensor,
    *,
    depth: int,
    axis: int = -1,
    on_value: int | float = 1,
    off_value: int | float = 0,
    dtype: DTypeLike = "float32",
) -> Tensor:
    """Return for each index a vector that has `on_value` at the index, and else `off_value`.

    A negative index counts from the end. One that is out of range gives `off_value` everywhere.

    Args:
        indices: integers of any shape.
        depth: the length of the vectors, >= 0.
        axis: the position of the vectors' axis in the result; -1 is its last axis.
        on_value: a value of the dtype.
        off_value: a value of the dtype.
        dtype: the dtype of the result.

    Raises:
        UserError: `indices` are not integers, the depth is negative, the axis does not exist, or a
            value is not one of the dtype.

    Reference: ONNX OneHot; TVM topi.one_hot.

    Example::

        >>> I = rc.placeholder((2,), "int32", name="I")
        >>> B = rc.topi.one_hot(I, depth=3, dtype="int32")
        >>> print(*rc.oracle.evaluate([B], {I: np.array([1, -1], "int32")}))
        [[0 1 0]
         [0 0 1]]
    """
    require_integer(indices, "one_hot")
    if depth < 0:
        raise UserError(f"one_hot has the depth {depth}", remedy="give a depth >= 0")
    place = normalize_axis(axis, indices.ndim + 1, "one_hot")
    sizes = extents(indices)
    kind = as_dtype(dtype)
    on = const(on_value, kind)
    off = const(off_value, kind)

    def element(*index: Expr) -> Expr:
        given = indices[(*index[:place], *index[place + 1 :])]
        return maths.select(from_end(given, depth).equal(index[place]), on, off)

    shape = (*sizes[:place], depth, *sizes[place:])
    return compute(shape, element, name="one_hot", tag=INJECTIVE)


def _sample_one_hot(draws: Draws) -> Sample:
    indices = draws.array(draws.shape(0, 3), draws.integer_dtype())
    attributes = {
        "depth": draws.extent(0),
        "axis": draws.axis(indices.ndim + 1),
        "on_value": draws.choice((1, 3.0)),
        "off_value": draws.choice((0, 2)),
        "dtype": draws.number_dtype(),
    }
    return Sample((indices,), attributes)


@meaning_of(one_hot, sample=_sample_one_hot, pattern="injective")
def one_hot_numpy(
    indices: Array,
    *,
    depth: int,
    axis: int = -1,
    on_value: int | float = 1,
    off_value: int | float = 0,
    dtype: DTypeLike = "float32",
) -> Array:
    wanted = from_end_numpy(indices, depth)
    result = np.full((*indices.shape, depth), off_value, to_numpy(as_dtype(dtype)))
    for outer in np.ndindex(indices.shape):
        if 0 <= wanted[outer] < depth:
            result[(*outer, int(wanted[outer]))] = on_value
    return np.moveaxis(result, -1, axis)


def sequence_mask(
    data: Tensor,
    valid_length: Tensor,
    *,
    mask_value: int | float = 0,
    axis: int = 0,
    batch_axis: int | None = None,
) -> Tensor:
    """Replace the elements of each sequence of a batch from its length on.

    Args:
        data: a tensor of any dtype with two or more dimensions.
        valid_length: integers [batch]: the number of elements of each sequence that are kept.
        mask_value: the value of all other elements, of the dtype of `data`.
        axis: the axis along which a sequence runs.
        batch_axis: the axis that numbers the sequences: by default axis 1 if sequences run along
            axis 0, else axis 0.

    Raises:
        UserError: an axis does not exist, both are the same, or `valid_length` is not a vector of
            integers with an element for each sequence.

    Reference: MXNet SequenceMask; TVM topi.sequence_mask.

    Example::

        >>> A, L = rc.placeholder((2, 2), name="A"), rc.placeholder((2,), "int32", name="L")
        >>> B = rc.topi.sequence_mask(A, L, axis=1, mask_value=-1)
        >>> a, lengths = np.array([[1, 2], [3, 4]], "float32"), np.array([1, 2], "int32")
        >>> print(*rc.oracle.evaluate([B], {A: a, L: lengths}))
        [[ 1. -1.]
         [ 3.  4.]]
    """
    require_tensor(data, "sequence_mask")
    require_integer(valid_length, "sequence_mask")
    require_rank(valid_length, 1, "sequence_mask", "valid_length")
    along = normalize_axis(axis, data.ndim, "sequence_mask")
    other = int(along == 0) if batch_axis is None else batch_axis
    batch = normalize_axis(other, data.ndim, "sequence_mask")
    if along == batch:
        raise UserError(
            f"sequence_mask has axis {along} both for batches and along sequences",
            remedy="name two axes",
        )
    sizes = extents(data)
    what = "the number of lengths"
    (count,) = extents(valid_length)
    tensors = [valid_length, data]
    require_extent(count, sizes[batch], "sequence_mask", what, tensors=tensors)
    mask = const(mask_value, data.dtype)

    def element(*index: Expr) -> Expr:
        length = clamp_count(valid_length[index[batch]], sizes[along])
        return maths.select(index[along] < length, data[index], mask)

    return compute(sizes, element, name="sequence_mask", tag=INJECTIVE)


def _sample_sequence_mask(draws: Draws) -> Sample:
    data = draws.array(draws.shape(2, 4), draws.number_dtype())
    along, batch = draws.order(data.ndim)[:2]
    attributes = {
        "axis": along,
        "batch_axis": batch,
        "mask_value": draws.choice((0, 2.0)),
    }
    if draws.flag():
        along = draws.integer(0, 1)
        batch = 1 - along
        attributes = {"axis": along}
    lengths = draws.array((data.shape[batch],), draws.integer_dtype())
    return Sample((data, lengths), attributes)


@meaning_of(sequence_mask, sample=_sample_sequence_mask, pattern="injective")
def sequence_mask_numpy(
    data: Array,
    valid_length: Array,
    *,
    mask_value: int | float = 0,
    axis: int = 0,
    batch_axis: int | None = None,
) -> Array:
    result = data.copy()
    batch = int(axis == 0) if batch_axis is None else batch_axis
    sequences = np.moveaxis(result, (batch, axis), (0, 1))
    for sequence, length in zip(sequences, valid_length, strict=True):
        sequence[min(max(int(length), 0), len(sequence)) :] = mask_value
    return result


def trilu(data: Tensor, *, k: int = 0, upper: bool = True) -> Tensor:
    """Return matrices with zeros below or above a diagonal.

    Args:
        data: [..., rows, columns] of any dtype.
        k: the diagonal: column - row of its elements, which are kept.
        upper: True to keep the elements above the diagonal, False for those below.

    Raises:
        UserError: `data` has fewer than two dimensions.

    Reference: ONNX Trilu.

    Example::

        >>> A = rc.placeholder((2, 2), "int32", name="A")
        >>> B = rc.topi.trilu(A, k=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 2], [3, 4]], "int32")}))
        [[0 2]
         [0 0]]
    """
    return _triangle(data, k, upper, "trilu")


def tril(data: Tensor, *, k: int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal.

    Args:
        data: [..., rows, columns] of any dtype.
        k: the diagonal: column - row of its elements, which are kept.

    Raises:
        UserError: `data` has fewer than two dimensions.

    Reference: numpy.tril.

    Example::

        >>> A = rc.placeholder((2, 2), "int32", name="A")
        >>> print(*rc.oracle.evaluate([rc.topi.tril(A)], {A: np.array([[1, 2], [3, 4]], "int32")}))
        [[1 0]
         [3 4]]
    """
    return _triangle(data, k, False, "tril")


def triu(data: Tensor, *, k: int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal.

    Args:
        data: [..., rows, columns] of any dtype.
        k: the diagonal: column - row of its elements, which are kept.

    Raises:
        UserError: `data` has fewer than two dimensions.

    Reference: numpy.triu.

    Example::

        >>> A = rc.placeholder((2, 2), "int32", name="A")
        >>> print(*rc.oracle.evaluate([rc.topi.triu(A)], {A: np.array([[1, 2], [3, 4]], "int32")}))
        [[1 2]
         [0 4]]
    """
    return _triangle(data, k, True, "triu")


def _triangle(data: Tensor, k: int, upper: bool, name: str) -> Tensor:
    require_matrices(data, name)
    zero = const(0, data.dtype)
    diagonal = as_dim(k)

    def element(*index: Expr) -> Expr:
        offset = index[-1] - index[-2]
        is_kept = offset >= diagonal if upper else offset <= diagonal
        return maths.select(is_kept, data[index], zero)

    return compute(extents(data), element, name=name, tag=INJECTIVE)


def _sample_triangle(draws: Draws) -> Sample:
    data = draws.array(draws.shape(2, 4), draws.number_dtype())
    return Sample((data,), {"k": draws.integer(-5, 5)})


def _sample_trilu(draws: Draws) -> Sample:
    sample = _sample_triangle(draws)
    return Sample(sample.operands, {**sample.attributes, "upper": draws.flag()})


@meaning_of(trilu, sample=_sample_trilu, pattern="injective")
def trilu_numpy(data: Array, *, k: int = 0, upper: bool = True) -> Array:
    return np.triu(data, k) if upper else np.tril(data, k)


@meaning_of(tril, sample=_sample_triangle, pattern="injective")
def tril_numpy(data: Array, *, k: int = 0) -> Array:
    return np.tril(data, k)


@meaning_of(triu, sample=_sample_triangle, pattern="injective")
def triu_numpy(data: Array, *, k: int = 0) -> Array:
    return np.triu(data, k)


def diagonal(
    data: Tensor, *, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> Tensor:
    """Return a diagonal of the matrices in two axes, as the last axis of the result.

    Args:
        data: a tensor of any dtype. The extents of both axes are constant.
        offset: the diagonal: column - row of its elements. If it lies outside, it has no elements.
        axis1: the axis of the rows.
        axis2: the axis of the columns.

    Raises:
        UserError: an axis does not exist, both are the same, or an extent is symbolic.

    Reference: numpy.diagonal.

    Example::

        >>> A = rc.placeholder((2, 2), "int32", name="A")
        >>> B = rc.topi.diagonal(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 2], [3, 4]], "int32")}))
        [1 4]
    """
    require_matrices(data, "diagonal")
    down = normalize_axis(axis1, data.ndim, "diagonal")
    across = normalize_axis(axis2, data.ndim, "diagonal")
    if down == across:
        raise UserError(
            f"diagonal has axis {down} both as rows and as columns",
            remedy="name two axes",
        )
    sizes = extents(data)
    rows = require_constant(sizes[down], "diagonal: the number of rows")
    columns = require_constant(sizes[across], "diagonal: the number of columns")
    first_row = max(0, -offset)
    first_column = max(0, offset)
    length = max(0, min(rows - first_row, columns - first_column))
    kept = [place for place in range(data.ndim) if place not in (down, across)]

    def source(index: tuple[Expr, ...]) -> list[Expr]:
        whole = dict(zip(kept, index[:-1], strict=True))
        whole[down] = index[-1] + first_row
        whole[across] = index[-1] + first_column
        return [whole[place] for place in range(data.ndim)]

    shape = [*(sizes[place] for place in kept), length]
    return rearrange(data, shape, source, "diagonal")


def _sample_diagonal(draws: Draws) -> Sample:
    data = draws.array(draws.shape(2, 4), draws.number_dtype())
    down, across = draws.order(data.ndim)[:2]
    attributes = {
        "offset": draws.integer(-4, 4),
        "axis1": down,
        "axis2": across - data.ndim,
    }
    return Sample((data,), attributes)


@meaning_of(diagonal, sample=_sample_diagonal, pattern="injective")
def diagonal_numpy(
    data: Array, *, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> Array:
    return np.diagonal(data, offset, axis1, axis2).copy()


def matrix_set_diag(data: Tensor, values: Tensor, *, k: int = 0) -> Tensor:
    """Replace a diagonal of matrices.

    Args:
        data: [..., rows, columns] of any dtype, with constant extents in the last two axes.
        values: [..., length of the diagonal], of the dtype of `data`.
        k: the diagonal: column - row of its elements.

    Raises:
        UserError: a rank, an extent or the dtype does not fit.

    Reference: TensorFlow MatrixSetDiag; TVM topi.matrix_set_diag, for one diagonal.

    Example::

        >>> A = rc.placeholder((2, 2), "int32", name="A")
        >>> D = rc.placeholder((2,), "int32", name="D")
        >>> B = rc.topi.matrix_set_diag(A, D)
        >>> a, d = np.array([[1, 2], [3, 4]], "int32"), np.array([7, 8], "int32")
        >>> print(*rc.oracle.evaluate([B], {A: a, D: d}))
        [[7 2]
         [3 8]]
    """
    require_matrices(data, "matrix_set_diag")
    require_rank(values, data.ndim - 1, "matrix_set_diag", "values")
    require_one_dtype("matrix_set_diag", data, values)
    *batch, down, across = extents(data)
    rows = require_constant(down, "matrix_set_diag: the number of rows")
    columns = require_constant(across, "matrix_set_diag: the number of columns")
    length = max(0, min(rows - max(0, -k), columns - max(0, k)))
    wanted = [*batch, length]
    for place, (own, meant) in enumerate(zip(extents(values), wanted, strict=True)):
        what = f"extent {place} of values"
        require_extent(own, meant, "matrix_set_diag", what, tensors=[values, data])
    if not length:
        return rearrange(data, extents(data), lambda index: index, "matrix_set_diag")

    def element(*index: Expr) -> Expr:
        *outer, i, j = index
        is_set = (j - i).equal(as_dim(k))
        value = values[(*outer, i - max(0, -k))]
        return maths.if_then_else(is_set, value, data[index])

    return compute(extents(data), element, name="matrix_set_diag", tag=INJECTIVE)


def _sample_matrix_set_diag(draws: Draws) -> Sample:
    data = draws.array(draws.shape(2, 4), draws.number_dtype())
    k = draws.integer(-3, 3)
    shape = np.diagonal(data, k, -2, -1).shape
    return Sample((data, draws.array(shape, data.dtype.name)), {"k": k})


@meaning_of(matrix_set_diag, sample=_sample_matrix_set_diag, pattern="injective")
def matrix_set_diag_numpy(data: Array, values: Array, *, k: int = 0) -> Array:
    result = data.copy()
    for place in range(values.shape[-1]):
        result[..., place + max(0, -k), place + max(0, k)] = values[..., place]
    return result
