"""Products of which the gradients of sparse products consist: csrmm_transposed, csr_sampled_matmul.

A sparse matrix is given by the tensors of `refcomp.topi.contraction.csr`, and what these leave out
is left out here, too. A stored element that several rows have counts in each of them. So the
gradients of `csrmm` and `sparse_dense` are exact for all numbers in these tensors.

Each result is added up by one thread, in the order of the rows.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir import builder
from refcomp.ir.promotion import const
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent
from refcomp.te.externs import extern
from refcomp.te.tensor import Tensor
from refcomp.topi.contraction.csr import (
    checked_structure,
    cut,
    sample_sparse,
)
from refcomp.topi.conversion.casts import cast
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import accumulator_of
from refcomp.topi.shapes import (
    Array,
    require_number,
    require_one_dtype,
    require_rank,
    widen,
)

# Parts of the stored elements that threads compute, each in one pass over the rows.
_PARTS = 64


def csrmm_transposed(
    data: Tensor, indices: Tensor, indptr: Tensor, b: Tensor, *, columns: int
) -> Tensor:
    """Return a.T @ b, where a is a sparse matrix [m, columns] in compressed rows.

    Sums of f16 and bf16 are added in f32. What is left out is as in `csrmm`.

    Args:
        data: [z], the stored elements of a, row by row; numbers.
        indices: [z] of integers, the column of each stored element.
        indptr: [m + 1] of integers, where each row begins.
        b: [m, n], of the dtype of `data`.
        columns: the number of columns of a, at least 0.

    Returns:
        A tensor [columns, n] of the dtype of `data`.

    Raises:
        UserError: a rank, extent or dtype does not fit, or `columns` is not such an int.

    Reference: SciPy, csr_matrix.T.

    Example::

        >>> D, I = rc.placeholder((3,), name="D"), rc.placeholder((3,), "int32", name="I")
        >>> P, B = rc.placeholder((3,), "int32", name="P"), rc.placeholder((2, 2), name="B")
        >>> C = rc.topi.csrmm_transposed(D, I, P, B, columns=2)
        >>> feeds = {D: np.array([5, 6, 7], "float32"), B: np.eye(2, dtype="float32")}
        >>> feeds |= {I: np.array([1, 0, 1], "int32"), P: np.array([0, 1, 3], "int32")}
        >>> print(*rc.oracle.evaluate([C], feeds))
        [[0. 6.]
         [5. 7.]]
    """
    operator = "csrmm_transposed"
    if not isinstance(columns, int) or isinstance(columns, bool) or columns < 0:
        raise UserError(
            f"{operator}: columns is {columns!r}", remedy="pass an int of at least 0"
        )
    sparse = checked_structure(indices, indptr, operator)
    require_rank(data, 1, operator, "the tensor of stored elements")
    require_number(data, operator)
    what = "the number of stored elements"
    (found,) = extents(data)
    require_extent(found, sparse.stored, operator, what, tensors=(data, indices))
    require_rank(b, 2, operator, "b")
    require_one_dtype(operator, data, b)
    rows, width = extents(b)
    require_extent(rows, sparse.rows, operator, "the rows of b", tensors=(b, indptr))
    wide = _wide(data.dtype)

    def statement(ins: list[BufferView], outs: list[BufferView]) -> Stmt:
        ib = builder.create()
        elements, places, begins, other = map(ib.buffer_ptr, ins)
        result = ib.buffer_ptr(outs[0])
        stored = ins[0].shape[0]
        with ib.for_range(0, width, name="column", for_type="parallel") as column:
            with ib.for_range(0, columns, name="zeroed") as zeroed:
                result[zeroed, column] = const(0, wide)
            with ib.for_range(0, sparse.rows, name="row") as row:
                begin = ib.let("begin", cut(begins[row], stored))
                end = ib.let("end", cut(begins[row + 1], stored))
                with ib.for_range(begin, maths.maximum(begin, end), name="p") as p:
                    k = ib.let("k", places[p].astype("int64"))
                    with ib.if_scope(maths.all(k >= 0, k < columns)):
                        term = elements[p].astype(wide) * other[row, column].astype(
                            wide
                        )
                        result[k, column] = result[k, column] + term
        return ib.get()

    inputs = [data, indices, indptr, b]
    made: Tensor = extern(
        (columns, width), inputs, statement, name="csr_columns", dtype=wide
    )
    return made if wide == data.dtype else cast(made, dtype=str(data.dtype))


def csr_sampled_matmul(indices: Tensor, indptr: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return the elements of a @ b.T at the places of a sparse matrix in compressed rows.

    Sums of f16 and bf16 are added in f32. An element that is left out, as in `csrmm`, is 0.

    Args:
        indices: [z] of integers, the column of each stored element.
        indptr: [m + 1] of integers, where each row begins.
        a: [m, n] of numbers.
        b: [k, n], of the dtype of `a`.

    Returns:
        A tensor [z] of the dtype of `a`.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: PyTorch, torch.sparse.sampled_addmm.

    Example::

        >>> I, P = rc.placeholder((3,), "int32", name="I"), rc.placeholder((3,), "int32", name="P")
        >>> A, B = rc.placeholder((2, 1), name="A"), rc.placeholder((2, 1), name="B")
        >>> C = rc.topi.csr_sampled_matmul(I, P, A, B)
        >>> feeds = {A: np.array([[1], [2]], "float32"), B: np.array([[10], [100]], "float32")}
        >>> feeds |= {I: np.array([1, 0, 1], "int32"), P: np.array([0, 1, 3], "int32")}
        >>> print(*rc.oracle.evaluate([C], feeds))
        [100.  20. 200.]
    """
    operator = "csr_sampled_matmul"
    sparse = checked_structure(indices, indptr, operator)
    require_rank(a, 2, operator, "a")
    require_rank(b, 2, operator, "b")
    require_number(a, operator)
    require_one_dtype(operator, a, b)
    rows, depth = extents(a)
    columns, found = extents(b)
    require_extent(rows, sparse.rows, operator, "the rows of a", tensors=(a, indptr))
    require_extent(found, depth, operator, "the columns of b", tensors=(b, a))
    wide = _wide(a.dtype)

    def statement(ins: list[BufferView], outs: list[BufferView]) -> Stmt:
        ib = builder.create()
        places, begins, left, right = map(ib.buffer_ptr, ins)
        result = ib.buffer_ptr(outs[0])
        stored = ins[0].shape[0]
        size = (stored + (_PARTS - 1)) // _PARTS
        with ib.for_range(0, _PARTS, name="part", for_type="parallel") as part:
            first = ib.let("first", maths.minimum(part * size, stored))
            last = ib.let("last", maths.minimum(first + size, stored))
            with ib.for_range(first, last, name="zeroed") as zeroed:
                result[zeroed] = const(0, wide)
            with ib.for_range(0, sparse.rows, name="row") as row:
                begin = ib.let("begin", maths.maximum(cut(begins[row], stored), first))
                end = ib.let("end", maths.minimum(cut(begins[row + 1], stored), last))
                with ib.for_range(begin, maths.maximum(begin, end), name="p") as p:
                    k = ib.let("k", places[p].astype("int64"))
                    is_place = ib.if_scope(maths.all(k >= 0, k < columns))
                    with is_place, ib.for_range(0, depth, name="j") as j:
                        term = left[row, j].astype(wide) * right[k, j].astype(wide)
                        result[p] = result[p] + term
        return ib.get()

    inputs = [indices, indptr, a, b]
    made: Tensor = extern(
        (sparse.stored,), inputs, statement, name="csr_samples", dtype=wide
    )
    return made if wide == a.dtype else cast(made, dtype=str(a.dtype))


