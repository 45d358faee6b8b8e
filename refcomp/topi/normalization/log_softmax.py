"""The family of softmax: its logarithm, its mirror image, and its limit at large values.

Reference: ONNX LogSoftmax and Hardmax; PyTorch, torch.nn.Softmin.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.elements import map_elements
from refcomp.topi.normalization.moments import drop_axes, reduce_along
from refcomp.topi.normalization.softmax import softmax, softmax_numpy
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, normalize_axis, require_float, widen
from refcomp.topi.tags import SHARED


def log_softmax(data: Tensor, *, axis: int = -1) -> Tensor:
    """Return x - m - log(sum of exp(x - m)) along `axis`, where m is the maximum along it.

    A NaN or an infinity makes all values along the axis NaN. Minus infinity stays minus infinity,
    unless all values are minus infinity. An axis of extent 0 gives a result without elements.

    Args:
        data: floats of any shape with at least one dimension.
        axis: the axis to sum along; -1 is the last one.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, or the axis does not exist.

    Reference: ONNX LogSoftmax; P. Blanchard, D. J. Higham, N. J. Higham, "Accurately computing the
    log-sum-exp and softmax functions", 2021.

    Example::

        >>> A = rc.placeholder((1, 2), name="A")
        >>> (b,) = rc.oracle.evaluate([rc.topi.log_softmax(A)], {A: np.zeros((1, 2), "float32")})
        >>> print(b.round(4))
        [[-0.6931 -0.6931]]
    """
    require_float(data, "log_softmax")
    axes = (normalize_axis(axis, data.ndim, "log_softmax"),)
    greatest = reduce_along(
        data, axes, lambda index: data[index], "greatest", reducer.max
    )

    def power(index: tuple[Expr, ...]) -> Expr:
        return maths.exp(data[index] - greatest[drop_axes(index, axes)])

    total = reduce_along(data, axes, power, "total")
    logarithm = compute(
        total.shape,
        lambda *index: maths.log(total[index]),
        name="logarithm",
        tag=SHARED,
    )

    def element(*index: Expr) -> Expr:
        reduced = drop_axes(index, axes)
        return data[index] - greatest[reduced] - logarithm[reduced]

    return compute(data.shape, element, name="log_softmax", tag=INJECTIVE)


def _sample_along_axis(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.float_dtype())
    return Sample((data,), {"axis": draws.axis(data.ndim)})


@meaning_of(log_softmax, sample=_sample_along_axis)
def log_softmax_numpy(data: Array, *, axis: int = -1) -> Array:
    wide = widen(data)
    if not wide.size:  # numpy has no maximum of nothing
        return data.copy()
    # Infinity - infinity is an invalid operation, and its result is the NaN that is wanted.
    with np.errstate(invalid="ignore"):
        shifted = wide - wide.max(axis=axis, keepdims=True)
        total = np.exp(shifted).sum(axis=axis, keepdims=True)
    return np.asarray(shifted - np.log(total), data.dtype)


def softmin(data: Tensor, *, axis: int = -1) -> Tensor:
    """Return the softmax of -x along `axis`: small elements get large shares.

    A NaN or minus infinity makes all values along the axis NaN; infinity gives 0, unless all
    values are infinity. An axis of extent 0 gives a result without elements.

    Args:
        data: floats of any shape with at least one dimension.
        axis: the axis to sum along; -1 is the last one.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, or the axis does not exist.

    Reference: PyTorch, torch.nn.Softmin.

    Example::

        >>> A = rc.placeholder((1, 3), name="A")
        >>> a = np.array([[1, 1, np.inf]], "float32")
        >>> print(*rc.oracle.evaluate([rc.topi.softmin(A)], {A: a}))
        [[0.5 0.5 0. ]]
    """
    require_float(data, "softmin")
    place = normalize_axis(axis, data.ndim, "softmin")
    return softmax(map_elements(data, lambda x: -x, "softmin"), axis=place)


@meaning_of(softmin, sample=_sample_along_axis)
def softmin_numpy(data: Array, *, axis: int = -1) -> Array:
    return softmax_numpy(-data, axis=axis)


def hardmax(data: Tensor, *, axis: int = -1) -> Tensor:
    """Return 1 for the first greatest element along `axis`, and 0 for all others.

    A NaN is greater than all numbers. An axis of extent 0 gives a result without elements.

    Args:
        data: numbers of any shape with at least one dimension.
        axis: the axis to compare along; -1 is the last one.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of numbers, or the axis does not exist.

    Reference: ONNX Hardmax.

    Example::

        >>> A = rc.placeholder((1, 4), name="A")
        >>> a = np.array([[1, 7, 7, 0]], "float32")
        >>> print(*rc.oracle.evaluate([rc.topi.hardmax(A)], {A: a}))
        [[0. 1. 0. 0.]]
    """
    _require_numbers(data, "hardmax")
    place = normalize_axis(axis, data.ndim, "hardmax")
    axes = (place,)
    greatest = reduce_along(
        data, axes, lambda index: data[index], "greatest", reducer.max
    )

    def candidate(index: tuple[Expr, ...]) -> Expr:
        """Return the position of a greatest element; for others one that no element has."""
        value = data[index]
        # `!=` finds a NaN, which equals nothing.
        is_greatest = maths.any(
            value == greatest[drop_axes(index, axes)], value != value
        )
        beyond = cast(I64, data.shape[place])
        return maths.select(is_greatest, cast(I64, index[place]), beyond)

    first = reduce_along(data, axes, candidate, "first", reducer.min)

    def element(*index: Expr) -> Expr:
        is_first = cast(I64, index[place]) == first[drop_axes(index, axes)]
        return maths.select(is_first, const(1, data.dtype), const(0, data.dtype))

    return compute(data.shape, element, name="hardmax", tag=INJECTIVE)


def _require_numbers(data: Tensor, operator: str) -> None:
    """Raise UserError if an operand is not a tensor of numbers."""
    require_tensor(data, operator)
    if data.dtype.is_bool:
        raise UserError(
            f"{operator} takes numbers, not {data.dtype}",
            remedy='convert them by a compute: x[i, j].astype("int32")',
            earlier=[data.declaration()],
        )


def _sample_hardmax(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.number_dtype())
    return Sample((data,), {"axis": draws.axis(data.ndim)})


@meaning_of(hardmax, sample=_sample_hardmax)
def hardmax_numpy(data: Array, *, axis: int = -1) -> Array:
    result = np.zeros_like(data)
    if result.size:
        first = np.expand_dims(np.argmax(data, axis=axis), axis)
        np.put_along_axis(result, first, 1, axis=axis)
    return result
