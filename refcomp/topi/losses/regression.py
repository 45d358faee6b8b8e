"""Losses of numbers: squared and absolute differences, and mixtures of them."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.losses.reduce_loss import (
    pair_of_floats,
    pointwise_loss,
    pointwise_meaning,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array


def _rounded(number: float, data: Array) -> float:
    """Return an attribute, rounded to the dtype in which the losses are computed."""
    return number if data.dtype == np.float64 else float(np.float32(number))


def mse_loss(data: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the squared differences (x - t)**2 of all elements, or their mean or sum.

    NaN propagates. The mean of no elements is NaN.

    Args:
        data: a tensor of floats.
        target: a tensor of the shape and dtype of `data`.
        reduction: "mean" or "sum" for one number, of all elements, or "none" for all losses.

    Returns:
        A tensor of the dtype of `data`: of rank 0, or of the shape of `data` for "none".

    Raises:
        UserError: an operand is not a tensor of floats, the dtypes or shapes differ, or the
            reduction is unknown.

    Reference: torch.nn.MSELoss.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.mse_loss(A, B, reduction="none")
        >>> a, b = np.array([1, 2, -np.inf], "float32"), np.array([3, 2, 0], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c)
        [ 4.  0. inf]
    """
    return pointwise_loss(
        data, target, lambda x, t: (x - t) * (x - t), reduction, "mse_loss"
    )


@meaning_of(mse_loss, sample=pair_of_floats)
def mse_loss_numpy(data: Array, target: Array, *, reduction: str = "mean") -> Array:
    return pointwise_meaning(data, target, lambda x, t: (x - t) ** 2, reduction)


def l1_loss(data: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the absolute differences |x - t| of all elements, or their mean or sum.

    NaN propagates. The mean of no elements is NaN.

    Args:
        data: a tensor of floats.
        target: a tensor of the shape and dtype of `data`.
        reduction: "mean" or "sum" for one number, of all elements, or "none" for all losses.

    Returns:
        A tensor of the dtype of `data`: of rank 0, or of the shape of `data` for "none".

    Raises:
        UserError: an operand is not a tensor of floats, the dtypes or shapes differ, or the
            reduction is unknown.

    Reference: torch.nn.L1Loss.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.l1_loss(A, B, reduction="none")
        >>> a, b = np.array([1, 2, -np.inf], "float32"), np.array([3, 2, 0], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c)
        [ 2.  0. inf]
    """
    return pointwise_loss(
        data, target, lambda x, t: maths.abs(x - t), reduction, "l1_loss"
    )


@meaning_of(l1_loss, sample=pair_of_floats)
def l1_loss_numpy(data: Array, target: Array, *, reduction: str = "mean") -> Array:
    return pointwise_meaning(data, target, lambda x, t: np.abs(x - t), reduction)


def huber_loss(
    data: Tensor, target: Tensor, *, delta: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return Huber's loss of all elements, or their mean or sum.

        0.5 * d * d                    for d = |x - t| <= delta
        delta * (d - 0.5 * delta)      otherwise

    NaN propagates. The mean of no elements is NaN.

    Args:
        data: a tensor of floats.
        target: a tensor of the shape and dtype of `data`.
        delta: the difference from which on the loss is linear, > 0.
        reduction: "mean" or "sum" for one number, of all elements, or "none" for all losses.

    Returns:
        A tensor of the dtype of `data`: of rank 0, or of the shape of `data` for "none".

    Raises:
        UserError: an operand is not a tensor of floats, the dtypes or shapes differ, or the
            reduction is unknown, or delta is not > 0.

    Reference: P. J. Huber, "Robust estimation of a location parameter", The Annals of Mathematical
    Statistics 35, 1964.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.huber_loss(A, B, reduction="none")
        >>> a, b = np.array([1, 0, 5], "float32"), np.array([1.5, 2, 0], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c)
        [0.125 1.5   4.5  ]
    """
    if not delta > 0:
        raise UserError(
            f"huber_loss cannot have the delta {delta}", remedy="give a number > 0"
        )

    def function(x: Expr, t: Expr) -> Expr:
        bound = const(delta, x.dtype)
        half = const(0.5, x.dtype)
        d = maths.abs(x - t)
        return maths.select(d <= bound, half * d * d, bound * (d - half * bound))

    return pointwise_loss(data, target, function, reduction, "huber_loss")


def _sample_huber_loss(draws: Draws) -> Sample:
    return pair_of_floats(draws, delta=draws.number(0.1, 3))


@meaning_of(huber_loss, sample=_sample_huber_loss)
def huber_loss_numpy(
    data: Array, target: Array, *, delta: float = 1.0, reduction: str = "mean"
) -> Array:
    bound = _rounded(delta, data)

    def function(x: Array, t: Array) -> Array:
        d = np.abs(x - t)
        losses = np.where(d <= bound, 0.5 * d**2, bound * (d - bound / 2))
        return np.asarray(losses)

    return pointwise_meaning(data, target, function, reduction)


def smooth_l1_loss(
    data: Tensor, target: Tensor, *, beta: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return the smooth absolute differences of all elements, or their mean or sum.

        0.5 * d * d / beta      for d = |x - t| < beta
        d - 0.5 * beta          otherwise

    NaN propagates. The mean of no elements is NaN.

    Args:
        data: a tensor of floats.
        target: a tensor of the shape and dtype of `data`.
        beta: the difference from which on the loss is linear, > 0.
        reduction: "mean" or "sum" for one number, of all elements, or "none" for all losses.

    Returns:
        A tensor of the dtype of `data`: of rank 0, or of the shape of `data` for "none".

    Raises:
        UserError: an operand is not a tensor of floats, the dtypes or shapes differ, or the
            reduction is unknown, or beta is not > 0.

    Reference: R. Girshick, "Fast R-CNN", ICCV 2015; torch.nn.SmoothL1Loss.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.smooth_l1_loss(A, B, reduction="none")
        >>> a, b = np.array([1, 0, 5], "float32"), np.array([1.5, 2, 0], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c)
        [0.125 1.5   4.5  ]
    """
    if not beta > 0:
        raise UserError(
            f"smooth_l1_loss cannot have the beta {beta}",
            remedy="give a number > 0, or use l1_loss",
        )

    def function(x: Expr, t: Expr) -> Expr:
        bound = const(beta, x.dtype)
        half = const(0.5, x.dtype)
        d = maths.abs(x - t)
        return maths.select(d < bound, half * d * d / bound, d - half * bound)

    return pointwise_loss(data, target, function, reduction, "smooth_l1_loss")


def _sample_smooth_l1_loss(draws: Draws) -> Sample:
    return pair_of_floats(draws, beta=draws.number(0.1, 3))


@meaning_of(smooth_l1_loss, sample=_sample_smooth_l1_loss)
def smooth_l1_loss_numpy(
    data: Array, target: Array, *, beta: float = 1.0, reduction: str = "mean"
) -> Array:
    bound = _rounded(beta, data)

    def function(x: Array, t: Array) -> Array:
        d = np.abs(x - t)
        losses = np.where(d < bound, 0.5 * d**2 / bound, d - 0.5 * bound)
        return np.asarray(losses)

    return pointwise_meaning(data, target, function, reduction)
