"""Trigonometric functions of each element, with angles in radians.

Each takes a tensor of any shape, with or without elements, and returns a tensor of the same shape.
"""

from __future__ import annotations

import numpy as np

from refcomp.te import maths
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import (
    one_float_operand,
)
from refcomp.topi.elements import map_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_float,
    round_once,
)


def sin(data: Tensor) -> Tensor:
    """Return the sine of x, for each element x of a float tensor.

    An infinite x gives NaN. sin(-0.0) is -0.0. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.sin; ONNX Sin.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.sin(A)
        >>> a = np.array([0, -0.0, 1, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [ 0.     -0.      0.8415     nan]
    """
    require_float(data, "sin")
    return map_elements(data, maths.sin, "sin")


@meaning_of(sin, sample=one_float_operand, pattern="elementwise")
def sin_numpy(data: Array) -> Array:
    return round_once(np.sin, data)


def cos(data: Tensor) -> Tensor:
    """Return the cosine of x, for each element x of a float tensor.

    An infinite x gives NaN. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.cos; ONNX Cos.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.cos(A)
        >>> a = np.array([0, 1, 2, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [ 1.      0.5403 -0.4161     nan]
    """
    require_float(data, "cos")
    return map_elements(data, maths.cos, "cos")


@meaning_of(cos, sample=one_float_operand, pattern="elementwise")
def cos_numpy(data: Array) -> Array:
    return round_once(np.cos, data)


def tan(data: Tensor) -> Tensor:
    """Return the tangent of x, for each element x of a float tensor.

    An infinite x gives NaN. tan(-0.0) is -0.0. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.tan; ONNX Tan.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.tan(A)
        >>> a = np.array([0, -0.0, 1, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [ 0.     -0.      1.5574     nan]
    """
    require_float(data, "tan")
    return map_elements(data, maths.tan, "tan")


@meaning_of(tan, sample=one_float_operand, pattern="elementwise")
def tan_numpy(data: Array) -> Array:
    return round_once(np.tan, data)


def asin(data: Tensor) -> Tensor:
    """Return the angle whose sine is x, for each element x of a float tensor.

    It is in [-pi/2, pi/2]. An x outside of [-1, 1] gives NaN. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.asin; ONNX Asin.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.asin(A)
        >>> a = np.array([0, 1, -1, 2], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [ 0.      1.5708 -1.5708     nan]
    """
    require_float(data, "asin")
    return map_elements(data, maths.asin, "asin")


@meaning_of(asin, sample=one_float_operand, pattern="elementwise")
def asin_numpy(data: Array) -> Array:
    return round_once(np.arcsin, data)


def acos(data: Tensor) -> Tensor:
    """Return the angle whose cosine is x, for each element x of a float tensor.

    It is in [0, pi]. An x outside of [-1, 1] gives NaN. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.acos; ONNX Acos.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.acos(A)
        >>> a = np.array([1, 0, -1, 2], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [0.     1.5708 3.1416    nan]
    """
    require_float(data, "acos")
    return map_elements(data, maths.acos, "acos")


@meaning_of(acos, sample=one_float_operand, pattern="elementwise")
def acos_numpy(data: Array) -> Array:
    return round_once(np.arccos, data)


def atan(data: Tensor) -> Tensor:
    """Return the angle whose tangent is x, for each element x of a float tensor.

    It is -pi/2 at minus infinity, and pi/2 at infinity. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.atan; ONNX Atan.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.atan(A)
        >>> a = np.array([0, 1, -np.inf, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [ 0.      0.7854 -1.5708  1.5708]
    """
    require_float(data, "atan")
    return map_elements(data, maths.atan, "atan")


@meaning_of(atan, sample=one_float_operand, pattern="elementwise")
def atan_numpy(data: Array) -> Array:
    return round_once(np.arctan, data)
