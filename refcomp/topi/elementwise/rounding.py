"""Integers near each element, as floats, and signs.

Each takes a tensor of any shape, with or without elements, and returns a tensor of the same shape.
"""

from __future__ import annotations

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import (
    one_float_operand,
    one_number_operand,
)
from refcomp.topi.elements import map_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_float,
    require_number,
    round_once,
)


def floor(data: Tensor) -> Tensor:
    """Return the largest integer that is not above x, for each element x of a float tensor.

    A zero or an infinity gives itself. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.floor; ONNX Floor.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.floor(A)
        >>> a = np.array([1.5, -1.5, -0.0, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [ 1. -2. -0. inf]
    """
    require_float(data, "floor")
    return map_elements(data, maths.floor, "floor")


@meaning_of(floor, sample=one_float_operand, pattern="elementwise")
def floor_numpy(data: Array) -> Array:
    return round_once(np.floor, data)


def ceil(data: Tensor) -> Tensor:
    """Return the smallest integer that is not below x, for each element x of a float tensor.

    A zero or an infinity gives itself. An x between -1 and 0 gives -0.0. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.ceil; ONNX Ceil.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.ceil(A)
        >>> a = np.array([1.5, -1.5, -0.5, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [ 2. -1. -0. inf]
    """
    require_float(data, "ceil")
    return map_elements(data, maths.ceil, "ceil")


@meaning_of(ceil, sample=one_float_operand, pattern="elementwise")
def ceil_numpy(data: Array) -> Array:
    return round_once(np.ceil, data)


def round(data: Tensor) -> Tensor:
    """Return the integer nearest to x, for each element x of a float tensor.

    A tie goes to the even integer. A zero or an infinity gives itself. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: ONNX Round; roundToIntegralTiesToEven of IEEE 754-2019. Ties of TVM topi.round go
    away from 0.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.round(A)
        >>> a = np.array([0.5, 1.5, -2.5, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [ 0.  2. -2. inf]
    """
    require_float(data, "round")
    return map_elements(data, maths.round, "round")


@meaning_of(round, sample=one_float_operand, pattern="elementwise")
def round_numpy(data: Array) -> Array:
    return round_once(np.rint, data)


def trunc(data: Tensor) -> Tensor:
    """Return x without its fraction, for each element x of a float tensor.

    A zero or an infinity gives itself. An x between -1 and 0 gives -0.0. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.trunc.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.trunc(A)
        >>> a = np.array([1.5, -1.5, -0.5, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [ 1. -1. -0. inf]
    """
    require_float(data, "trunc")
    return map_elements(data, maths.trunc, "trunc")


@meaning_of(trunc, sample=one_float_operand, pattern="elementwise")
def trunc_numpy(data: Array) -> Array:
    return round_once(np.trunc, data)


def abs(data: Tensor) -> Tensor:
    """Return the absolute value of each element.

    The minimum of a signed integer dtype stays, because integers wrap. NaN gives NaN.

    Args:
        data: a tensor of floats or integers.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.abs; ONNX Abs.

    Example::

        >>> A = rc.placeholder((3,), "int8", name="A")
        >>> B = rc.topi.abs(A)
        >>> a = np.array([-5, 5, -128], "int8")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [   5    5 -128]
    """
    require_number(data, "abs")
    return map_elements(data, maths.abs, "abs")


@meaning_of(abs, sample=one_number_operand, pattern="elementwise")
def abs_numpy(data: Array) -> Array:
    return round_once(np.abs, data)


def negative(data: Tensor) -> Tensor:
    """Return -x for each element x.

    Integers wrap. NaN gives NaN.

    Args:
        data: a tensor of floats or integers.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.negative; ONNX Neg.

    Example::

        >>> A = rc.placeholder((3,), "int8", name="A")
        >>> B = rc.topi.negative(A)
        >>> a = np.array([-5, 5, -128], "int8")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [   5   -5 -128]
    """
    require_number(data, "negative")
    return map_elements(data, lambda x: -x, "negative")


@meaning_of(negative, sample=one_number_operand, pattern="elementwise")
def negative_numpy(data: Array) -> Array:
    return round_once(np.negative, data)


def sign(data: Tensor) -> Tensor:
    """Return 1, -1 or 0 for each element that is greater than, less than or equal to 0.

    NaN gives NaN.

    Args:
        data: a tensor of floats or integers.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.sign; ONNX Sign.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.sign(A)
        >>> a = np.array([3, -0.5, 0, -np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [ 1. -1.  0. -1. nan]
    """
    require_number(data, "sign")
    zero = const(0, data.dtype)
    one = const(1, data.dtype)

    def signed(x: Expr) -> Expr:
        # Zero and NaN give themselves.
        result = maths.select(x < zero, zero - one, x)
        return maths.select(x > zero, one, result)

    return map_elements(data, signed, "sign")


@meaning_of(sign, sample=one_number_operand, pattern="elementwise")
def sign_numpy(data: Array) -> Array:
    return round_once(np.sign, data)
