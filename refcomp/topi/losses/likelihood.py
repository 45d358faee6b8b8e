"""Losses of probabilities: cross entropies of two classes, divergences and margins."""

from __future__ import annotations

import numpy as np

from refcomp.ir.expr import EQ, Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.losses.reduce_loss import (
    pair_of_floats,
    pair_of_probabilities,
    pointwise_loss,
    pointwise_meaning,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array


def binary_cross_entropy(
    data: Tensor, target: Tensor, *, reduction: str = "mean"
) -> Tensor:
    """Return -(t * log(x) + (1 - t) * log(1 - x)) of all elements, or their mean or sum.

    Logarithms below -100 become -100, so that the loss is finite where x is 0 or 1. An x outside of
    [0, 1] gives NaN. NaN propagates. The mean of no elements is NaN.

    Args:
        data: a tensor of floats: probabilities in [0, 1].
        target: a tensor of the shape and dtype of `data`.
        reduction: "mean" or "sum" for one number, of all elements, or "none" for all losses.

    Returns:
        A tensor of the dtype of `data`: of rank 0, or of the shape of `data` for "none".

    Raises:
        UserError: an operand is not a tensor of floats, the dtypes or shapes differ, or the
            reduction is unknown.

    Reference: torch.nn.BCELoss.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.binary_cross_entropy(A, B, reduction="none")
        >>> a, b = np.array([0.5, 0.25, 1], "float32"), np.array([1, 0, 0], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c.round(4))
        [  0.6931   0.2877 100.    ]
    """

    def function(x: Expr, t: Expr) -> Expr:
        least = const(-100.0, x.dtype)
        one = const(1.0, x.dtype)
        holds = maths.maximum(maths.log(x), least)
        fails = maths.maximum(maths.log1p(-x), least)
        return -(t * holds + (one - t) * fails)

    return pointwise_loss(data, target, function, reduction, "binary_cross_entropy")


@meaning_of(binary_cross_entropy, sample=pair_of_probabilities)
def binary_cross_entropy_numpy(
    data: Array, target: Array, *, reduction: str = "mean"
) -> Array:
    def function(x: Array, t: Array) -> Array:
        holds = np.maximum(np.log(x), -100)
        fails = np.maximum(np.log1p(-x), -100)
        return np.asarray(-(t * holds + (1 - t) * fails))

    return pointwise_meaning(data, target, function, reduction)


def binary_cross_entropy_with_logits(
    data: Tensor, target: Tensor, *, reduction: str = "mean"
) -> Tensor:
    """Return the binary cross entropies of sigmoid(x) and t, or their mean or sum.

    It is computed as `max(x, 0) - x * t + log1p(exp(-abs(x)))`, which cannot overflow. An infinite
    x gives infinity or NaN. NaN propagates. The mean of no elements is NaN.

    Args:
        data: a tensor of floats: logits.
        target: a tensor of the shape and dtype of `data`.
        reduction: "mean" or "sum" for one number, of all elements, or "none" for all losses.

    Returns:
        A tensor of the dtype of `data`: of rank 0, or of the shape of `data` for "none".

    Raises:
        UserError: an operand is not a tensor of floats, the dtypes or shapes differ, or the
            reduction is unknown.

    Reference: torch.nn.BCEWithLogitsLoss.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.binary_cross_entropy_with_logits(A, B, reduction="none")
        >>> a, b = np.array([0, 2, -1000], "float32"), np.array([1, 0, 0], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c.round(4))
        [0.6931 2.1269 0.    ]
    """

    def function(x: Expr, t: Expr) -> Expr:
        positive = maths.maximum(x, const(0.0, x.dtype))
        return positive - x * t + maths.log1p(maths.exp(-maths.abs(x)))

    return pointwise_loss(
        data, target, function, reduction, "binary_cross_entropy_with_logits"
    )


@meaning_of(binary_cross_entropy_with_logits, sample=pair_of_probabilities)
def binary_cross_entropy_with_logits_numpy(
    data: Array, target: Array, *, reduction: str = "mean"
) -> Array:
    def function(x: Array, t: Array) -> Array:
        return np.asarray(np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x))))

    return pointwise_meaning(data, target, function, reduction)


