"""Choices among tensors, element by element: extrema, conditions, and fused sums.

Shapes broadcast as in numpy: they are aligned at the last axis, and the constant extent 1 is
repeated.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from refcomp.te import maths
from refcomp.te.extents import require_tensor
from refcomp.te.operation import broadcast_elements
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample, several_operands, two_operands
from refcomp.topi.elements import combine_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_bool,
    require_float,
    require_number,
    require_one_dtype,
)


def _sample_numbers(draws: Draws) -> Sample:
    return two_operands(draws, draws.number_dtype())


def maximum(a: Tensor, b: Tensor) -> Tensor:
    """Return the greater of a and b, element by element, with broadcasting.

    NaN propagates. Zeros of both signs are equal: either may be the result.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.maximum; ONNX Max; maximum of IEEE 754-2019, 9.6.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.maximum(A, B)
        >>> a, b = np.array([1, 5, np.nan], "float32"), np.array([3, -2, 0], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ 3.  5. nan]
    """
    require_number(a, "maximum")
    return combine_elements(a, b, maths.maximum, "maximum")


@meaning_of(maximum, sample=_sample_numbers, pattern="broadcast")
def maximum_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.maximum(a, b))


def minimum(a: Tensor, b: Tensor) -> Tensor:
    """Return the lesser of a and b, element by element, with broadcasting.

    NaN propagates. Zeros of both signs are equal: either may be the result.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.minimum; ONNX Min; minimum of IEEE 754-2019, 9.6.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.minimum(A, B)
        >>> a, b = np.array([1, 5, np.nan], "float32"), np.array([3, -2, 0], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ 1. -2. nan]
    """
    require_number(a, "minimum")
    return combine_elements(a, b, maths.minimum, "minimum")


@meaning_of(minimum, sample=_sample_numbers, pattern="broadcast")
def minimum_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.minimum(a, b))


def where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return a where the condition holds, else b, element by element, with broadcasting.

    Both operands may have any values where they are not chosen.

    Args:
        condition: a tensor of bool.
        a: a tensor of any dtype.
        b: a tensor of the dtype of `a`. All three shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes of a and b differ, or the shapes do
            not broadcast.

    Reference: TVM topi.where; ONNX Where; numpy.where.

    Example::

        >>> C = rc.placeholder((2, 1), "bool", name="C")
        >>> A, B = rc.placeholder((3,), name="A"), rc.placeholder((1,), name="B")
        >>> D = rc.topi.where(C, A, B)
        >>> c, a = np.array([[True], [False]]), np.array([1, 2, 3], "float32")
        >>> print(*rc.oracle.evaluate([D], {C: c, A: a, B: np.zeros(1, "float32")}))
        [[1. 2. 3.]
         [0. 0. 0.]]
    """
    require_bool(condition, "where")
    require_tensor(a, "where")
    require_one_dtype("where", a, b)
    return broadcast_elements((condition, a, b), maths.select, "where")


def _sample_where(draws: Draws) -> Sample:
    dtype = draws.choice((draws.number_dtype(), "bool"))
    return several_operands(draws, ("bool", dtype, dtype))


@meaning_of(where, sample=_sample_where, pattern="broadcast")
def where_numpy(condition: Array, a: Array, b: Array) -> Array:
    return np.asarray(np.where(condition, a, b))


def fma(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Return a * b + c, rounded once, element by element, with broadcasting.

    NaN propagates, and an infinity times 0 is NaN.

    Args:
        a: a tensor of f16, f32 or f64.
        b: a tensor of the dtype of `a`.
        c: the same. All three shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: fusedMultiplyAdd of IEEE 754-2019, 5.4.1.

    Example::

        >>> A, B, C = (rc.placeholder((3,), name=name) for name in "ABC")
        >>> D = rc.topi.fma(A, B, C)
        >>> a, b, c = (np.array(x, "float32") for x in ([1, 2, 3], [4, 5, 6], [1, 1, -18]))
        >>> print(*rc.oracle.evaluate([D], {A: a, B: b, C: c}))
        [ 5. 11.  0.]
    """
    require_float(a, "fma")
    require_one_dtype("fma", a, b, c)
    return broadcast_elements((a, b, c), maths.fma, "fma")


def _sample_fma(draws: Draws) -> Sample:
    return several_operands(draws, [draws.float_dtype()] * 3)


@meaning_of(fma, sample=_sample_fma, pattern="broadcast")
def fma_numpy(a: Array, b: Array, c: Array) -> Array:
    with np.errstate(all="ignore"):
        if a.dtype == np.float64:
            return np.asarray(_fused(a, b, c))
        # In long doubles, products of f16 and f32 are exact.
        wide = [np.asarray(array, np.longdouble) for array in (a, b, c)]
        return np.asarray(wide[0] * wide[1] + wide[2], a.dtype)


def _fused_number(a: float, b: float, c: float) -> float:
    """Return a * b + c as an exact fraction that is rounded once."""
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_fused = np.vectorize(_fused_number, otypes=[np.float64])
