"""Operators of two tensors that work element by element, with numpy's broadcasting.

Both operands have one dtype, which is also the result's. Shapes are aligned at the last axis. An
extent that is the constant 1 is repeated; a symbolic extent never is. Integers wrap on overflow.
Floats follow IEEE 754, so NaN propagates. If an operand has no elements, neither has the result.

Reference: ONNX Add, Sub, Mul and Div, and numpy's "General broadcasting rules".
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import as_dtype
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample, one_number_operand, two_operands
from refcomp.topi.elements import combine_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_number, round_once


def add(a: Tensor, b: Tensor) -> Tensor:
    """Return a + b, element by element, with broadcasting.

    Args:
        a: a tensor of any numeric dtype.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not a tensor of numbers, the dtypes differ, or the shapes do not
            broadcast.

    Reference: numpy and ONNX broadcasting. Integers wrap. NaN propagates.

    Example::

        >>> A, B = rc.placeholder((2, 3), name="A"), rc.placeholder((3,), name="B")
        >>> C = rc.topi.add(A, B)
        >>> a, b = np.array([[1, 2, 3], [4, 5, 6]], "float32"), np.array([1, 2, 4], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [[ 2.  4.  7.]
         [ 5.  7. 10.]]
    """
    require_number(a, "add")
    return combine_elements(a, b, lambda x, y: x + y, "add")


def _sample_numbers(draws: Draws) -> Sample:
    return two_operands(draws, draws.number_dtype())


@meaning_of(add, sample=_sample_numbers, pattern="broadcast")
def add_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.add(a, b))


def subtract(a: Tensor, b: Tensor) -> Tensor:
    """Return a - b, element by element, with broadcasting.

    Args:
        a: a tensor of any numeric dtype.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not a tensor of numbers, the dtypes differ, or the shapes do not
            broadcast.

    Reference: numpy and ONNX broadcasting. Integers wrap. NaN propagates.

    Example::

        >>> A, B = rc.placeholder((2, 3), name="A"), rc.placeholder((3,), name="B")
        >>> C = rc.topi.subtract(A, B)
        >>> a, b = np.array([[1, 2, 3], [4, 5, 6]], "float32"), np.array([1, 2, 4], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [[ 0.  0. -1.]
         [ 3.  3.  2.]]
    """
    require_number(a, "subtract")
    return combine_elements(a, b, lambda x, y: x - y, "subtract")


@meaning_of(subtract, sample=_sample_numbers, pattern="broadcast")
def subtract_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.subtract(a, b))


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """Return a * b, element by element, with broadcasting.

    Args:
        a: a tensor of any numeric dtype.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not a tensor of numbers, the dtypes differ, or the shapes do not
            broadcast.

    Reference: numpy and ONNX broadcasting. Integers wrap. NaN propagates.

    Example::

        >>> A, B = rc.placeholder((2, 3), name="A"), rc.placeholder((3,), name="B")
        >>> C = rc.topi.multiply(A, B)
        >>> a, b = np.array([[1, 2, 3], [4, 5, 6]], "float32"), np.array([1, 2, 4], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [[ 1.  4. 12.]
         [ 4. 10. 24.]]
    """
    require_number(a, "multiply")
    return combine_elements(a, b, lambda x, y: x * y, "multiply")


@meaning_of(multiply, sample=_sample_numbers, pattern="broadcast")
def multiply_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.multiply(a, b))


def divide(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, element by element, with broadcasting.

    Integers truncate toward zero, and x / 0 is 0.

    Args:
        a: a tensor of any numeric dtype.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not a tensor of numbers, the dtypes differ, or the shapes do not
            broadcast.

    Reference: numpy and ONNX broadcasting. Integers wrap. Floats follow IEEE 754: x / 0 is
    infinite, and 0 / 0 is NaN.

    Example::

        >>> A, B = rc.placeholder((2, 3), name="A"), rc.placeholder((3,), name="B")
        >>> C = rc.topi.divide(A, B)
        >>> a, b = np.array([[1, 2, 3], [4, 5, 6]], "float32"), np.array([1, 2, 4], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [[1.   1.   0.75]
         [4.   2.5  1.5 ]]
    """
    require_number(a, "divide")
    return combine_elements(a, b, maths.truncdiv, "divide")


def _sample_division(draws: Draws) -> Sample:
    return two_operands(draws, draws.float_dtype())


@meaning_of(divide, sample=_sample_division, pattern="broadcast")
def divide_numpy(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        if as_dtype(a.dtype).is_float:
            return np.asarray(np.divide(a, b))
        # numpy rounds down. Truncation gives one more for a negative fraction.
        is_inexact = np.remainder(a, b) != 0
        is_negative = (a < 0) != (b < 0)
        correction = (is_inexact & is_negative).astype(a.dtype)
        return np.asarray(np.floor_divide(a, b) + correction)


def squared_difference(a: Tensor, b: Tensor) -> Tensor:
    """Return (a - b) * (a - b), element by element, with broadcasting.

    Args:
        a: a tensor of any numeric dtype.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not a tensor of numbers, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TensorFlow squared_difference. Integers wrap. NaN propagates.

    Example::

        >>> A, B = rc.placeholder((3,), name="A"), rc.placeholder((3,), name="B")
        >>> C = rc.topi.squared_difference(A, B)
        >>> a, b = np.array([1, 2, 3], "float32"), np.array([3, 2, -np.inf], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ 4.  0. inf]
    """
    require_number(a, "squared_difference")
    return combine_elements(a, b, lambda x, y: (x - y) * (x - y), "squared_difference")


@meaning_of(squared_difference, sample=_sample_numbers, pattern="broadcast")
def squared_difference_numpy(a: Array, b: Array) -> Array:
    return round_once(lambda x, y: np.square(np.subtract(x, y)), a, b)


def scale(data: Tensor, factor: int | float) -> Tensor:
    """Return `data` times `factor`, which is rounded to the dtype of `data` first.

    Args:
        data: a tensor of any numeric dtype.
        factor: a number.

    Raises:
        UserError: `data` is not a tensor, or its integers cannot represent the factor.

    Example::

        >>> A = rc.placeholder((3,), "int8", name="A")
        >>> print(*rc.oracle.evaluate([rc.topi.scale(A, 2)], {A: np.array([1, -2, 100], "int8")}))
        [  2  -4 -56]
    """
    require_tensor(data, "scale")
    return compute(
        data.shape,
        lambda *index: data[index] * const(factor, data.dtype),
        name="scale",
        tag=INJECTIVE,
    )


def _sample_scale(draws: Draws) -> Sample:
    (data,) = one_number_operand(draws).operands
    assert data is not None
    is_float = data.dtype.kind == "f"
    factor = draws.number(-3, 3) if is_float else draws.integer(0, 3)
    return Sample((data,), {"factor": factor})


@meaning_of(scale, sample=_sample_scale, pattern="broadcast")
def scale_numpy(data: Array, factor: int | float) -> Array:
    return np.asarray(data * data.dtype.type(factor))
