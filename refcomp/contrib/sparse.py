"""Sparse matrices in compressed rows (CSR): arrays, placeholders, and products of both.

A program takes a sparse matrix as three arguments: the stored elements, the column of each, and
where each row begins. `placeholder` declares them together, and `array` makes arrays for them. The
products are operators of topi on these tensors. In graphs, `rc.graph.gradient` differentiates them
by the stored elements, the dense factor and the bias.

Example::

    >>> from refcomp.contrib import sparse
    >>> A = sparse.placeholder((rc.var("m"), 3), name="A")
    >>> B = rc.placeholder((3, 2), name="B")
    >>> C = sparse.csrmm(A, B)
    >>> s = rc.create_schedule(C.op)
    >>> f = rc.build(s, [A.data, A.indices, A.indptr, B, C], "interp")
    >>> a = sparse.array(np.array([[0, 2, 0], [1, 0, 3]], "float32"))
    >>> c = rc.array(np.zeros((2, 2), "float32"))
    >>> f(a.data, a.indices, a.indptr, rc.array(np.ones((3, 2), "float32")), c)
    >>> print(c.asnumpy())
    [[2. 2.]
     [4. 4.]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.ir.expr import Expr
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.arrays.ndarray import array as dense_array
from refcomp.runtime.device import Device
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.operation import placeholder as dense_placeholder
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, ExprLike, Tensor, as_shape, var
from refcomp.topi.contraction.csr import csrmm as product_of_parts
from refcomp.topi.contraction.csr import sparse_dense
from refcomp.topi.shapes import Array, require_rank

__all__ = [
    "CSRNDArray",
    "CSRPlaceholder",
    "array",
    "csrmm",
    "csrmv",
    "dense",
    "placeholder",
]

# The dtype of columns and of beginnings of rows, as in the classic API.
_INDEX = "int32"


@dataclass(frozen=True, slots=True, eq=False)
class CSRNDArray:
    """A sparse matrix in compressed rows on a device. `array` makes it.

    Attributes:
        data: NDArray [z], the stored elements row by row.
        indices: NDArray [z] of i32, the column of each stored element.
        indptr: NDArray [m + 1] of i32, where each row begins in `data` and `indices`; at last z.
        shape: the numbers of rows and columns.

    Source: TVM, contrib.sparse.CSRNDArray.

    Example::

        >>> a = rc.contrib.sparse.array(np.array([[0, 5], [6, 7]], "float32"))
        >>> print(a.data.asnumpy(), a.indices.asnumpy(), a.indptr.asnumpy())
        [5. 6. 7.] [1 0 1] [0 1 3]
        >>> a.shape, a.dtype, a.stype, str(a.device), a.ctx == a.device
        ((2, 2), 'float32', 'csr', 'cpu:0', True)
        >>> a.asnumpy().tolist()
        [[0.0, 5.0], [6.0, 7.0]]
    """

    data: NDArray
    indices: NDArray
    indptr: NDArray
    shape: tuple[int, int]

    @property
    def dtype(self) -> str:
        """Return the name of the dtype of the elements."""
        return self.data.dtype

    @property
    def stype(self) -> Literal["csr"]:
        """Return the kind of storage."""
        return "csr"

    @property
    def device(self) -> Device:
        """Return the device that has the arrays."""
        return self.data.device

    @property
    def ctx(self) -> Device:
        """Return `device`, under its classic name."""
        return self.data.device

    def asnumpy(self) -> Array:
        """Return the dense matrix. Several stored elements at one place add up."""
        data = self.data.asnumpy()
        dense = np.zeros(self.shape, data.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr.asnumpy()))
        np.add.at(dense, (rows, self.indices.asnumpy()), data)
        return dense

    def __repr__(self) -> str:
        stored = self.data.shape[0]
        return (
            f"CSRNDArray(shape={self.shape}, dtype={self.dtype}, "
            f"stored={stored}, device={self.device})"
        )


def array(
    source: object,
    device: Device | None = None,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> CSRNDArray:
    """Return a sparse matrix on a device.

    Args:
        source: a dense matrix, whose elements other than 0 are stored. Or a tuple (data, indices,
            indptr): the stored elements, their columns, and where each row begins. A matrix or part
            is a numpy array, an NDArray or a list. Or a CSRNDArray, which is copied.
        device: the device; None is the host.
        shape: the numbers of rows and columns. A tuple needs it. For another source it must be the
            shape of the source, and can be left out.
        dtype: the dtype of the elements; None is that of the source.

    Raises:
        UserError: the source is not a matrix or such a tuple, a column is out of range, `indptr`
            descends, or the shape does not fit.

    Source: TVM, contrib.sparse.array.

    Example::

        >>> parts = ([5.0, 6.0, 7.0], [1, 0, 1], [0, 1, 3])
        >>> a = rc.contrib.sparse.array(parts, shape=(2, 3), dtype="float32")
        >>> a, a.asnumpy().tolist()
        (CSRNDArray(shape=(2, 3), dtype=float32, stored=3, device=cpu:0), [[0.0, 5.0, 0.0], ...])
        >>> rc.contrib.sparse.array(([5.0], [3], [0, 1, 1]), shape=(2, 3))
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: the parts are not a sparse matrix: an element is in ...
    """
    wanted = None if shape is None else _matrix_shape(shape)
    if isinstance(source, CSRNDArray):
        parts = (source.data, source.indices, source.indptr)
        found, size = tuple(map(_as_numpy, parts)), source.shape
    elif isinstance(source, tuple):
        if len(source) != 3 or wanted is None:
            raise UserError(
                "this tuple does not describe a sparse matrix",
                why="a tuple has three parts, and does not say how many columns there are",
                remedy="pass (data, indices, indptr), and shape=(rows, columns)",
            )
        found, size = tuple(map(_as_numpy, source)), wanted
        _check_parts(found, size)
    else:
        matrix = _as_numpy(source)
        if matrix.ndim != 2:
            raise UserError(
                f"a sparse matrix cannot be made of {matrix.ndim} dimensions",
                remedy="pass a matrix, or (data, indices, indptr) and its shape",
            )
        found, size = _compressed(matrix), (matrix.shape[0], matrix.shape[1])
    if wanted not in (None, size):
        raise UserError(
            f"a matrix of shape {size} is given with shape={wanted}",
            remedy="leave the shape out",
        )
    data, indices, indptr = found
    return CSRNDArray(
        dense_array(data, device, dtype),
        dense_array(indices, device, _INDEX),
        dense_array(indptr, device, _INDEX),
        size,
    )


def _as_numpy(source: object) -> Array:
    return (
        source.asnumpy()
        if isinstance(source, NDArray)
        else dense_array(source).asnumpy()
    )


def _matrix_shape(shape: object) -> tuple[int, int]:
    given = tuple(shape) if isinstance(shape, tuple | list) else ()
    is_valid = all(isinstance(n, int | np.integer) and 0 <= n < 2**31 for n in given)
    if len(given) != 2 or not is_valid:
        raise UserError(
            f"{shape!r} is not the shape of a sparse matrix",
            remedy="pass (rows, columns), ints of at least 0 that i32 holds",
        )
    return int(given[0]), int(given[1])


def _compressed(matrix: Array) -> tuple[Array, ...]:
    """Return data, indices and indptr of a dense matrix."""
    is_stored = matrix != 0
    counts = np.count_nonzero(is_stored, axis=1)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return matrix[is_stored], np.nonzero(is_stored)[1], indptr


def _check_parts(parts: tuple[Array, ...], shape: tuple[int, int]) -> None:
    """Raise UserError unless data, indices and indptr are a matrix of this shape."""
    data, indices, indptr = parts
    rows, columns = shape

    def refuse(what: str, remedy: str) -> None:
        raise UserError(f"the parts are not a sparse matrix: {what}", remedy=remedy)

    if any(part.ndim != 1 for part in parts) or data.shape != indices.shape:
        shapes = ", ".join(str(part.shape) for part in parts)
        refuse(
            f"their shapes are {shapes}",
            "pass data and indices of equal lengths, and indptr, all of one dimension",
        )
    kinds = {part.dtype.kind for part in (indices, indptr) if part.size}
    if not kinds <= {"i", "u"}:
        refuse(
            f"indices are of {indices.dtype}, and indptr of {indptr.dtype}",
            "pass integers",
        )
    if indptr.size != rows + 1:
        refuse(
            f"indptr has {indptr.size} elements, and there are {rows} rows",
            f"pass {rows + 1} elements: where each row begins, and where the last one ends",
        )
    steps = np.diff(indptr.astype(np.int64))
    if indptr[0] != 0 or indptr[-1] != data.size or (steps < 0).any():
        refuse(
            f"indptr is {indptr.tolist()}, and {data.size} elements are stored",
            f"let indptr begin with 0, never descend, and end with {data.size}",
        )
    wrong = indices[(indices < 0) | (indices >= columns)]
    if wrong.size:
        refuse(
            f"an element is in column {wrong[0]}, and there are {columns} columns",
            f"pass columns from 0 to {columns - 1}" if columns else "pass no elements",
        )


@dataclass(frozen=True, slots=True, eq=False)
class CSRPlaceholder:
    """A sparse matrix that the caller of the compiled function provides. `placeholder` makes it.

    Attributes:
        name: the beginning of the names of the tensors.
        shape: the numbers of rows and columns, i64 expressions.
        data: placeholder [z] of the stored elements, row by row.
        indices: placeholder [z] of i32, the column of each stored element.
        indptr: placeholder [m + 1] of i32, where each row begins in `data` and `indices`; the last
            element is z.

    Source: TVM, contrib.sparse.CSRPlaceholderOp.

    Example::

        >>> A = rc.contrib.sparse.placeholder((4, 3), nonzeros=5, name="A")
        >>> A, A.data, A.indices.name, A.indptr.shape
        (CSRPlaceholder(A: f32, rank 2), Tensor(A_data: f32, rank 1), 'A_indices', (5,))
        >>> A.shape, str(A.dtype), A.stype
        ((4, 3), 'f32', 'csr')
    """

    name: str
    shape: tuple[Expr, ...]
    data: Tensor
    indices: Tensor
    indptr: Tensor

    @property
    def dtype(self) -> DType:
        """Return the dtype of the elements."""
        return self.data.dtype

    @property
    def stype(self) -> Literal["csr"]:
        """Return the kind of storage."""
        return "csr"

    def __repr__(self) -> str:
        return f"CSRPlaceholder({self.name}: {self.dtype}, rank 2)"


def placeholder(
    shape: Sequence[ExprLike],
    nonzeros: ExprLike | None = None,
    dtype: DTypeLike = "float32",
    name: str = "placeholder",
    stype: str = "csr",
) -> CSRPlaceholder:
    """Return a sparse matrix that the caller of the compiled function provides.

    Its three tensors are arguments of the function: `A.data`, `A.indices` and `A.indptr`.

    Args:
        shape: the numbers of rows and columns: ints of at least 0, int64 variables, expressions.
        nonzeros: the number of stored elements; None for a variable of its own, so that any number
            can be passed.
        dtype: the dtype of the elements.
        name: the beginning of the names of the arguments.
        stype: `"csr"`, the only kind of storage.

    Raises:
        UserError: the shape does not have two extents, the kind of storage is another one, or a
            part is refused by `refcomp.placeholder`.

    Source: TVM, contrib.sparse.placeholder, where `nonzeros` is 0 by default.

    Example::

        >>> m = rc.var("m")
        >>> A = rc.contrib.sparse.placeholder((m, 8), name="A")
        >>> A.data.shape, A.indices.shape, A.indptr.shape
        ((A_nonzeros,), (A_nonzeros,), (m + 1,))
    """
    checked_name(name, "a tensor")
    extents_given = as_shape(shape)
    if len(extents_given) != 2:
        raise UserError(
            f"sparse matrix {name} is declared with {len(extents_given)} dimensions",
            remedy="pass (rows, columns)",
        )
    if stype != "csr":
        raise UserError(
            f"sparse matrix {name} cannot be stored as {stype!r}",
            remedy='use "csr", compressed rows; dense matrices are declared by refcomp.placeholder',
        )
    stored = var(f"{name}_nonzeros") if nonzeros is None else nonzeros
    rows = extents_given[0]
    return CSRPlaceholder(
        name,
        extents_given,
        dense_placeholder((stored,), dtype, f"{name}_data"),
        dense_placeholder((stored,), _INDEX, f"{name}_indices"),
        dense_placeholder((rows + 1,), _INDEX, f"{name}_indptr"),
    )


def _require_sparse(value: object, function: str) -> CSRPlaceholder:
    if isinstance(value, CSRPlaceholder):
        return value
    raise UserError(
        f"{function} is applied to a {type(value).__name__}, not to a sparse matrix",
        remedy="declare it by refcomp.contrib.sparse.placeholder",
    )


def csrmm(a: CSRPlaceholder, b: Tensor, c: Tensor | None = None) -> Tensor:
    """Return a @ b + c for a sparse matrix `a`.

    Args:
        a: [m, k], by `placeholder`.
        b: [k, n], of the dtype of `a`.
        c: [n] or [m, n], of the dtype of `a`; optional.

    Returns:
        A tensor [m, n].

    Raises:
        UserError: `a` is not sparse, or a rank, extent or dtype does not fit.

    Source: TVM, topi.sparse.csrmm. `refcomp.topi.csrmm` says how elements are added.

    Example::

        >>> A = rc.contrib.sparse.placeholder((4, 3), name="A")
        >>> rc.contrib.sparse.csrmm(A, rc.placeholder((3, 2), name="B")).shape
        (4, 2)
    """
    sparse = _require_sparse(a, "csrmm")
    require_rank(b, 2, "csrmm", "b")
    _check_depth(sparse, b, 0, "csrmm")
    return product_of_parts(sparse.data, sparse.indices, sparse.indptr, b, c)


def csrmv(a: CSRPlaceholder, x: Tensor, y: Tensor | None = None) -> Tensor:
    """Return a @ x + y for a sparse matrix `a` and a vector or column `x`.

    Args:
        a: [m, k], by `placeholder`.
        x: [k], or [k, 1] as in the classic API, of the dtype of `a`.
        y: [m], of the dtype of `a`; optional.

    Returns:
        A tensor [m], or [m, 1] for a column.

    Raises:
        UserError: `a` is not sparse, or a rank, extent or dtype does not fit.

    Source: TVM, topi.sparse.csrmv.

    Example::

        >>> A = rc.contrib.sparse.placeholder((4, 3), name="A")
        >>> rc.contrib.sparse.csrmv(A, rc.placeholder((3,), name="x")).shape
        (4,)
        >>> rc.contrib.sparse.csrmv(A, rc.placeholder((3, 1), name="x")).shape
        (4, 1)
    """
    sparse = _require_sparse(a, "csrmv")
    require_tensor(x, "csrmv")
    is_vector = x.ndim == 1
    column = _as_column(x) if is_vector else x
    require_rank(column, 2, "csrmv", "x")
    _check_depth(sparse, column, 0, "csrmv")
    require_extent(extents(column)[1], 1, "csrmv", "the columns of x", tensors=(x,))
    added = None
    if y is not None:
        require_rank(y, 1, "csrmv", "y")
        added = _as_column(y)
    parts = (sparse.data, sparse.indices, sparse.indptr)
    product = product_of_parts(*parts, column, added)
    if not is_vector:
        return product
    return compute(
        product.shape[:1], lambda i: product[i, 0], name="csrmv", tag=INJECTIVE
    )


def _as_column(vector: Tensor) -> Tensor:
    shape = (vector.shape[0], 1)
    return compute(shape, lambda i, _: vector[i], name="column", tag=INJECTIVE)


def dense(
    data: CSRPlaceholder | Tensor,
    weight: CSRPlaceholder | Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """Return data @ weight.T + bias, where one of the matrices is sparse.

    Args:
        data: [m, k].
        weight: [n, k], of the dtype of `data`.
        bias: [n], of the dtype of `data`; optional.

    Returns:
        A tensor [m, n].

    Raises:
        UserError: both or none of the matrices are sparse, or a rank, extent or dtype does not fit.

    Source: TVM, topi.sparse.dense.

    Example::

        >>> W = rc.contrib.sparse.placeholder((5, 3), name="W")
        >>> rc.contrib.sparse.dense(rc.placeholder((2, 3), name="X"), W).shape
        (2, 5)
    """
    if isinstance(data, CSRPlaceholder):
        if isinstance(weight, CSRPlaceholder):
            raise UserError(
                "dense is applied to two sparse matrices",
                remedy="declare one by refcomp.placeholder",
            )
        require_rank(weight, 2, "dense", "the weight")
        _check_depth(data, weight, 1, "dense")
        parts = (data.data, data.indices, data.indptr)
        return product_of_parts(*parts, weight, bias, trans_b=True)
    if isinstance(weight, CSRPlaceholder):
        require_rank(data, 2, "dense", "data")
        _check_depth(weight, data, 1, "dense")
        return sparse_dense(data, weight.data, weight.indices, weight.indptr, bias)
    raise UserError(
        "dense of contrib.sparse is not applied to a sparse matrix",
        remedy="declare one by refcomp.contrib.sparse.placeholder, or use refcomp.topi.dense",
    )


def _check_depth(sparse: CSRPlaceholder, other: Tensor, axis: int, name: str) -> None:
    """Raise UserError unless `other` has as many elements along `axis` as `sparse` has columns."""
    columns = sparse.shape[1]
    require_extent(
        other.shape[axis],
        columns,
        name,
        f"extent {axis} of {other.name}",
        tensors=(other, sparse.data),
    )