def kl_div(
    data: Tensor, target: Tensor, *, log_target: bool = False, reduction: str = "mean"
) -> Tensor:
    """Return t * (log(t) - x) of all elements, or their mean or sum.

    x is the logarithm of a predicted probability. If `log_target`, so is t, and the loss is `exp(t)
    * (t - x)`. Otherwise, a t of 0 gives 0, and a negative one NaN. NaN propagates. The mean of no
    elements is NaN.

    Args:
        data: a tensor of floats: logarithms of probabilities.
        target: a tensor of the shape and dtype of `data`.
        log_target: True if the target holds logarithms of probabilities, too.
        reduction: "mean" or "sum" for one number, of all elements, or "none" for all losses.

    Returns:
        A tensor of the dtype of `data`: of rank 0, or of the shape of `data` for "none".

    Raises:
        UserError: an operand is not a tensor of floats, the dtypes or shapes differ, or the
            reduction is unknown.

    Reference: S. Kullback and R. A. Leibler, "On information and sufficiency", The Annals of
    Mathematical Statistics 22, 1951; torch.nn.KLDivLoss.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.kl_div(A, B, reduction="none")
        >>> a, b = np.array([-1, 0, -np.inf], "float32"), np.array([0.5, 1, 0], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c.round(4))
        [0.1534 0.     0.    ]
    """

    def function(x: Expr, t: Expr) -> Expr:
        if log_target:
            return maths.exp(t) * (t - x)
        zero = const(0.0, x.dtype)
        is_zero = EQ(t, zero)
        # The logarithm of 1 in place of that of 0, whose slope is infinite.
        safe = maths.select(is_zero, const(1.0, x.dtype), t)
        return maths.select(is_zero, zero, t * (maths.log(safe) - x))

    return pointwise_loss(data, target, function, reduction, "kl_div")


def _sample_kl_div(draws: Draws) -> Sample:
    return pair_of_probabilities(draws, log_target=draws.flag())


@meaning_of(kl_div, sample=_sample_kl_div)
def kl_div_numpy(
    data: Array, target: Array, *, log_target: bool = False, reduction: str = "mean"
) -> Array:
    def function(x: Array, t: Array) -> Array:
        if log_target:
            return np.asarray(np.exp(t) * (t - x))
        return np.where(t == 0, 0, t * (np.log(t) - x))

    return pointwise_meaning(data, target, function, reduction)


def hinge_loss(
    data: Tensor, target: Tensor, *, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return max(0, margin - t * x) of all elements, or their mean or sum.

    The targets are 1 and -1. NaN propagates. The mean of no elements is NaN.

    Args:
        data: a tensor of floats.
        target: a tensor of the shape and dtype of `data`.
        margin: the product from which on the loss is 0.
        reduction: "mean" or "sum" for one number, of all elements, or "none" for all losses.

    Returns:
        A tensor of the dtype of `data`: of rank 0, or of the shape of `data` for "none".

    Raises:
        UserError: an operand is not a tensor of floats, the dtypes or shapes differ, or the
            reduction is unknown.

    Reference: C. Cortes and V. Vapnik, "Support-vector networks", Machine Learning 20, 1995.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.hinge_loss(A, B, reduction="none")
        >>> a, b = np.array([2, 0.5, -1], "float32"), np.array([1, 1, 1], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c)
        [0.  0.5 2. ]
    """

    def function(x: Expr, t: Expr) -> Expr:
        return maths.maximum(const(margin, x.dtype) - t * x, const(0.0, x.dtype))

    return pointwise_loss(data, target, function, reduction, "hinge_loss")


def _sample_hinge_loss(draws: Draws) -> Sample:
    return pair_of_floats(draws, margin=draws.number(0, 2))


@meaning_of(hinge_loss, sample=_sample_hinge_loss)
def hinge_loss_numpy(
    data: Array, target: Array, *, margin: float = 1.0, reduction: str = "mean"
) -> Array:
    wanted = margin if data.dtype == np.float64 else float(np.float32(margin))
    return pointwise_meaning(
        data, target, lambda x, t: np.maximum(wanted - t * x, 0), reduction
    )
