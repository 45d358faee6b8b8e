"""Quotients and remainders of two tensors, element by element.

Shapes broadcast as in numpy: they are aligned at the last axis, and the constant extent 1 is
repeated.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import as_dtype
from refcomp.ir.expr import NE, Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
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


def _floor_quotient(x: Expr, y: Expr) -> Expr:
    return maths.floor(x / y) if x.dtype.is_float else maths.floordiv(x, y)


def _truncated_quotient(x: Expr, y: Expr) -> Expr:
    quotient = maths.truncdiv(x, y)
    return maths.trunc(quotient) if x.dtype.is_float else quotient


def _floor_remainder(x: Expr, y: Expr) -> Expr:
    if not x.dtype.is_float:
        return maths.floormod(x, y)
    zero = const(0, x.dtype)
    remainder = maths.fmod(x, y)
    differs = NE(remainder < zero, y < zero)
    is_moved = maths.all(NE(remainder, zero), differs)
    return maths.select(is_moved, remainder + y, remainder)


def floor_divide(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, rounded down, element by element, with broadcasting.

    For integers, a quotient by 0 is 0, and the minimum divided by -1 is the minimum. For floats,
    the quotient is rounded to the dtype first, and x / 0 is infinite or NaN.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.floor_divide; numpy.floor_divide, for integers.

    Example::

        >>> A, B = (rc.placeholder((4,), "int32", name=name) for name in "AB")
        >>> C = rc.topi.floor_divide(A, B)
        >>> a, b = np.array([7, -7, 7, 1], "int32"), np.array([2, 2, -2, 0], "int32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ 3 -4 -4  0]
    """
    require_number(a, "floor_divide")
    return combine_elements(a, b, _floor_quotient, "floor_divide")


@meaning_of(floor_divide, sample=_sample_numbers, pattern="broadcast")
def floor_divide_numpy(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        if as_dtype(a.dtype).is_float:
            return np.asarray(np.floor(np.divide(a, b)))
        return np.asarray(np.floor_divide(a, b))


def trunc_divide(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b without its fraction, element by element, with broadcasting.

    For integers, a quotient by 0 is 0, and the minimum divided by -1 is the minimum. For floats,
    the quotient is rounded to the dtype first, and x / 0 is infinite or NaN.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.trunc_divide.

    Example::

        >>> A, B = (rc.placeholder((4,), "int32", name=name) for name in "AB")
        >>> C = rc.topi.trunc_divide(A, B)
        >>> a, b = np.array([7, -7, 7, 1], "int32"), np.array([2, 2, -2, 0], "int32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ 3 -3 -3  0]
    """
    require_number(a, "trunc_divide")
    return combine_elements(a, b, _truncated_quotient, "trunc_divide")


@meaning_of(trunc_divide, sample=_sample_numbers, pattern="broadcast")
def trunc_divide_numpy(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        if as_dtype(a.dtype).is_float:
            return np.asarray(np.trunc(np.divide(a, b)))
        # fmod has the sign of the dividend, so that the difference is divided exactly.
        return np.asarray(np.floor_divide(a - np.fmod(a, b), b))


def mod(a: Tensor, b: Tensor) -> Tensor:
    """Return a - b * trunc(a / b), element by element, with broadcasting.

    It is exact and has the sign of a. For integers, a remainder by 0 is 0. For floats, a remainder
    by 0 or of an infinity is NaN, and one by an infinity is a.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.mod; ONNX Mod with fmod = 1; numpy.fmod.

    Example::

        >>> A, B = (rc.placeholder((4,), "int32", name=name) for name in "AB")
        >>> C = rc.topi.mod(A, B)
        >>> a, b = np.array([7, -7, 7, 1], "int32"), np.array([2, 2, -2, 0], "int32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ 1 -1  1  0]
    """
    require_number(a, "mod")
    return combine_elements(a, b, maths.truncmod, "mod")


@meaning_of(mod, sample=_sample_numbers, pattern="broadcast")
def mod_numpy(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.fmod(a, b))


def floor_mod(a: Tensor, b: Tensor) -> Tensor:
    """Return a - b * floor(a / b), element by element, with broadcasting.

    It has the sign of b. For integers, a remainder by 0 is 0. For floats, a remainder by 0 or of an
    infinity is NaN. It is the exact remainder of `mod`, to which b is added if the signs differ.

    Args:
        a: a tensor of floats or integers.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.floor_mod; ONNX Mod with fmod = 0; numpy.remainder.

    Example::

        >>> A, B = (rc.placeholder((4,), "int32", name=name) for name in "AB")
        >>> C = rc.topi.floor_mod(A, B)
        >>> a, b = np.array([7, -7, 7, 1], "int32"), np.array([2, 2, -2, 0], "int32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [ 1  1 -1  0]
    """
    require_number(a, "floor_mod")
    return combine_elements(a, b, _floor_remainder, "floor_mod")


@meaning_of(floor_mod, sample=_sample_numbers, pattern="broadcast")
def floor_mod_numpy(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.remainder(a, b))
