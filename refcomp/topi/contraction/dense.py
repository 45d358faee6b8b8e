"""Products of matrices: gemm, with scaled and transposed operands, and matmul in batches.

Integers wrap on overflow. An empty sum is 0. A NaN in a row of a or in a column of b makes this row
or column of the product NaN. So does an infinity that is multiplied by 0.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import DType, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import reducer
from refcomp.te.extents import (
    Extent,
    broadcast_extents,
    extents,
    is_same,
    read_broadcast,
    require_extent,
    require_tensor,
)
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.broadcast.arithmetic import add, scale
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_one_dtype, require_rank, widen
from refcomp.topi.tags import REDUCTION

# A dtype -> a wider one of its kind, in which samples add up their products.
WIDER = {
    "int8": "int32",
    "uint8": "int32",
    "int16": "int32",
    "float16": "float32",
    "float32": "float64",
}


def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Tensor:
    """Return alpha * (a @ b) + beta * c.

    Args:
        a: [m, k], or [k, m] if it is transposed, of any numeric dtype.
        b: [k, n], or [n, k] if it is transposed, of the dtype of `a`.
        c: a tensor that broadcasts to [m, n], of the dtype of `a`; optional.
        alpha: the factor of the product, rounded to the dtype.
        beta: the factor of `c`, rounded to the dtype. If it is 0, `c` is not read, as in BLAS: a
            NaN of `c` does not propagate.
        trans_a: True if `a` is transposed.
        trans_b: True if `b` is transposed.

    Returns:
        A tensor [m, n] of the dtype of `a`.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: ONNX Gemm; J. Dongarra et al., "A Set of Level 3 Basic Linear Algebra Subprograms",
    ACM TOMS 16, 1990.

    Example::

        >>> A, B, C = (rc.placeholder((2, 2), name=name) for name in "ABC")
        >>> D = rc.topi.gemm(A, B, C, alpha=2.0, beta=0.5, trans_b=True)
        >>> x = np.array([[1, 2], [3, 4]], "float32")
        >>> print(*rc.oracle.evaluate([D], {A: x, B: x, C: x}))
        [[10.5 23. ]
         [23.5 52. ]]
        >>> print(2 * x @ x.T + 0.5 * x)
        [[10.5 23. ]
         [23.5 52. ]]
    """
    require_rank(a, 2, "gemm", "a")
    require_rank(b, 2, "gemm", "b")
    check_factors("gemm", a, b, c)
    rows, depth = reversed(extents(a)) if trans_a else extents(a)
    depth_b, columns = reversed(extents(b)) if trans_b else extents(b)
    require_extent(depth_b, depth, "gemm", "the reduced extent of b", tensors=(a, b))
    k = reduce_axis(depth, "k")

    def element(i: Expr, j: Expr) -> Expr:
        left = a[k, i] if trans_a else a[i, k]
        right = b[j, k] if trans_b else b[k, j]
        return reducer.sum(left * right, axis=k)

    product = compute((rows, columns), element, name="gemm", tag=REDUCTION)
    if alpha != 1:
        product = scale(product, alpha)
    if c is None or beta == 0:
        return product
    # Broadcasting may enlarge c, but must not enlarge the product.
    shape = broadcast_extents(
        extents(product), extents(c), "gemm", tensors=(product, c)
    )
    if len(shape) != 2 or not all(map(is_same, shape, (rows, columns))):
        raise UserError(
            "gemm cannot broadcast c to the shape of the product",
            remedy="give c an extent of 1, or the product's own, in each dimension",
        )
    return add(product, c if beta == 1 else scale(c, beta))


def _sample_gemm(draws: Draws) -> Sample:
    m = draws.extent()
    k = draws.extent(0)
    n = draws.extent()
    dtype = draws.number_dtype()
    trans_a = draws.flag()
    trans_b = draws.flag()
    a = draws.array((k, m) if trans_a else (m, k), dtype)
    b = draws.array((n, k) if trans_b else (k, n), dtype)
    c = draws.choice((None, draws.array((1, n), dtype), draws.array((m, n), dtype)))
    attributes = {
        "alpha": draws.choice((1.0, 2.0)),
        "beta": draws.choice((1.0, 2.0)),
        "trans_a": trans_a,
        "trans_b": trans_b,
    }
    return Sample((a, b, c), attributes)


@meaning_of(gemm, sample=_sample_gemm)
def gemm_numpy(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Array:
    left = widen(a.T if trans_a else a)
    right = widen(b.T if trans_b else b)
    kind = (
        left.dtype.type
    )  # with a factor of this type, a product of integers stays an integer
    product = left @ right * kind(alpha)
    if c is not None and beta != 0:
        product = product + widen(c) * kind(beta)
    return np.asarray(product, a.dtype)


def matmul(
    a: Tensor,
    b: Tensor,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the products of the matrices in the last two axes of a and b, which may be vectors.

        result[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]

    A vector `a` is a row, a vector `b` a column; the result lacks its axis. The product of two
    vectors has rank 0.

    Args:
        a: [..., i, k], or [..., k, i] if it is transposed, or [k]; of any numeric dtype.
        b: [..., k, j], or [..., j, k] if it is transposed, or [k]; of the dtype of `a`. The leading
            extents of a and b broadcast.
        trans_a: True if the last two axes of `a` are exchanged. A vector is not transposed.
        trans_b: the same of `b`.
        out_dtype: a wider dtype of the same kind, in which products are made and added up, such as
            int32 for int8. By default the dtype of `a`.

    Returns:
        A tensor [..., i, j] of `out_dtype`.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: numpy.matmul; ONNX MatMul.

    Example::

        >>> A, B = rc.placeholder((2, 3), name="A"), rc.placeholder((3, 2), name="B")
        >>> C = rc.topi.matmul(A, B)
        >>> a, b = np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2)
        >>> print(*rc.oracle.evaluate([C], {A: a.astype("float32"), B: b.astype("float32")}))
        [[10. 13.]
         [28. 40.]]
    """
    return multiply_matrices(
        a, b, "matmul", trans_a=trans_a, trans_b=trans_b, out_dtype=out_dtype
    )


