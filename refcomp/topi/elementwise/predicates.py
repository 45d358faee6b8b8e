"""Predicates and bits of each element.

Each takes a tensor of any shape, with or without elements, and returns a tensor of the same shape.
"""

from __future__ import annotations

import math

import numpy as np

from refcomp.ir.expr import EQ, Expr, Not
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import (
    Draws,
    Sample,
    one_float_operand,
    one_integer_operand,
)
from refcomp.topi.elements import map_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_bool,
    require_float,
    require_integer,
)


def _one_bool_operand(draws: Draws) -> Sample:
    return Sample((draws.array(draws.shape(), "bool"),))


def _bits_of(data: Array) -> Array:
    """Return the bits of integers along a further axis, the most significant one first."""
    width = data.dtype.itemsize * 8
    shifts = np.arange(width - 1, -1, -1, dtype=data.dtype)
    return np.asarray((data[..., np.newaxis] >> shifts) & 1)


def isnan(data: Tensor) -> Tensor:
    """Return True for each element that is NaN, of a float tensor.

    An infinity is not a NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of bool, of the shape of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.isnan; ONNX IsNaN.

    Example::

        >>> A = rc.placeholder((3,), "float32", name="A")
        >>> B = rc.topi.isnan(A)
        >>> a = np.array([1, np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [False False  True]
    """
    require_float(data, "isnan")
    return map_elements(data, maths.isnan, "isnan")


@meaning_of(isnan, sample=one_float_operand, pattern="elementwise")
def isnan_numpy(data: Array) -> Array:
    return np.asarray(np.isnan(data))


def isinf(
    data: Tensor, *, detect_negative: bool = True, detect_positive: bool = True
) -> Tensor:
    """Return True for each element that is an infinity, of a float tensor.

    NaN is not infinite.

    Args:
        data: a tensor of a float dtype.
        detect_negative: False to give False for minus infinity.
        detect_positive: False to give False for infinity.

    Returns:
        A tensor of bool, of the shape of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.isinf; ONNX IsInf.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.isinf(A, detect_positive=False)
        >>> a = np.array([1, -np.inf, np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [False  True False False]
    """
    require_float(data, "isinf")

    def is_detected(x: Expr) -> Expr:
        if detect_negative == detect_positive:
            return maths.all(maths.isinf(x), detect_negative)
        wanted = -math.inf if detect_negative else math.inf
        return EQ(x, const(wanted, data.dtype))

    return map_elements(data, is_detected, "isinf")


def _sample_isinf(draws: Draws) -> Sample:
    flags = {"detect_negative": draws.flag(), "detect_positive": draws.flag()}
    return Sample(one_float_operand(draws).operands, flags)


@meaning_of(isinf, sample=_sample_isinf, pattern="elementwise")
def isinf_numpy(
    data: Array, *, detect_negative: bool = True, detect_positive: bool = True
) -> Array:
    negative = np.isneginf(data) & detect_negative
    positive = np.isposinf(data) & detect_positive
    return np.asarray(negative | positive)


def isfinite(data: Tensor) -> Tensor:
    """Return True for each element that is neither infinite nor NaN, of a float tensor.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of bool, of the shape of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.isfinite.

    Example::

        >>> A = rc.placeholder((3,), "float32", name="A")
        >>> B = rc.topi.isfinite(A)
        >>> a = np.array([1, -np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [ True False False]
    """
    require_float(data, "isfinite")
    return map_elements(data, maths.isfinite, "isfinite")


@meaning_of(isfinite, sample=one_float_operand, pattern="elementwise")
def isfinite_numpy(data: Array) -> Array:
    return np.asarray(np.isfinite(data))


def logical_not(data: Tensor) -> Tensor:
    """Return True for each element that is False, and False for each other.

    Args:
        data: a tensor of bool.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.logical_not; ONNX Not.

    Example::

        >>> A = rc.placeholder((2,), "bool", name="A")
        >>> B = rc.topi.logical_not(A)
        >>> a = np.array([True, False], "bool")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [False  True]
    """
    require_bool(data, "logical_not")
    return map_elements(data, Not, "logical_not")


@meaning_of(logical_not, sample=_one_bool_operand, pattern="elementwise")
def logical_not_numpy(data: Array) -> Array:
    return np.asarray(np.logical_not(data))


def bitwise_not(data: Tensor) -> Tensor:
    """Return the complement of the bits of each integer.

    Args:
        data: a tensor of integers.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.bitwise_not; ONNX BitwiseNot.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> B = rc.topi.bitwise_not(A)
        >>> a = np.array([0, 5, -1], "int32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [-1 -6  0]
    """
    require_integer(data, "bitwise_not")
    return map_elements(data, lambda x: ~x, "bitwise_not")


@meaning_of(bitwise_not, sample=one_integer_operand, pattern="elementwise")
def bitwise_not_numpy(data: Array) -> Array:
    return np.asarray(np.bitwise_not(data))


def popcount(data: Tensor) -> Tensor:
    """Return the number of bits that are 1 in each integer.

    A negative integer counts the bits of its two's complement.

    Args:
        data: a tensor of integers.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: LLVM ctpop; C23 stdc_count_ones.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> B = rc.topi.popcount(A)
        >>> a = np.array([0, 5, -1], "int32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [ 0  2 32]
    """
    require_integer(data, "popcount")
    return map_elements(data, maths.popcount, "popcount")


@meaning_of(popcount, sample=one_integer_operand, pattern="elementwise")
def popcount_numpy(data: Array) -> Array:
    bits = _bits_of(data)
    return np.asarray(np.sum(bits, axis=-1), data.dtype)


def clz(data: Tensor) -> Tensor:
    """Return the number of leading zero bits of each integer.

    clz(0) is the width of the dtype in bits.

    Args:
        data: a tensor of integers.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: LLVM ctlz; C23 stdc_leading_zeros.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> B = rc.topi.clz(A)
        >>> a = np.array([0, 5, -1], "int32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [32 29  0]
    """
    require_integer(data, "clz")
    return map_elements(data, maths.clz, "clz")


@meaning_of(clz, sample=one_integer_operand, pattern="elementwise")
def clz_numpy(data: Array) -> Array:
    # Zeros remain zeros up to the first bit that is 1.
    seen = np.maximum.accumulate(_bits_of(data), axis=-1)
    return np.asarray(np.sum(seen == 0, axis=-1), data.dtype)
