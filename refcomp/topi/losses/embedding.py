"""Losses of pairs of vectors, by the angle between them."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir.expr import EQ, Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.losses.reduce_loss import (
    REDUCTIONS,
    check_reduction,
    reduce_losses,
    reduced_meaning,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import accumulator_of, reduce_along
from refcomp.topi.shapes import (
    Array,
    require_float,
    require_integer,
    require_one_dtype,
    require_rank,
    widen,
)

# Added to squared lengths, so that a vector of zeros has the cosine 0.
_EPSILON = 1e-12


def cosine_embedding_loss(
    a: Tensor,
    b: Tensor,
    target: Tensor,
    *,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Return the losses of pairs of vectors by their cosines, or their mean or sum.

        1 - cos                  where the target is 1: the vectors should be alike
        max(0, cos - margin)     elsewhere
        cos = a * b / sqrt((a * a + 1e-12) * (b * b + 1e-12)),  with dot products

    NaN propagates, and an infinity gives NaN. The mean of no pairs is NaN. f16 and bf16 are
    accumulated in f32.

    Args:
        a: a tensor of floats [n, length]: a vector in each row.
        b: a tensor of the shape and dtype of `a`.
        target: a tensor of integers [n], usually 1 and -1.
        margin: the cosine up to which vectors that should differ have no loss.
        reduction: "mean" or "sum" for one number, of all pairs, or "none" for all losses.

    Returns:
        A tensor of the dtype of `a`: of rank 0, or [n] for "none".

    Raises:
        UserError: an operand has a wrong rank, extent or dtype, or the reduction is unknown.

    Reference: torch.nn.CosineEmbeddingLoss.

    Example::

        >>> A, B = (rc.placeholder((2, 2), name=name) for name in "AB")
        >>> T = rc.placeholder((2,), "int32", name="T")
        >>> L = rc.topi.cosine_embedding_loss(A, B, T, reduction="none")
        >>> a, b = np.array([[3, 4], [1, 0]], "float32"), np.array([[4, 3], [2, 0]], "float32")
        >>> (losses,) = rc.oracle.evaluate([L], {A: a, B: b, T: np.array([1, -1], "int32")})
        >>> print(losses.round(4))
        [0.04 1.  ]
    """
    name = "cosine_embedding_loss"
    _check_operands(a, b, target, name)
    check_reduction(reduction, name)
    wide = accumulator_of(a.dtype)
    products = _dot(a, b, wide, "products")
    squares = [_dot(vector, vector, wide, "squares") for vector in (a, b)]
    one = const(1.0, wide)
    epsilon = const(_EPSILON, wide)

    def loss(*index: Expr) -> Expr:
        left, right = (square[index] + epsilon for square in squares)
        cosine = products[index] / maths.sqrt(left * right)
        beyond = maths.maximum(cosine - const(margin, wide), const(0.0, wide))
        return maths.select(
            EQ(target[index], const(1, target.dtype)), one - cosine, beyond
        )

    return reduce_losses(target, loss, reduction, name, dtype=a.dtype)


def _check_operands(a: Tensor, b: Tensor, target: Tensor, name: str) -> None:
    require_float(a, name)
    require_rank(a, 2, name, "the first operand")
    require_rank(b, 2, name, "the second operand")
    require_one_dtype(name, a, b)
    for place, size in enumerate(extents(b)):
        what = f"extent {place} of the second operand"
        require_extent(size, extents(a)[place], name, what, tensors=(a, b))
    require_integer(target, name)
    require_rank(target, 1, name, "the target")
    what = "the number of targets"
    require_extent(extents(target)[0], extents(a)[0], name, what, tensors=(a, target))


def _dot(a: Tensor, b: Tensor, wide: DType, name: str) -> Tensor:
    """Return the dot product of each row of `a` with that of `b`."""

    def product(*index: Expr) -> Expr:
        return cast(wide, a[index]) * cast(wide, b[index])

    return reduce_along(a, [1], product, reducer.sum, name=name)


def _sample_cosine_embedding_loss(draws: Draws) -> Sample:
    shape = (draws.extent(0), draws.extent(0))
    dtype = draws.float_dtype()
    target = draws.integers(shape[:1], -1, 1, draws.choice(("int32", "int64", "int8")))
    # Fractions that f32 represents.
    attributes = {
        "margin": draws.choice((0.0, 0.25, -0.5)),
        "reduction": draws.choice(REDUCTIONS),
    }
    operands = (draws.array(shape, dtype), draws.array(shape, dtype), target)
    return Sample(operands, attributes)


@meaning_of(cosine_embedding_loss, sample=_sample_cosine_embedding_loss)
def cosine_embedding_loss_numpy(
    a: Array,
    b: Array,
    target: Array,
    *,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Array:
    left = widen(a)
    right = widen(b)
    with np.errstate(all="ignore"):
        squared_left = np.sum(left**2, axis=1) + _EPSILON
        squared_right = np.sum(right**2, axis=1) + _EPSILON
        product = np.einsum("nk,nk->n", left, right)
        cosine = product / np.sqrt(squared_left * squared_right)
        beyond = np.maximum(cosine - margin, 0)
        losses = np.where(target == 1, 1 - cosine, beyond)
        return np.asarray(reduced_meaning(losses, reduction), a.dtype)
