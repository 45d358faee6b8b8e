"""Products of matrices: gemm, with scaled and transposed operands, and matmul in batches."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.broadcast import add, read_broadcast, scale
from refcomp.topi.shapes import (
    Array,
    broadcast_extents,
    extents,
    is_same,
    require_extent,
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
    """alpha * a @ b + beta * c, a and b transposed on request, c broadcast to the product."""
    require_rank(a, 2, "gemm", "a")
    require_rank(b, 2, "gemm", "b")
    _require_one_dtype("gemm", a, b, c)
    rows, depth = extents(a)[::-1] if trans_a else extents(a)
    depth_b, columns = extents(b)[::-1] if trans_b else extents(b)
    require_extent(depth_b, depth, "gemm", "the reduced extent of b")
    k = reduce_axis(depth, "k")

    def element(i: Expr, j: Expr) -> Expr:
        left = a[k, i] if trans_a else a[i, k]
        return reducer.sum(left * (b[j, k] if trans_b else b[k, j]), axis=k)

    product: Tensor = compute((rows, columns), element, name="gemm", tag=REDUCTION)
    if alpha != 1:
        product = scale(product, alpha)
    if c is None or beta == 0:
        return product
    shape = broadcast_extents(extents(product), extents(c), "gemm")
    if len(shape) != 2 or not all(map(is_same, shape, (rows, columns))):
        raise UserError("gemm: c does not broadcast to the shape of the product")
    return add(product, c if beta == 1 else scale(c, beta))


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
    kind = left.dtype.type
    product = left @ right * kind(alpha)
    if c is not None and beta != 0:
        product = product + widen(c) * kind(beta)
    return np.asarray(product).astype(a.dtype)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """a [..., i, k] @ b [..., k, j] -> [..., i, j]; the leading extents broadcast."""
    require_tensor(a, "matmul")
    require_tensor(b, "matmul")
    if a.ndim < 2 or b.ndim < 2:
        raise UserError(
            "matmul: an operand has fewer than two dimensions",
            remedy="reshape it to a matrix first",
        )
    _require_one_dtype("matmul", a, b, None)
    require_extent(extents(b)[-2], extents(a)[-1], "matmul", "the reduced extent of b")
    batch = broadcast_extents(extents(a)[:-2], extents(b)[:-2], "matmul")
    k = reduce_axis(extents(a)[-1], "k")

    def element(*index: Expr) -> Expr:
        *outer, i, j = index
        left = read_broadcast(a, (*outer, i, k.var))
        return reducer.sum(left * read_broadcast(b, (*outer, k.var, j)), axis=k)

    shape = (*batch, extents(a)[-2], extents(b)[-1])
    result: Tensor = compute(shape, element, name="matmul", tag=REDUCTION)
    return result


def matmul_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.matmul(widen(a), widen(b))).astype(a.dtype)


def _require_one_dtype(operator: str, a: Tensor, b: Tensor, c: Tensor | None) -> None:
    for other in (b, c):
        if other is not None and other.dtype != a.dtype:
            raise UserError(f"{operator}: dtypes {a.dtype} and {other.dtype} are mixed")
    if a.dtype.is_bool:
        raise UserError(f"{operator} takes numbers, bool given")
