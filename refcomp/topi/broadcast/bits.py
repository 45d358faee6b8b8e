"""Logic of bools and bits of integers: of two tensors, element by element.

Shapes broadcast as in numpy: they are aligned at the last axis, and the constant extent 1 is
repeated.
"""

from __future__ import annotations

import numpy as np

from refcomp.ir.expr import NE
from refcomp.te import maths
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample, two_operands
from refcomp.topi.elements import combine_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_bool,
    require_integer,
)


def _sample_bools(draws: Draws) -> Sample:
    return two_operands(draws, "bool")


def _sample_integers(draws: Draws) -> Sample:
    return two_operands(draws, draws.integer_dtype())


def logical_and(a: Tensor, b: Tensor) -> Tensor:
    """Return True where both a and b hold, with broadcasting.

    Args:
        a: a tensor of bool.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of bool, of the broadcast shape.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.logical_and; ONNX And.

    Example::

        >>> A, B = (rc.placeholder((3,), "bool", name=name) for name in "AB")
        >>> C = rc.topi.logical_and(A, B)
        >>> a, b = np.array([True, True, False], "bool"), np.array([True, False, False], "bool")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ True False False]
    """
    require_bool(a, "logical_and")
    return combine_elements(a, b, maths.all, "logical_and")


@meaning_of(logical_and, sample=_sample_bools, pattern="broadcast")
def logical_and_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.logical_and(a, b))


def logical_or(a: Tensor, b: Tensor) -> Tensor:
    """Return True where a or b holds, with broadcasting.

    Args:
        a: a tensor of bool.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of bool, of the broadcast shape.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.logical_or; ONNX Or.

    Example::

        >>> A, B = (rc.placeholder((3,), "bool", name=name) for name in "AB")
        >>> C = rc.topi.logical_or(A, B)
        >>> a, b = np.array([True, True, False], "bool"), np.array([True, False, False], "bool")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ True  True False]
    """
    require_bool(a, "logical_or")
    return combine_elements(a, b, maths.any, "logical_or")


@meaning_of(logical_or, sample=_sample_bools, pattern="broadcast")
def logical_or_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.logical_or(a, b))


def logical_xor(a: Tensor, b: Tensor) -> Tensor:
    """Return True where exactly one of a and b holds, with broadcasting.

    Args:
        a: a tensor of bool.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of bool, of the broadcast shape.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.logical_xor; ONNX Xor.

    Example::

        >>> A, B = (rc.placeholder((3,), "bool", name=name) for name in "AB")
        >>> C = rc.topi.logical_xor(A, B)
        >>> a, b = np.array([True, True, False], "bool"), np.array([True, False, False], "bool")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [False  True False]
    """
    require_bool(a, "logical_xor")
    return combine_elements(a, b, lambda x, y: NE(x, y), "logical_xor")


@meaning_of(logical_xor, sample=_sample_bools, pattern="broadcast")
def logical_xor_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.logical_xor(a, b))


def bitwise_and(a: Tensor, b: Tensor) -> Tensor:
    """Return the bits that are set in both a and b, element by element, with broadcasting.

    Args:
        a: a tensor of integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.bitwise_and; ONNX BitwiseAnd.

    Example::

        >>> A, B = (rc.placeholder((3,), "int32", name=name) for name in "AB")
        >>> C = rc.topi.bitwise_and(A, B)
        >>> a, b = np.array([6, -1, 12], "int32"), np.array([3, 5, 10], "int32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [2 5 8]
    """
    require_integer(a, "bitwise_and")
    return combine_elements(a, b, lambda x, y: x & y, "bitwise_and")


@meaning_of(bitwise_and, sample=_sample_integers, pattern="broadcast")
def bitwise_and_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.bitwise_and(a, b))


def bitwise_or(a: Tensor, b: Tensor) -> Tensor:
    """Return the bits that are set in a or b, element by element, with broadcasting.

    Args:
        a: a tensor of integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.bitwise_or; ONNX BitwiseOr.

    Example::

        >>> A, B = (rc.placeholder((3,), "int32", name=name) for name in "AB")
        >>> C = rc.topi.bitwise_or(A, B)
        >>> a, b = np.array([6, -1, 12], "int32"), np.array([3, 5, 10], "int32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ 7 -1 14]
    """
    require_integer(a, "bitwise_or")
    return combine_elements(a, b, lambda x, y: x | y, "bitwise_or")


@meaning_of(bitwise_or, sample=_sample_integers, pattern="broadcast")
def bitwise_or_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.bitwise_or(a, b))


def bitwise_xor(a: Tensor, b: Tensor) -> Tensor:
    """Return the bits that differ in a and b, element by element, with broadcasting.

    Args:
        a: a tensor of integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.bitwise_xor; ONNX BitwiseXor.

    Example::

        >>> A, B = (rc.placeholder((3,), "int32", name=name) for name in "AB")
        >>> C = rc.topi.bitwise_xor(A, B)
        >>> a, b = np.array([6, -1, 12], "int32"), np.array([3, 5, 10], "int32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ 5 -6  6]
    """
    require_integer(a, "bitwise_xor")
    return combine_elements(a, b, lambda x, y: x ^ y, "bitwise_xor")


@meaning_of(bitwise_xor, sample=_sample_integers, pattern="broadcast")
def bitwise_xor_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.bitwise_xor(a, b))


def left_shift(a: Tensor, b: Tensor) -> Tensor:
    """Return a, shifted left by b bits, element by element, with broadcasting.

    Bits that leave the dtype are lost. A count that is negative, or not less than the width of the
    dtype, gives 0.

    Args:
        a: a tensor of integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.left_shift; ONNX BitShift.

    Example::

        >>> A, B = (rc.placeholder((4,), "int32", name=name) for name in "AB")
        >>> C = rc.topi.left_shift(A, B)
        >>> a, b = np.array([1, 5, 3, 3], "int32"), np.array([0, 2, 31, 32], "int32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [          1          20 -2147483648           0]
    """
    require_integer(a, "left_shift")
    return combine_elements(a, b, lambda x, y: x << y, "left_shift")


@meaning_of(left_shift, sample=_sample_integers, pattern="broadcast")
def left_shift_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.left_shift(a, b))


def right_shift(a: Tensor, b: Tensor) -> Tensor:
    """Return a, shifted right by b bits, element by element, with broadcasting.

    A signed integer is filled with its sign bit. A count that is negative, or not less than the
    width of the dtype, gives 0, or -1 for a negative integer.

    Args:
        a: a tensor of integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.right_shift; ONNX BitShift.

    Example::

        >>> A, B = (rc.placeholder((4,), "int32", name=name) for name in "AB")
        >>> C = rc.topi.right_shift(A, B)
        >>> a, b = np.array([1, -5, 12, -3], "int32"), np.array([0, 1, 2, 32], "int32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ 1 -3  3 -1]
    """
    require_integer(a, "right_shift")
    return combine_elements(a, b, lambda x, y: x >> y, "right_shift")


@meaning_of(right_shift, sample=_sample_integers, pattern="broadcast")
def right_shift_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.right_shift(a, b))
