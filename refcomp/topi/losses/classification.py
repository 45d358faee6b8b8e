"""Losses of classes: negative log likelihood and cross entropy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.foundation.dtype import I64, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import NE, Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.losses.reduce_loss import (
    REDUCTIONS,
    check_reduction,
    reduce_losses,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import accumulator_of, keep_index, reduce_along
from refcomp.topi.shapes import (
    Array,
    require_float,
    require_integer,
    require_one_dtype,
    require_rank,
    widen,
)
from refcomp.topi.tags import SHARED


def _check_operands(
    data: Tensor, target: Tensor, weights: Tensor | None, name: str
) -> None:
    require_float(data, name)
    if data.ndim < 2:
        raise UserError(
            f"{name} takes [n, classes, ...], not {data.ndim} dimensions",
            remedy="add an axis",
            earlier=[data.declaration()],
        )
    require_integer(target, name)
    require_rank(target, data.ndim - 1, name, "the target")
    sizes = extents(data)
    expected = (sizes[0], *sizes[2:])
    for place, size in enumerate(extents(target)):
        what = f"extent {place} of the target"
        require_extent(size, expected[place], name, what, tensors=(data, target))
    if weights is not None:
        require_rank(weights, 1, name, "the vector of weights")
        require_one_dtype(name, data, weights)
        what = "the number of weights"
        require_extent(
            extents(weights)[0], sizes[1], name, what, tensors=(data, weights)
        )


def _log_softmax(data: Tensor) -> Tensor:
    """Return log(softmax) along axis 1, in the dtype of accumulators."""
    wide = accumulator_of(data.dtype)

    def element(*index: Expr) -> Expr:
        return cast(wide, data[index])

    greatest = reduce_along(
        data, [1], element, reducer.max, name="greatest", keepdims=True
    )

    def shifted(*index: Expr) -> Expr:
        return element(*index) - greatest[keep_index(index, [1])]

    total = reduce_along(
        data,
        [1],
        lambda *index: maths.exp(shifted(*index)),
        reducer.sum,
        name="total",
        keepdims=True,
    )
    return compute(
        extents(data),
        lambda *index: shifted(*index) - maths.log(total[keep_index(index, [1])]),
        name="logarithms",
        tag=SHARED,
    )


def _class_losses(
    logs: Tensor,
    target: Tensor,
    weights: Tensor | None,
    *,
    ignored: int,
    reduction: str,
    name: str,
    smoothing: float = 0.0,
    dtype: DType | None = None,
) -> Tensor:
    """Return the losses of logarithms of probabilities, in `dtype` or in that of `logs`."""
    check_reduction(reduction, name)
    kind = logs.dtype if dtype is None else dtype
    wide = accumulator_of(kind)
    classes = extents(logs)[1]
    zero = const(0.0, wide)

    def label_at(index: tuple[Expr, ...]) -> tuple[Expr, Expr]:
        """Return True if the target counts, and its class, which is 0 otherwise."""
        label = cast(I64, target[index])
        counts = maths.all(label >= 0, label < classes, NE(label, const(ignored, I64)))
        return counts, maths.select(counts, label, const(0, I64))

    def weight_of(label: Expr) -> Expr:
        return const(1.0, wide) if weights is None else cast(wide, weights[label])

    def loss_of(index: tuple[Expr, ...], label: Expr) -> Expr:
        value = cast(wide, logs[(index[0], label, *index[1:])])
        return -value * weight_of(label)

    def weight_at(*index: Expr) -> Expr:
        counts, label = label_at(index)
        return maths.if_then_else(counts, weight_of(label), zero)

    spread = _spread_losses(logs, loss_of) if smoothing else None

    def element(*index: Expr) -> Expr:
        counts, label = label_at(index)
        loss = loss_of(index, label)
        if spread is not None:
            share = const(smoothing, wide) * spread[index] / cast(wide, classes)
            loss = const(1 - smoothing, wide) * loss + share
        return maths.if_then_else(counts, loss, zero)

    if reduction != "mean":
        return reduce_losses(target, element, reduction, name, dtype=kind)
    places = range(target.ndim)
    total = reduce_along(target, places, element, reducer.sum, name="total_loss")
    weight = reduce_along(target, places, weight_at, reducer.sum, name="total_weight")
    return compute(
        (), lambda: cast(kind, total[()] / weight[()]), name=name, tag=INJECTIVE
    )


def _spread_losses(
    logs: Tensor, loss_of: Callable[[tuple[Expr, ...], Expr], Expr]
) -> Tensor:
    """Return the sum of the weighted losses of all classes, for each target."""
    return reduce_along(
        logs,
        [1],
        lambda *index: loss_of((index[0], *index[2:]), index[1]),
        reducer.sum,
        name="spread",
    )


def _numpy_losses(
    logs: Array,
    target: Array,
    weights: Array | None,
    *,
    ignored: int,
    reduction: str,
    smoothing: float = 0.0,
) -> Array:
    """Return the losses of logarithms of probabilities in f64."""
    classes = logs.shape[1]
    rows = np.moveaxis(logs, 1, -1)
    label = target.astype(np.int64)
    counts = (label >= 0) & (label < classes) & (label != ignored)
    label = np.where(counts, label, 0)
    weight = np.ones(classes) if weights is None else widen(weights)
    with np.errstate(all="ignore"):
        chosen = np.take_along_axis(rows, label[..., np.newaxis], axis=-1)[..., 0]
        losses = -chosen * weight[label]
        if smoothing:
            spread = -np.sum(rows * weight, axis=-1)
            losses = (1 - smoothing) * losses + smoothing * spread / classes
        losses = np.where(counts, losses, 0)
        if reduction == "none":
            return np.asarray(losses)
        total = np.sum(losses)
        divisor = np.sum(np.where(counts, weight[label], 0))
        return np.asarray(np.divide(total, divisor) if reduction == "mean" else total)


def _sample_nll_loss(draws: Draws) -> Sample:
    first = draws.extent(0)
    classes = draws.extent()
    rest = draws.shape(0, 2)
    dtype = draws.float_dtype()
    target_dtype = draws.choice(("int32", "int64", "int8"))
    data = draws.array((first, classes, *rest), dtype)
    # One more on both sides: they do not count.
    target = draws.integers((first, *rest), -1, classes, target_dtype)
    weights = draws.array((classes,), dtype) if draws.flag() else None
    attributes = {
        "ignore_index": draws.choice((-100, 0, 1)),
        "reduction": draws.choice(REDUCTIONS),
    }
    return Sample((data, target, weights), attributes)


def _sample_cross_entropy(draws: Draws) -> Sample:
    sample = _sample_nll_loss(draws)
    # Fractions that f32 represents.
    smoothing = draws.choice((0.0, 0.0, 0.125, 0.25, 1.0))
    return Sample(sample.operands, {**sample.attributes, "label_smoothing": smoothing})


def nll_loss(
    data: Tensor,
    target: Tensor,
    weights: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return -weights[t] * x[t] for each target class t, or their mean or sum.

        loss[n, ...] = -weights[t] * data[n, t, ...],  t = target[n, ...]

    A target that is `ignore_index`, or that is out of range, gives 0 and does not count. If none
    counts, the mean is NaN. f16 and bf16 are accumulated in f32.

    Args:
        data: a tensor of floats [n, classes, ...]: logarithms of probabilities.
        target: a tensor of integers [n, ...]: classes from 0.
        weights: a tensor [classes] of the dtype of `data`; by default all weights are 1.
        ignore_index: the target of elements that do not count.
        reduction: "mean" for the sum divided by the sum of the weights of all targets that count,
            "sum" for the sum, or "none" for all losses.

    Returns:
        A tensor of the dtype of `data`: of rank 0, or [n, ...] for "none".

    Raises:
        UserError: an operand has a wrong rank, extent or dtype, or the reduction is unknown.

    Reference: TVM topi.nll_loss; ONNX NegativeLogLikelihoodLoss.

    Example::

        >>> A, T = rc.placeholder((2, 3), name="A"), rc.placeholder((2,), "int32", name="T")
        >>> L = rc.topi.nll_loss(A, T, reduction="none")
        >>> a = np.array([[-1, -2, -3], [-4, -5, -6]], "float32")
        >>> print(*rc.oracle.evaluate([L], {A: a, T: np.array([2, 0], "int32")}))
        [3. 4.]
    """
    _check_operands(data, target, weights, "nll_loss")
    return _class_losses(
        data,
        target,
        weights,
        ignored=ignore_index,
        reduction=reduction,
        name="nll_loss",
    )


