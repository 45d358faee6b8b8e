"""Sums, means and extrema of any number of tensors, element by element.

Shapes broadcast as in numpy: they are aligned at the last axis, and the constant extent 1 is
repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths
from refcomp.te.operation import broadcast_elements
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample, several_operands
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import accumulator_of
from refcomp.topi.shapes import (
    Array,
    require_float,
    require_number,
    require_one_dtype,
    widen,
)


def _fold(
    tensors: Sequence[Tensor],
    function: Callable[[Expr, Expr], Expr],
    name: str,
    divisor: int = 1,
) -> Tensor:
    """Return the elements of all tensors, combined from the first one to the last one."""
    if not tensors:
        raise UserError(f"{name} is given no tensor", remedy="give one or more")
    for tensor in tensors:
        require_number(tensor, name)
    dtype = tensors[0].dtype
    require_one_dtype(name, *tensors)
    wide = accumulator_of(dtype)

    def folded(*elements: Expr) -> Expr:
        result = cast(wide, elements[0])
        for element in elements[1:]:
            result = function(result, cast(wide, element))
        if divisor > 1:
            result = result / const(divisor, wide)
        return cast(dtype, result)

    return broadcast_elements(tensors, folded, name)


def _aligned(arrays: Sequence[Array]) -> Array:
    """Return the arrays along a first axis, all of the broadcast shape."""
    return np.stack(np.broadcast_arrays(*map(widen, arrays)))


def _draw_some(draws: Draws, dtype: str) -> Sample:
    return several_operands(draws, [dtype] * draws.integer(1, 4))


def _sample_numbers(draws: Draws) -> Sample:
    return _draw_some(draws, draws.number_dtype())


def _sample_floats(draws: Draws) -> Sample:
    return _draw_some(draws, draws.float_dtype())


def add_n(*tensors: Tensor) -> Tensor:
    """Return the sum of all tensors, element by element, with broadcasting.

    Integers wrap. NaN propagates. Floats are added in the order of the operands; f16 and bf16 in
    f32.

    Args:
        *tensors: one or more tensors of floats or integers, all of one dtype. Shapes broadcast as
            in numpy.

    Returns:
        A tensor of the broadcast shape and of the operands' dtype.

    Raises:
        UserError: there is no operand, an operand is not such a tensor, the dtypes differ, or the
            shapes do not broadcast.

    Reference: TVM topi.elemwise_sum; ONNX Sum.

    Example::

        >>> A, B, C = (rc.placeholder((2,), name=name) for name in "ABC")
        >>> D = rc.topi.add_n(A, B, C)
        >>> a, b, c = (np.array(x, "float32") for x in ([1, 2], [3, 4], [8, -9]))
        >>> print(*rc.oracle.evaluate([D], {A: a, B: b, C: c}))
        [12. -3.]
    """
    return _fold(tensors, lambda x, y: x + y, "add_n")


@meaning_of(add_n, sample=_sample_numbers, pattern="broadcast")
def add_n_numpy(*arrays: Array) -> Array:
    total = _aligned(arrays).sum(axis=0)
    return np.asarray(total, arrays[0].dtype)


def mean_n(*tensors: Tensor) -> Tensor:
    """Return the mean of all tensors, element by element, with broadcasting.

    NaN propagates. Floats are added in the order of the operands; f16 and bf16 in f32.

    Args:
        *tensors: one or more tensors of floats, all of one dtype. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and of the operands' dtype.

    Raises:
        UserError: there is no operand, an operand is not such a tensor, the dtypes differ, or the
            shapes do not broadcast.

    Reference: ONNX Mean.

    Example::

        >>> A, B, C = (rc.placeholder((2,), name=name) for name in "ABC")
        >>> D = rc.topi.mean_n(A, B, C)
        >>> a, b, c = (np.array(x, "float32") for x in ([1, 2], [3, 4], [8, -9]))
        >>> print(*rc.oracle.evaluate([D], {A: a, B: b, C: c}))
        [ 4. -1.]
    """
    for tensor in tensors:
        require_float(tensor, "mean_n")
    return _fold(tensors, lambda x, y: x + y, "mean_n", divisor=len(tensors))


@meaning_of(mean_n, sample=_sample_floats, pattern="broadcast")
def mean_n_numpy(*arrays: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(_aligned(arrays).mean(axis=0), arrays[0].dtype)


def max_n(*tensors: Tensor) -> Tensor:
    """Return the greatest of all tensors, element by element, with broadcasting.

    NaN propagates. Zeros of both signs are equal: either may be the result.

    Args:
        *tensors: one or more tensors of floats or integers, all of one dtype. Shapes broadcast as
            in numpy.

    Returns:
        A tensor of the broadcast shape and of the operands' dtype.

    Raises:
        UserError: there is no operand, an operand is not such a tensor, the dtypes differ, or the
            shapes do not broadcast.

    Reference: ONNX Max.

    Example::

        >>> A, B, C = (rc.placeholder((2,), name=name) for name in "ABC")
        >>> D = rc.topi.max_n(A, B, C)
        >>> a, b, c = (np.array(x, "float32") for x in ([1, 2], [3, 4], [8, -9]))
        >>> print(*rc.oracle.evaluate([D], {A: a, B: b, C: c}))
        [8. 4.]
    """
    return _fold(tensors, maths.maximum, "max_n")


@meaning_of(max_n, sample=_sample_numbers, pattern="broadcast")
def max_n_numpy(*arrays: Array) -> Array:
    return np.asarray(_aligned(arrays).max(axis=0), arrays[0].dtype)


def min_n(*tensors: Tensor) -> Tensor:
    """Return the least of all tensors, element by element, with broadcasting.

    NaN propagates. Zeros of both signs are equal: either may be the result.

    Args:
        *tensors: one or more tensors of floats or integers, all of one dtype. Shapes broadcast as
            in numpy.

    Returns:
        A tensor of the broadcast shape and of the operands' dtype.

    Raises:
        UserError: there is no operand, an operand is not such a tensor, the dtypes differ, or the
            shapes do not broadcast.

    Reference: ONNX Min.

    Example::

        >>> A, B, C = (rc.placeholder((2,), name=name) for name in "ABC")
        >>> D = rc.topi.min_n(A, B, C)
        >>> a, b, c = (np.array(x, "float32") for x in ([1, 2], [3, 4], [8, -9]))
        >>> print(*rc.oracle.evaluate([D], {A: a, B: b, C: c}))
        [ 1. -9.]
    """
    return _fold(tensors, maths.minimum, "min_n")


@meaning_of(min_n, sample=_sample_numbers, pattern="broadcast")
def min_n_numpy(*arrays: Array) -> Array:
    return np.asarray(_aligned(arrays).min(axis=0), arrays[0].dtype)
