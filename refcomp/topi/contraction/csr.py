"""Products with sparse matrices in compressed rows (CSR): csrmm, sparse_dense.

Three tensors are a matrix of m rows with z stored elements:

- `data` [z], the stored elements row by row
- `indices` [z], the column of each
- `indptr` [m + 1], where each row begins in both, and at last z

An element that is not stored is 0, and is not multiplied: a NaN of the other matrix beside it does
not propagate.

The tensors come from a program's caller, so any numbers may be in them. Rows are cut to the z
elements, and elements whose column is out of range are left out. So nothing outside of the tensors
is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir import builder
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, require_extent
from refcomp.te.externs import extern
from refcomp.te.tensor import Tensor
from refcomp.topi.broadcast.arithmetic import add
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import accumulator_of
from refcomp.topi.shapes import (
    Array,
    require_integer,
    require_number,
    require_one_dtype,
    require_rank,
    widen,
)


def csrmm(
    data: Tensor,
    indices: Tensor,
    indptr: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    trans_b: bool = False,
) -> Tensor:
    """Return a @ b + c, where a is a sparse matrix [m, k] in compressed rows.

    Elements of a row are added in the order in which they are stored, f16 and bf16 in f32. Several
    stored elements at one place add up. An element whose column is not in 0, ..., k - 1 is left
    out. So is a part of a row outside of the stored elements.

    Args:
        data: [z], the stored elements of a, row by row; numbers.
        indices: [z] of integers, the column of each stored element.
        indptr: [m + 1] of integers: row i has the elements indptr[i], ..., indptr[i + 1] - 1.
        b: [k, n], or [n, k] if it is transposed, of the dtype of `data`.
        c: [n] or [m, n], of the dtype of `data`; optional.
        trans_b: True if `b` is transposed.

    Returns:
        A tensor [m, n] of the dtype of `data`.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: TVM, topi.sparse.csrmm; SciPy, csr_matrix.

    Example::

        >>> D, I = rc.placeholder((3,), name="D"), rc.placeholder((3,), "int32", name="I")
        >>> P, B = rc.placeholder((3,), "int32", name="P"), rc.placeholder((2, 2), name="B")
        >>> C = rc.topi.csrmm(D, I, P, B)
        >>> feeds = {D: np.array([5, 6, 7], "float32"), B: np.eye(2, dtype="float32")}
        >>> feeds |= {I: np.array([1, 0, 1], "int32"), P: np.array([0, 1, 3], "int32")}
        >>> print(*rc.oracle.evaluate([C], feeds))
        [[0. 5.]
         [6. 7.]]
    """
    sparse = _checked(data, indices, indptr, "csrmm")
    require_rank(b, 2, "csrmm", "b")
    require_one_dtype("csrmm", data, b, c)
    product = _product(sparse, b, trans_dense=trans_b, trans_result=False)
    return product if c is None else _biased(product, c, "csrmm")


def sparse_dense(
    data: Tensor,
    weight_data: Tensor,
    weight_indices: Tensor,
    weight_indptr: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """Return data @ w.T + bias, where w is a sparse matrix [n, k] in compressed rows.

    The sums, and what is left out, are those of `csrmm`.

    Args:
        data: [m, k] of numbers.
        weight_data: [z], the stored elements of w, row by row, of the dtype of `data`.
        weight_indices: [z] of integers, the column of each stored element.
        weight_indptr: [n + 1] of integers, where each row begins.
        bias: [n] or [m, n], of the dtype of `data`; optional.

    Returns:
        A tensor [m, n] of the dtype of `data`.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: TVM, topi.nn.sparse_dense and topi.sparse.dense.

    Example::

        >>> X, D = rc.placeholder((1, 2), name="X"), rc.placeholder((3,), name="D")
        >>> I, P = (rc.placeholder((3,), "int32", name=name) for name in "IP")
        >>> C = rc.topi.sparse_dense(X, D, I, P)
        >>> feeds = {X: np.array([[1, 10]], "float32"), D: np.array([5, 6, 7], "float32")}
        >>> feeds |= {I: np.array([1, 0, 1], "int32"), P: np.array([0, 1, 3], "int32")}
        >>> print(*rc.oracle.evaluate([C], feeds))
        [[50. 76.]]
    """
    sparse = _checked(weight_data, weight_indices, weight_indptr, "sparse_dense")
    require_rank(data, 2, "sparse_dense", "data")
    require_one_dtype("sparse_dense", data, weight_data, bias)
    product = _product(sparse, data, trans_dense=True, trans_result=True)
    return product if bias is None else _biased(product, bias, "sparse_dense")


@dataclass(frozen=True, slots=True)
class Structure:
    """The places of the stored elements of a sparse matrix."""

    rows: Extent
    stored: Extent  # the number of stored elements


@dataclass(frozen=True, slots=True)
class _Sparse:
    """A sparse matrix in compressed rows."""

    data: Tensor
    indices: Tensor
    indptr: Tensor
    rows: Extent


def _checked(data: Tensor, indices: Tensor, indptr: Tensor, operator: str) -> _Sparse:
    require_rank(data, 1, operator, "the tensor of stored elements")
    require_number(data, operator)
    structure = checked_structure(indices, indptr, operator)
    (stored,) = extents(data)
    what = "the number of columns"
    require_extent(structure.stored, stored, operator, what, tensors=(data, indices))
    return _Sparse(data, indices, indptr, structure.rows)


def checked_structure(indices: Tensor, indptr: Tensor, operator: str) -> Structure:
    """Return the structure that the columns and the beginnings of rows describe.

    Raises:
        UserError: a rank or dtype does not fit, or no row begins.
    """
    require_rank(indices, 1, operator, "the tensor of columns")
    require_integer(indices, operator)
    require_rank(indptr, 1, operator, "the tensor of beginnings of rows")
    require_integer(indptr, operator)
    (columns,) = extents(indices)
    (beginnings,) = extents(indptr)
    if beginnings == 0 and isinstance(beginnings, int):
        raise UserError(
            f"{operator}: the tensor of beginnings of rows has no elements",
            remedy="give one for each row, and the end of the last row",
            earlier=[indptr.declaration()],
        )
    return Structure(_less_one(beginnings), columns)


def _less_one(extent: Extent) -> Extent:
    if isinstance(extent, int):
        return extent - 1
    from refcomp.arith import simplify  # noqa: PLC0415 (for symbolic extents only)

    return simplify(extent - 1)


def _product(
    sparse: _Sparse, dense: Tensor, *, trans_dense: bool, trans_result: bool
) -> Tensor:
    """Return the product of a sparse matrix and a matrix.

    `trans_dense` and `trans_result` say which of the other matrix and the result are transposed.
    """
    depth, columns = reversed(extents(dense)) if trans_dense else extents(dense)
    shape = (columns, sparse.rows) if trans_result else (sparse.rows, columns)
    dtype = dense.dtype
    wide = accumulator_of(dtype) if dtype.is_float else dtype

    def statement(ins: list[BufferView], outs: list[BufferView]) -> Stmt:
        ib = builder.create()
        data, indices, indptr, other = map(ib.buffer_ptr, ins)
        result = ib.buffer_ptr(outs[0])
        stored = ins[0].shape[0]
        total = sparse.rows * columns
        with ib.for_range(0, total, name="element", for_type="parallel") as number:
            row = ib.let("row", number // columns)
            column = ib.let("column", number % columns)
            total_at = ib.allocate(str(wide), 1, name="sum", scope="local")
            total_at[0] = const(0, wide)
            begin = ib.let("begin", cut(indptr[row], stored))
            end = ib.let("end", cut(indptr[row + 1], stored))
            with ib.for_range(begin, maths.maximum(begin, end), name="p") as p:
                k = ib.let("k", indices[p].astype("int64"))
                with ib.if_scope(maths.all(k >= 0, k < depth)):
                    read = other[column, k] if trans_dense else other[k, column]
                    term = data[p].astype(wide) * read.astype(wide)
                    total_at[0] = total_at[0] + term
            place = (column, row) if trans_result else (row, column)
            result[place] = total_at[0].astype(dtype)
        return ib.get()

    inputs = [sparse.data, sparse.indices, sparse.indptr, dense]
    made: Tensor = extern(shape, inputs, statement, name="csr_product", dtype=dtype)
    return made


def cut(place: Expr, stored: Expr) -> Expr:
    """Return `place`, or the nearest of 0, ..., `stored`."""
    if str(place.dtype) == "u64":
        # A u64 above i64 would be below 0 in i64.
        place = maths.minimum(place, stored.astype("uint64"))
    return maths.minimum(maths.maximum(place.astype("int64"), 0), stored)


def _biased(product: Tensor, bias: Tensor, operator: str) -> Tensor:
    rows, columns = extents(product)
    if bias.ndim == 1:
        (found,) = extents(bias)
        require_extent(found, columns, operator, "the bias", tensors=(bias,))
    else:
        require_rank(bias, 2, operator, "the bias")
        for found, wanted in zip(extents(bias), (rows, columns), strict=True):
            require_extent(found, wanted, operator, "the bias", tensors=(bias,))
    return add(product, bias)


def sample_sparse(
    draws: Draws, rows: int, depth: int, dtype: str
) -> tuple[Array, Array, Array]:
    """Return data, indices and indptr, sometimes with elements and rows that are out of range."""
    stored = draws.integer(0, 6)
    wild = 2 if draws.integer(0, 3) == 0 else 0
    kind = draws.choice(("int32", "int64"))
    indices = draws.integers((stored,), -wild, max(depth - 1, 0) + wild, kind)
    begins = draws.integers((rows - 1,), -wild, stored + wild, kind)
    if not wild:
        begins = np.sort(begins)
    ends = np.array([stored], kind)
    indptr = np.concatenate([np.zeros(1, kind), begins, ends])
    return draws.array((stored,), dtype), indices, indptr


def _sample_csrmm(draws: Draws) -> Sample:
    m = draws.extent()
    k = draws.extent(0)
    n = draws.extent()
    dtype = draws.number_dtype()
    trans_b = draws.flag()
    sparse = sample_sparse(draws, m, k, dtype)
    b = draws.array((n, k) if trans_b else (k, n), dtype)
    c = draws.choice((None, draws.array((n,), dtype), draws.array((m, n), dtype)))
    return Sample((*sparse, b, c), {"trans_b": trans_b})


@meaning_of(csrmm, pattern="opaque", sample=_sample_csrmm)
def csrmm_numpy(
    data: Array,
    indices: Array,
    indptr: Array,
    b: Array,
    c: Array | None = None,
    *,
    trans_b: bool = False,
) -> Array:
    values = widen(data)
    other = widen(b.T if trans_b else b)
    depth, columns = other.shape
    result = np.zeros((len(indptr) - 1, columns), other.dtype)
    for row in range(len(indptr) - 1):
        begin = max(int(indptr[row]), 0)
        end = min(int(indptr[row + 1]), len(data))
        for p in range(begin, end):
            if 0 <= indices[p] < depth:
                result[row] += values[p] * other[indices[p]]
    if c is not None:
        result = result + widen(c)
    return np.asarray(result, data.dtype)


def _sample_sparse_dense(draws: Draws) -> Sample:
    m = draws.extent()
    k = draws.extent(0)
    n = draws.extent()
    dtype = draws.number_dtype()
    sparse = sample_sparse(draws, n, k, dtype)
    bias = draws.choice((None, draws.array((n,), dtype), draws.array((m, n), dtype)))
    return Sample((draws.array((m, k), dtype), *sparse, bias))


@meaning_of(sparse_dense, pattern="opaque", sample=_sample_sparse_dense)
def sparse_dense_numpy(
    data: Array,
    weight_data: Array,
    weight_indices: Array,
    weight_indptr: Array,
    bias: Array | None = None,
) -> Array:
    wide = widen(weight_data)
    product = csrmm_numpy(
        wide, weight_indices, weight_indptr, widen(data), trans_b=True
    ).T
    if bias is not None:
        product = product + widen(bias)
    return np.asarray(product, data.dtype)