def _wide(dtype: DType) -> DType:
    return accumulator_of(dtype) if dtype.is_float else dtype


def _sample_transposed(draws: Draws) -> Sample:
    m = draws.extent()
    columns = draws.extent(0)
    dtype = draws.number_dtype()
    sparse = sample_sparse(draws, m, columns, dtype)
    b = draws.array((m, draws.extent()), dtype)
    return Sample((*sparse, b), {"columns": columns})


@meaning_of(csrmm_transposed, pattern="opaque", sample=_sample_transposed)
def csrmm_transposed_numpy(
    data: Array, indices: Array, indptr: Array, b: Array, *, columns: int
) -> Array:
    values = widen(data)
    other = widen(b)
    result = np.zeros((columns, other.shape[1]), other.dtype)
    for row, p in _stored(indices, indptr, columns):
        result[indices[p]] += values[p] * other[row]
    return np.asarray(result, data.dtype)


def _sample_sampled(draws: Draws) -> Sample:
    m = draws.extent()
    columns = draws.extent(0)
    depth = draws.extent(0)
    dtype = draws.number_dtype()
    _, indices, indptr = sample_sparse(draws, m, columns, dtype)
    a = draws.array((m, depth), dtype)
    return Sample((indices, indptr, a, draws.array((columns, depth), dtype)))


@meaning_of(csr_sampled_matmul, pattern="opaque", sample=_sample_sampled)
def csr_sampled_matmul_numpy(
    indices: Array, indptr: Array, a: Array, b: Array
) -> Array:
    left = widen(a)
    right = widen(b)
    result = np.zeros(len(indices), left.dtype)
    for row, p in _stored(indices, indptr, len(b)):
        result[p] += np.sum(left[row] * right[indices[p]])
    return np.asarray(result, a.dtype)


def _stored(indices: Array, indptr: Array, columns: int) -> list[tuple[int, int]]:
    """Return the row and the place of each element that is not left out."""
    return [
        (row, p)
        for row in range(len(indptr) - 1)
        for p in range(
            max(int(indptr[row]), 0), min(int(indptr[row + 1]), len(indices))
        )
        if 0 <= indices[p] < columns
    ]