@meaning_of(nll_loss, sample=_sample_nll_loss)
def nll_loss_numpy(
    data: Array,
    target: Array,
    weights: Array | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Array:
    return _numpy_losses(
        widen(data), target, weights, ignored=ignore_index, reduction=reduction
    ).astype(data.dtype)


def cross_entropy(
    data: Tensor,
    target: Tensor,
    weights: Tensor | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Return -log(softmax(x)[t]) * weights[t] for each target class t, or their mean or sum.

        loss[n, ...] = -weights[t] * log(softmax(data[n, :, ...]))[t],  t = target[n, ...]

    With `label_smoothing` s, the loss is 1 - s times this plus s times the mean of the weighted
    losses of all classes.

    A target that is `ignore_index`, or that is out of range, gives 0 and does not count. If none
    counts, the mean is NaN. f16 and bf16 are accumulated in f32.

    Args:
        data: a tensor of floats [n, classes, ...]: logits.
        target: a tensor of integers [n, ...]: classes from 0.
        weights: a tensor [classes] of the dtype of `data`; by default all weights are 1.
        ignore_index: the target of elements that do not count.
        label_smoothing: the part of each target, in [0, 1], that is spread evenly over all classes.
        reduction: "mean" for the sum divided by the sum of the weights of all targets that count,
            "sum" for the sum, or "none" for all losses.

    Returns:
        A tensor of the dtype of `data`: of rank 0, or [n, ...] for "none".

    Raises:
        UserError: an operand has a wrong rank, extent or dtype, or the reduction is unknown, or
            label_smoothing is not in [0, 1].

    Reference: ONNX SoftmaxCrossEntropyLoss; C. Szegedy et al., "Rethinking the Inception
    architecture for computer vision", CVPR 2016 (label smoothing).

    Example::

        >>> A, T = rc.placeholder((2, 3), name="A"), rc.placeholder((2,), "int32", name="T")
        >>> L = rc.topi.cross_entropy(A, T, reduction="none")
        >>> a = np.array([[0, 0, 0], [1000, 0, 0]], "float32")
        >>> (losses,) = rc.oracle.evaluate([L], {A: a, T: np.array([2, 0], "int32")})
        >>> print(losses.round(4))
        [ 1.0986 -0.    ]
    """
    _check_operands(data, target, weights, "cross_entropy")
    if not 0 <= label_smoothing <= 1:
        raise UserError(
            f"cross_entropy cannot have the label_smoothing {label_smoothing}",
            remedy="give a number of 0 to 1",
        )
    return _class_losses(
        _log_softmax(data),
        target,
        weights,
        ignored=ignore_index,
        reduction=reduction,
        name="cross_entropy",
        smoothing=label_smoothing,
        dtype=data.dtype,
    )


@meaning_of(cross_entropy, sample=_sample_cross_entropy)
def cross_entropy_numpy(
    data: Array,
    target: Array,
    weights: Array | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Array:
    wide = widen(data)
    with np.errstate(all="ignore"):
        shifted = wide - wide.max(axis=1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return _numpy_losses(
            logs,
            target,
            weights,
            ignored=ignore_index,
            reduction=reduction,
            smoothing=label_smoothing,
        ).astype(data.dtype)
