"""The reduction of losses: none, the sum, or the mean of all elements.

Losses of f16 and bf16 are computed and accumulated in f32, and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast
from refcomp.te import reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.reduction.reduce import (
    accumulator_of,
    count_of,
    finish,
    reduce_along,
)
from refcomp.topi.shapes import (
    Array,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)

REDUCTIONS = ("mean", "sum", "none")


def check_reduction(reduction: str, operator: str) -> None:
    """Raise UserError unless `reduction` is one of `REDUCTIONS`."""
    if reduction not in REDUCTIONS:
        raise UserError(
            f"{operator} cannot have the reduction {reduction!r}",
            remedy=f"use one of {', '.join(REDUCTIONS)}",
        )


def reduce_losses(
    like: Tensor,
    element: Callable[..., Expr],
    reduction: str,
    name: str,
    *,
    dtype: DType,
) -> Tensor:
    """Return element(*index) at each index of `like`, or the sum or mean of all, in `dtype`."""
    check_reduction(reduction, name)
    if reduction == "none":
        return compute(
            extents(like),
            lambda *index: cast(dtype, element(*index)),
            name=name,
            tag=INJECTIVE,
        )
    places = range(like.ndim)
    total = reduce_along(like, places, element, reducer.sum, name=f"{name}_total")
    wide = accumulator_of(dtype)
    count = cast(wide, count_of(like, places))
    is_mean = reduction == "mean"
    return finish(total, lambda x: x / count if is_mean else x, dtype, name)


def pointwise_loss(
    data: Tensor,
    target: Tensor,
    function: Callable[[Expr, Expr], Expr],
    reduction: str,
    name: str,
) -> Tensor:
    """Return function(x, t) of all elements x of `data` and t of `target`, reduced.

    Raises:
        UserError: an operand is not a tensor of floats, the dtypes or shapes differ, or the
            reduction is unknown.
    """
    require_float(data, name)
    require_rank(target, data.ndim, name, "the target")
    require_one_dtype(name, data, target)
    pairs = zip(extents(target), extents(data), strict=True)
    for place, (size, expected) in enumerate(pairs):
        what = f"extent {place} of the target"
        require_extent(size, expected, name, what, tensors=(data, target))
    wide = accumulator_of(data.dtype)

    def element(*index: Expr) -> Expr:
        x = cast(wide, data[index])
        t = cast(wide, target[index])
        return function(x, t)

    return reduce_losses(data, element, reduction, name, dtype=data.dtype)


def pointwise_meaning(
    data: Array, target: Array, function: Callable[[Array, Array], Any], reduction: str
) -> Array:
    """Return function(x, t) of arrays, evaluated in f64 and reduced, in the dtype of `data`."""
    with np.errstate(all="ignore"):
        losses = np.asarray(function(widen(data), widen(target)))
        return np.asarray(reduced_meaning(losses, reduction), data.dtype)


def reduced_meaning(losses: Array, reduction: str) -> Array:
    """Return losses, or their sum or mean."""
    if reduction == "none":
        return losses
    total = np.asarray(np.sum(losses))
    return total if reduction == "sum" else np.asarray(np.divide(total, losses.size))


def pair_of_floats(draws: Draws, **attributes: object) -> Sample:
    """Return two tensors of one shape and float dtype, with a reduction."""
    shape = draws.shape()
    dtype = draws.float_dtype()
    operands = (draws.array(shape, dtype), draws.array(shape, dtype))
    return Sample(operands, {"reduction": draws.choice(REDUCTIONS), **attributes})


def pair_of_probabilities(draws: Draws, **attributes: object) -> Sample:
    """Return two tensors with elements of [0, 1], mostly, with a reduction."""
    sample = pair_of_floats(draws, **attributes)
    is_proper = draws.integer(0, 3) > 0
    operands = [
        np.asarray(np.clip(array, 0, 1)) if is_proper else array
        for array in sample.operands
        if array is not None
    ]
    return Sample(tuple(operands), sample.attributes)
