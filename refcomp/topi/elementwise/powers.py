"""Squares, roots, reciprocals and the error function of each element.

Each takes a tensor of any shape, with or without elements, and returns a tensor of the same shape.
"""

from __future__ import annotations

import math

import numpy as np

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

# numpy has no error function.
_erf = np.vectorize(math.erf, otypes=[np.float64])


def square(data: Tensor) -> Tensor:
    """Return x * x for each element x.

    Integers wrap. NaN gives NaN.

    Args:
        data: a tensor of floats or integers.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: numpy.square.

    Example::

        >>> A = rc.placeholder((3,), "float32", name="A")
        >>> B = rc.topi.square(A)
        >>> a = np.array([3, -0.5, -np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [9.   0.25  inf]
    """
    require_number(data, "square")
    return map_elements(data, lambda x: x * x, "square")


@meaning_of(square, sample=one_number_operand, pattern="elementwise")
def square_numpy(data: Array) -> Array:
    return round_once(np.square, data)


def reciprocal(data: Tensor) -> Tensor:
    """Return 1 / x, for each element x of a float tensor.

    reciprocal(0.0) is infinity and reciprocal(-0.0) minus infinity. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: ONNX Reciprocal.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.reciprocal(A)
        >>> a = np.array([4, -0.0, np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [0.25 -inf 0.    nan]
    """
    require_float(data, "reciprocal")
    return map_elements(data, lambda x: const(1.0, data.dtype) / x, "reciprocal")


@meaning_of(reciprocal, sample=one_float_operand, pattern="elementwise")
def reciprocal_numpy(data: Array) -> Array:
    return round_once(np.reciprocal, data)


def sqrt(data: Tensor) -> Tensor:
    """Return the square root of x, for each element x of a float tensor.

    It is correctly rounded. sqrt(-0.0) is -0.0. A negative x gives NaN. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.sqrt; ONNX Sqrt.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.sqrt(A)
        >>> a = np.array([4, 2.25, -0.0, -1, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b)
        [ 2.   1.5 -0.   nan  inf]
    """
    require_float(data, "sqrt")
    return map_elements(data, maths.sqrt, "sqrt")


@meaning_of(sqrt, sample=one_float_operand, pattern="elementwise")
def sqrt_numpy(data: Array) -> Array:
    return round_once(np.sqrt, data)


def rsqrt(data: Tensor) -> Tensor:
    """Return 1 / sqrt(x), for each element x of a float tensor.

    rsqrt(0.0) is infinity and rsqrt(-0.0) minus infinity. A negative x gives NaN. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.rsqrt.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.rsqrt(A)
        >>> a = np.array([4, 2, 0.0, -1, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [0.5    0.7071    inf    nan 0.    ]
    """
    require_float(data, "rsqrt")
    return map_elements(data, maths.rsqrt, "rsqrt")


@meaning_of(rsqrt, sample=one_float_operand, pattern="elementwise")
def rsqrt_numpy(data: Array) -> Array:
    return round_once(lambda x: 1 / np.sqrt(x), data)


def erf(data: Tensor) -> Tensor:
    """Return the error function of x, for each element x of a float tensor.

    It is 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x: -1 at minus infinity, and 1 at
    infinity. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.erf; ONNX Erf.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.erf(A)
        >>> a = np.array([0, 1, -np.inf, np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [ 0.      0.8427 -1.      1.         nan]
    """
    require_float(data, "erf")
    return map_elements(data, maths.erf, "erf")


@meaning_of(erf, sample=one_float_operand, pattern="elementwise")
def erf_numpy(data: Array) -> Array:
    return round_once(_erf, data)
