"""Exponentials and logarithms of each element.

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


def exp(data: Tensor) -> Tensor:
    """Return e to the power x, for each element x of a float tensor.

    exp(-inf) is 0. A result above the largest number is infinite. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.exp; ONNX Exp.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.exp(A)
        >>> a = np.array([0, 1, 89, -np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [1.     2.7183    inf 0.        nan]
    """
    require_float(data, "exp")
    return map_elements(data, maths.exp, "exp")


@meaning_of(exp, sample=one_float_operand, pattern="elementwise")
def exp_numpy(data: Array) -> Array:
    return round_once(np.exp, data)


def exp2(data: Tensor) -> Tensor:
    """Return 2 to the power x, for each element x of a float tensor.

    exp2(-inf) is 0. A result above the largest number is infinite. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: numpy.exp2.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.exp2(A)
        >>> a = np.array([0, 0.5, 128, -np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [1.     1.4142    inf 0.        nan]
    """
    require_float(data, "exp2")
    return map_elements(data, maths.exp2, "exp2")


@meaning_of(exp2, sample=one_float_operand, pattern="elementwise")
def exp2_numpy(data: Array) -> Array:
    return round_once(np.exp2, data)


def exp10(data: Tensor) -> Tensor:
    """Return 10 to the power x, for each element x of a float tensor.

    exp10(-inf) is 0. A result above the largest number is infinite. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM te.exp10; exp10 of C23.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.exp10(A)
        >>> a = np.array([0, 2, 39, -np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [  1. 100.  inf   0.  nan]
    """
    require_float(data, "exp10")
    return map_elements(data, maths.exp10, "exp10")


@meaning_of(exp10, sample=one_float_operand, pattern="elementwise")
def exp10_numpy(data: Array) -> Array:
    return round_once(lambda x: np.power(10.0, x), data)


def expm1(data: Tensor) -> Tensor:
    """Return exp(x) - 1, for each element x of a float tensor.

    It is accurate also where x is close to 0. expm1(-inf) is -1. A result above the largest number
    is infinite. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: numpy.expm1.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.expm1(A)
        >>> a = np.array([0, 1, 89, -np.inf, np.nan], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [ 0.      1.7183     inf -1.         nan]
    """
    require_float(data, "expm1")
    return map_elements(data, maths.expm1, "expm1")


@meaning_of(expm1, sample=one_float_operand, pattern="elementwise")
def expm1_numpy(data: Array) -> Array:
    return round_once(np.expm1, data)


def log(data: Tensor) -> Tensor:
    """Return the natural logarithm of x, for each element x of a float tensor.

    log(0) is minus infinity. A negative x gives NaN. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.log; ONNX Log.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.log(A)
        >>> a = np.array([1, 2, 0, -1, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [0.     0.6931   -inf    nan    inf]
    """
    require_float(data, "log")
    return map_elements(data, maths.log, "log")


@meaning_of(log, sample=one_float_operand, pattern="elementwise")
def log_numpy(data: Array) -> Array:
    return round_once(np.log, data)


def log2(data: Tensor) -> Tensor:
    """Return the logarithm of x to base 2, for each element x of a float tensor.

    log2(0) is minus infinity. A negative x gives NaN. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.log2.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.log2(A)
        >>> a = np.array([1, 8, 0, -1, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [  0.   3. -inf  nan  inf]
    """
    require_float(data, "log2")
    return map_elements(data, maths.log2, "log2")


@meaning_of(log2, sample=one_float_operand, pattern="elementwise")
def log2_numpy(data: Array) -> Array:
    return round_once(np.log2, data)


def log10(data: Tensor) -> Tensor:
    """Return the logarithm of x to base 10, for each element x of a float tensor.

    log10(0) is minus infinity. A negative x gives NaN. NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.log10.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.log10(A)
        >>> a = np.array([1, 1000, 0, -1, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [  0.   3. -inf  nan  inf]
    """
    require_float(data, "log10")
    return map_elements(data, maths.log10, "log10")


@meaning_of(log10, sample=one_float_operand, pattern="elementwise")
def log10_numpy(data: Array) -> Array:
    return round_once(np.log10, data)


def log1p(data: Tensor) -> Tensor:
    """Return log(1 + x), for each element x of a float tensor.

    It is accurate also where x is close to 0. log1p(-1) is minus infinity. An x below -1 gives NaN.
    NaN gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: numpy.log1p.

    Example::

        >>> A = rc.placeholder((5,), "float32", name="A")
        >>> B = rc.topi.log1p(A)
        >>> a = np.array([0, 1, -1, -2, np.inf], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.round(4))
        [0.     0.6931   -inf    nan    inf]
    """
    require_float(data, "log1p")
    return map_elements(data, maths.log1p, "log1p")


@meaning_of(log1p, sample=one_float_operand, pattern="elementwise")
def log1p_numpy(data: Array) -> Array:
    return round_once(np.log1p, data)
