"""Products of matrices: gemm, with scaled and transposed operands, and matmul in batches.

Integers wrap on overflow. An empty sum is 0. A NaN in a row of a or in a column of b makes this row
or column of the product NaN. So does an infinity that is multiplied by 0.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.broadcast.arithmetic import add, scale
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.elements import read_broadcast
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    broadcast_extents,
    extents,
    is_same,
    require_extent,
    require_one_dtype,
    require_rank,
    require_tensor,
    widen,
)
from refcomp.topi.tags import REDUCTION


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
    _check_dtypes("gemm", a, b, c)
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


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return the products of the matrices in the last two axes of a and b. Vectors are refused.

    Args:
        a: [..., i, k], of any numeric dtype.
        b: [..., k, j], of the dtype of `a`. The leading extents of a and b broadcast.

    Returns:
        A tensor [..., i, j] of the dtype of `a`.

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
    require_tensor(a, "matmul")
    require_tensor(b, "matmul")
    if a.ndim < 2 or b.ndim < 2:
        raise UserError(
            "matmul cannot multiply a tensor of fewer than two dimensions",
            remedy="reshape it to a matrix first",
        )
    _check_dtypes("matmul", a, b)
    *batch_a, rows, depth = extents(a)
    *batch_b, depth_b, columns = extents(b)
    require_extent(depth_b, depth, "matmul", "the reduced extent of b", tensors=(a, b))
    batch = broadcast_extents(batch_a, batch_b, "matmul", tensors=(a, b))
    k = reduce_axis(depth, "k")

    def element(*index: Expr) -> Expr:
        *outer, i, j = index
        left = read_broadcast(a, (*outer, i, k.var))
        right = read_broadcast(b, (*outer, k.var, j))
        return reducer.sum(left * right, axis=k)

    return compute((*batch, rows, columns), element, name="matmul", tag=REDUCTION)


def _sample_matmul(draws: Draws) -> Sample:
    i = draws.extent(0)
    k = draws.extent(0)
    j = draws.extent()
    outer = draws.shape(0, 2)
    dtype = draws.number_dtype()
    first = draws.choice((outer, outer[1:]))
    a = draws.array((*first, i, k), dtype)
    b = draws.array((*outer, k, j), dtype)
    return Sample((a, b))


@meaning_of(matmul, sample=_sample_matmul)
def matmul_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.matmul(widen(a), widen(b)), a.dtype)


def _check_dtypes(operator: str, a: Tensor, *others: Tensor | None) -> None:
    require_one_dtype(operator, a, *others)
    if a.dtype.is_bool:
        raise UserError(
            f"{operator} cannot multiply bool tensors",
            remedy="convert them by a compute: x[i, j].astype(dtype)",
        )
