"""Comparisons of two tensors, element by element.

Shapes broadcast as in numpy: they are aligned at the last axis, and the constant extent 1 is
repeated.
"""

from __future__ import annotations

import numpy as np

from refcomp.ir.expr import EQ, NE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample, two_operands
from refcomp.topi.elements import combine_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_number,
)


def _sample_numbers(draws: Draws) -> Sample:
    return two_operands(draws, draws.number_dtype())


def equal(a: Tensor, b: Tensor) -> Tensor:
    """Return a == b, element by element, with broadcasting.

    A comparison with NaN is False. Zeros of both signs are equal.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of bool, of the broadcast shape.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.equal; ONNX Equal.

    Example::

        >>> A, B = (rc.placeholder((4,), name=name) for name in "AB")
        >>> C = rc.topi.equal(A, B)
        >>> a, b = np.array([1, 2, 3, np.nan], "float32"), np.array([2, 2, 2, np.nan], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [False  True False False]
    """
    require_number(a, "equal")
    return combine_elements(a, b, lambda x, y: EQ(x, y), "equal")


@meaning_of(equal, sample=_sample_numbers, pattern="broadcast")
def equal_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.equal(a, b))


def not_equal(a: Tensor, b: Tensor) -> Tensor:
    """Return a != b, element by element, with broadcasting.

    NaN differs from every number and from NaN. Zeros of both signs are equal.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of bool, of the broadcast shape.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.not_equal.

    Example::

        >>> A, B = (rc.placeholder((4,), name=name) for name in "AB")
        >>> C = rc.topi.not_equal(A, B)
        >>> a, b = np.array([1, 2, 3, np.nan], "float32"), np.array([2, 2, 2, np.nan], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ True False  True  True]
    """
    require_number(a, "not_equal")
    return combine_elements(a, b, lambda x, y: NE(x, y), "not_equal")


@meaning_of(not_equal, sample=_sample_numbers, pattern="broadcast")
def not_equal_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.not_equal(a, b))


def less(a: Tensor, b: Tensor) -> Tensor:
    """Return a < b, element by element, with broadcasting.

    A comparison with NaN is False. Zeros of both signs are equal.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of bool, of the broadcast shape.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.less; ONNX Less.

    Example::

        >>> A, B = (rc.placeholder((4,), name=name) for name in "AB")
        >>> C = rc.topi.less(A, B)
        >>> a, b = np.array([1, 2, 3, np.nan], "float32"), np.array([2, 2, 2, np.nan], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ True False False False]
    """
    require_number(a, "less")
    return combine_elements(a, b, lambda x, y: x < y, "less")


@meaning_of(less, sample=_sample_numbers, pattern="broadcast")
def less_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.less(a, b))


def less_equal(a: Tensor, b: Tensor) -> Tensor:
    """Return a <= b, element by element, with broadcasting.

    A comparison with NaN is False. Zeros of both signs are equal.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of bool, of the broadcast shape.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.less_equal; ONNX LessOrEqual.

    Example::

        >>> A, B = (rc.placeholder((4,), name=name) for name in "AB")
        >>> C = rc.topi.less_equal(A, B)
        >>> a, b = np.array([1, 2, 3, np.nan], "float32"), np.array([2, 2, 2, np.nan], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ True  True False False]
    """
    require_number(a, "less_equal")
    return combine_elements(a, b, lambda x, y: x <= y, "less_equal")


@meaning_of(less_equal, sample=_sample_numbers, pattern="broadcast")
def less_equal_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.less_equal(a, b))


def greater(a: Tensor, b: Tensor) -> Tensor:
    """Return a > b, element by element, with broadcasting.

    A comparison with NaN is False. Zeros of both signs are equal.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of bool, of the broadcast shape.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.greater; ONNX Greater.

    Example::

        >>> A, B = (rc.placeholder((4,), name=name) for name in "AB")
        >>> C = rc.topi.greater(A, B)
        >>> a, b = np.array([1, 2, 3, np.nan], "float32"), np.array([2, 2, 2, np.nan], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [False False  True False]
    """
    require_number(a, "greater")
    return combine_elements(a, b, lambda x, y: x > y, "greater")


@meaning_of(greater, sample=_sample_numbers, pattern="broadcast")
def greater_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.greater(a, b))


def greater_equal(a: Tensor, b: Tensor) -> Tensor:
    """Return a >= b, element by element, with broadcasting.

    A comparison with NaN is False. Zeros of both signs are equal.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of bool, of the broadcast shape.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.greater_equal; ONNX GreaterOrEqual.

    Example::

        >>> A, B = (rc.placeholder((4,), name=name) for name in "AB")
        >>> C = rc.topi.greater_equal(A, B)
        >>> a, b = np.array([1, 2, 3, np.nan], "float32"), np.array([2, 2, 2, np.nan], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [False  True  True False]
    """
    require_number(a, "greater_equal")
    return combine_elements(a, b, lambda x, y: x >= y, "greater_equal")


@meaning_of(greater_equal, sample=_sample_numbers, pattern="broadcast")
def greater_equal_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.greater_equal(a, b))