def multiply_matrices(
    a: Tensor,
    b: Tensor,
    name: str,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the products of matrices, as `matmul` does, by a compute of this name."""
    require_tensor(a, name)
    require_tensor(b, name)
    if not a.ndim or not b.ndim:
        raise UserError(
            f"{name} cannot multiply a tensor of rank 0",
            remedy="multiply by a scalar with rc.topi.multiply",
        )
    check_factors(name, a, b)
    result = wider_dtype(a.dtype, out_dtype, name)
    batch_a, rows, depth = _matrix_extents(a, trans_a)
    batch_b, columns, depth_b = _matrix_extents(b, not trans_b)
    require_extent(depth_b, depth, name, "the reduced extent of b", tensors=(a, b))
    batch = broadcast_extents(batch_a, batch_b, name, tensors=(a, b))
    k = reduce_axis(depth, "k")

    def element(*index: Expr) -> Expr:
        outer = index[: len(batch)]
        inner = index[len(batch) :]
        left = (*outer, *_matrix_index(inner[: len(rows)], k.var, trans_a))
        right = (*outer, *_matrix_index(inner[len(rows) :], k.var, not trans_b))
        x = read_broadcast(a, left).astype(result)
        y = read_broadcast(b, right).astype(result)
        return reducer.sum(x * y, axis=k)

    return compute((*batch, *rows, *columns), element, name=name, tag=REDUCTION)


def _matrix_extents(
    tensor: Tensor, is_depth_first: bool
) -> tuple[tuple[Extent, ...], tuple[Extent, ...], Extent]:
    """Return the extents of the batch, of the axis that is kept, and of the reduced axis."""
    sizes = extents(tensor)
    if tensor.ndim == 1:
        return (), (), sizes[0]
    *batch, first, second = sizes
    if is_depth_first:
        return tuple(batch), (second,), first
    return tuple(batch), (first,), second


def _matrix_index(
    kept: tuple[Expr, ...], reduced: Expr, is_depth_first: bool
) -> tuple[Expr, ...]:
    """Return an index of the last two axes, or of the only axis if `kept` is empty."""
    return (reduced, *kept) if is_depth_first else (*kept, reduced)


def wider_dtype(dtype: DType, out_dtype: DTypeLike | None, operator: str) -> DType:
    """Return the dtype in which products of `dtype` are added up.

    Raises:
        UserError: `out_dtype` is neither `dtype` nor a wider dtype of the same kind: float or int.
    """
    if out_dtype is None:
        return dtype
    found = as_dtype(out_dtype)
    is_wider = found.bits > dtype.bits and not found.is_bool
    if found != dtype and not (is_wider and found.is_float == dtype.is_float):
        raise UserError(
            f"{operator} cannot add up products of {dtype} in {found}",
            remedy=f"give {dtype}, or a wider dtype of its kind, such as int32 for int8",
        )
    return found


def _sample_matmul(draws: Draws) -> Sample:
    i = draws.extent(0)
    k = draws.extent(0)
    j = draws.extent()
    outer = draws.shape(0, 2)
    dtype = draws.number_dtype()
    trans_a = draws.flag()
    trans_b = draws.flag()
    left = (k, i) if trans_a else (i, k)
    right = (j, k) if trans_b else (k, j)
    first = draws.choice((outer, outer[1:]))
    shape_a = draws.choice(((*first, *left), (*first, *left), (k,)))
    shape_b = draws.choice(((*outer, *right), (*outer, *right), (k,)))
    attributes: dict[str, object] = {"trans_a": trans_a, "trans_b": trans_b}
    if dtype in WIDER and draws.flag():
        attributes["out_dtype"] = WIDER[dtype]
    operands = (draws.array(shape_a, dtype), draws.array(shape_b, dtype))
    return Sample(operands, attributes)


@meaning_of(matmul, sample=_sample_matmul)
def matmul_numpy(
    a: Array,
    b: Array,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    out_dtype: DTypeLike | None = None,
) -> Array:
    result = to_numpy(as_dtype(out_dtype or a.dtype))
    left = widen(a.astype(result))
    right = widen(b.astype(result))
    if trans_a and a.ndim > 1:
        left = left.swapaxes(-1, -2)
    if trans_b and b.ndim > 1:
        right = right.swapaxes(-1, -2)
    return np.asarray(np.matmul(left, right), result)


def check_factors(operator: str, a: Tensor, *others: Tensor | None) -> None:
    """Raise UserError unless the operands have one dtype, which is not bool."""
    require_one_dtype(operator, a, *others)
    if a.dtype.is_bool:
        raise UserError(
            f"{operator} cannot multiply bool tensors",
            remedy="convert them by a compute: x[i, j].astype(dtype)",
        )
