"""Activations, clip and copies: operators of one tensor that work element by element.

Each takes a tensor of any shape, with or without elements, and returns a tensor of the same shape
and dtype. NaN stays NaN. Reference: the ONNX operators of the same names.
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample, one_float_operand, one_number_operand
from refcomp.topi.elements import map_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_float, require_number, widen


def relu(data: Tensor) -> Tensor:
    """Return max(x, 0) for each element x, of any numeric dtype.

    Args:
        data: a tensor of any numeric dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: ONNX Relu. NaN propagates.

    Example::

        >>> A = rc.placeholder((3,), "float32", name="A")
        >>> B = rc.topi.relu(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([-1, 2, np.nan], "float32")}))
        [ 0.  2. nan]
    """
    return map_elements(data, lambda x: maths.maximum(x, const(0, data.dtype)), "relu")


@meaning_of(relu, sample=one_number_operand, pattern="elementwise")
def relu_numpy(data: Array) -> Array:
    return np.asarray(np.maximum(data, data.dtype.type(0)))


def sigmoid(data: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)) for each element x of a float tensor.

    It is 0 at minus infinity, and 1 at infinity.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: ONNX Sigmoid. NaN propagates.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.sigmoid(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([0, -np.inf, np.inf, np.nan], "float32")}))
        [0.5 0.  1.  nan]
    """
    require_float(data, "sigmoid")
    return map_elements(data, maths.sigmoid, "sigmoid")


@meaning_of(sigmoid, sample=one_float_operand, pattern="elementwise")
def sigmoid_numpy(data: Array) -> Array:
    # exp(-x) may overflow to infinity, which gives the right value: 0.
    with np.errstate(over="ignore"):
        power = np.exp(-widen(data))
        return np.asarray(1 / (1 + power), data.dtype)


def tanh(data: Tensor) -> Tensor:
    """Return the hyperbolic tangent of each element of a float tensor.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: ONNX Tanh. NaN propagates.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.tanh(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([0, -np.inf, np.inf, np.nan], "float32")}))
        [ 0. -1.  1. nan]
    """
    require_float(data, "tanh")
    return map_elements(data, maths.tanh, "tanh")


@meaning_of(tanh, sample=one_float_operand, pattern="elementwise")
def tanh_numpy(data: Array) -> Array:
    return np.asarray(np.tanh(widen(data)), data.dtype)


def clip(data: Tensor, minimum: float = -math.inf, maximum: float = math.inf) -> Tensor:
    """Return min(max(x, minimum), maximum) for each element x, of any numeric dtype.

    For floats, the bounds are rounded to the dtype of `data` first. For integers, they are
    integers, and a bound that no element can pass does nothing. If minimum > maximum, each element
    becomes the maximum.

    Args:
        data: a tensor of any numeric dtype.
        minimum: the lower bound; by default none.
        maximum: the upper bound; by default none.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype. A bound of integers has a
            fraction or is NaN, or all elements would become an integer that the dtype does not
            have.

    Reference: ONNX Clip. NaN propagates.

    Example::

        >>> A = rc.placeholder((4,), "float32", name="A")
        >>> B = rc.topi.clip(A, minimum=0, maximum=6)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([-1, 3, 9, np.nan], "float32")}))
        [ 0.  3.  6. nan]
    """
    require_number(data, "clip")
    low: float = minimum
    high: float = maximum
    if data.dtype.is_int:
        low, high = _integer_bounds(data, minimum, maximum)

    def clipped(x: Expr) -> Expr:
        above = maths.maximum(x, const(low, data.dtype))
        return maths.minimum(above, const(high, data.dtype))

    return map_elements(data, clipped, "clip")


def _integer_bounds(data: Tensor, minimum: float, maximum: float) -> tuple[int, int]:
    """Return the bounds as integers of the dtype of `data`."""
    dtype = data.dtype
    for name, bound in (("minimum", minimum), ("maximum", maximum)):
        if not isinstance(bound, Real):
            raise UserError(
                f"clip is given {bound!r} as its {name}",
                remedy="pass a number; math.inf or -math.inf for no bound",
            )
        if bound not in (-math.inf, math.inf) and bound != bound // 1:
            raise UserError(
                f"clip cannot have the {name} {bound}",
                why=f"the elements are {dtype}",
                remedy=f'use an integer, or convert {data.name} first: .astype("float32")',
                earlier=[data.declaration()],
            )
    is_below = maximum < dtype.min_value
    if is_below or min(minimum, maximum) > dtype.max_value:
        shown = f"maximum {maximum}" if is_below else f"minimum {minimum}"
        raise UserError(
            f"clip cannot have the {shown}, which is not a value of {dtype}",
            why=f"the values of {dtype} are {dtype.min_value} to {dtype.max_value}",
            remedy="use a bound among them, or convert the tensor to a wider dtype first",
            earlier=[data.declaration()],
        )
    least = dtype.min_value
    most = dtype.max_value
    return int(min(max(minimum, least), most)), int(min(maximum, most))


def _sample_clip(draws: Draws) -> Sample:
    data = draws.array(draws.shape(), draws.number_dtype())
    low = draws.number(-3, 1)
    high = draws.number(-1, 3)
    if data.dtype.kind in "iu":  # bfloat16 is of kind V
        low = float(round(low))
        high = float(round(high)) if data.dtype.kind == "i" else float(abs(round(high)))
    return Sample((data,), {"minimum": low, "maximum": high})


@meaning_of(clip, sample=_sample_clip, pattern="elementwise")
def clip_numpy(
    data: Array, minimum: float = -math.inf, maximum: float = math.inf
) -> Array:
    # Not np.clip: it leaves the order of the bounds open when minimum > maximum.
    kind = data.dtype.type
    low: float = minimum
    high: float = maximum
    if data.dtype.kind in "iu":  # bfloat16 is of kind V
        limits = np.iinfo(data.dtype)
        low = int(min(max(minimum, limits.min), limits.max))
        high = int(min(maximum, limits.max))
    above = np.maximum(data, kind(low))
    return np.asarray(np.minimum(above, kind(high)))


def identity(data: Tensor) -> Tensor:
    """Return a copy: the same elements in memory of their own, of any dtype.

    Args:
        data: a tensor of any dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor.

    Reference: ONNX Identity.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> B = rc.topi.identity(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, 2, 3], "int32")}))
        [1 2 3]
    """
    return map_elements(data, lambda x: x, "identity")


@meaning_of(identity, sample=one_number_operand, pattern="elementwise")
def identity_numpy(data: Array) -> Array:
    return data.copy()
