"""Hyperbolic functions of each element, and their inverses.

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


def sinh(data: Tensor) -> Tensor:
    """Return (exp(x) - exp(-x)) / 2, for each element x of a float tensor.

    An infinite x gives itself. A result beyond the largest number is infinite. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.sinh; ONNX Sinh.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.sinh(A)
        >>> a = np.array([0, 1, -90, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [0.     1.1752   -inf    inf]
    """
    require_float(data, "sinh")
    return map_elements(data, maths.sinh, "sinh")


@meaning_of(sinh, sample=one_float_operand, pattern="elementwise")
def sinh_numpy(data: Array) -> Array:
    return round_once(np.sinh, data)


def cosh(data: Tensor) -> Tensor:
    """Return (exp(x) + exp(-x)) / 2, for each element x of a float tensor.

    An infinite x gives infinity. A result above the largest number is infinite. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.cosh; ONNX Cosh.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.cosh(A)
        >>> a = np.array([0, 1, -90, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [1.     1.5431    inf    inf]
    """
    require_float(data, "cosh")
    return map_elements(data, maths.cosh, "cosh")


@meaning_of(cosh, sample=one_float_operand, pattern="elementwise")
def cosh_numpy(data: Array) -> Array:
    return round_once(np.cosh, data)


def asinh(data: Tensor) -> Tensor:
    """Return the number whose hyperbolic sine is x, for each element x of a float tensor.

    An infinite x gives itself. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.asinh; ONNX Asinh.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.asinh(A)
        >>> a = np.array([0, 1, -np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [0.     0.8814   -inf    nan]
    """
    require_float(data, "asinh")
    return map_elements(data, maths.asinh, "asinh")


@meaning_of(asinh, sample=one_float_operand, pattern="elementwise")
def asinh_numpy(data: Array) -> Array:
    return round_once(np.arcsinh, data)


def acosh(data: Tensor) -> Tensor:
    """Return the number >= 0 whose hyperbolic cosine is x, for each element x of a float tensor.

    acosh(inf) is infinity. An x below 1 gives NaN. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.acosh; ONNX Acosh.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.acosh(A)
        >>> a = np.array([1, 2, 0.5, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [0.    1.317   nan   inf]
    """
    require_float(data, "acosh")
    return map_elements(data, maths.acosh, "acosh")


@meaning_of(acosh, sample=one_float_operand, pattern="elementwise")
def acosh_numpy(data: Array) -> Array:
    return round_once(np.arccosh, data)


def atanh(data: Tensor) -> Tensor:
    """Return the number whose hyperbolic tangent is x, for each element x of a float tensor.

    It is infinite at -1 and 1. An x outside of [-1, 1] gives NaN. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.atanh; ONNX Atanh.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.atanh(A)
        >>> a = np.array([0, 0.5, 1, -1, 2], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [0.     0.5493    inf   -inf    nan]
    """
    require_float(data, "atanh")
    return map_elements(data, maths.atanh, "atanh")


@meaning_of(atanh, sample=one_float_operand, pattern="elementwise")
def atanh_numpy(data: Array) -> Array:
    return round_once(np.arctanh, data)
