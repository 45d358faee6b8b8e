"""Powers, angles and lengths of two tensors, element by element.

Shapes broadcast as in numpy: they are aligned at the last axis, and the constant extent 1 is
repeated.
"""

from __future__ import annotations

import numpy as np

from refcomp.ir.expr import EQ, Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample, two_operands
from refcomp.topi.elements import combine_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_float,
    round_once,
)


def _sample_floats(draws: Draws) -> Sample:
    return two_operands(draws, draws.float_dtype())


def power(a: Tensor, b: Tensor) -> Tensor:
    """Return a to the power b, element by element, with broadcasting.

    A negative a with a fractional b gives NaN. a to the power 0 is 1, and 1 to any power is 1. Both
    hold even if the other operand is NaN. Otherwise, NaN propagates.

    Args:
        a: a tensor of floats.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: TVM topi.power; ONNX Pow; C11 7.12.7.4.

    Example::

        >>> A, B = (rc.placeholder((4,), name=name) for name in "AB")
        >>> C = rc.topi.power(A, B)
        >>> a, b = np.array([2, -8, 0, np.nan], "float32"), np.array([0.5, 3, -1, 0], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c.round(4))
        [   1.4142 -512.           inf    1.    ]
    """
    require_float(a, "power")
    return combine_elements(a, b, maths.power, "power")


@meaning_of(power, sample=_sample_floats, pattern="broadcast")
def power_numpy(a: Array, b: Array) -> Array:
    return round_once(np.power, a, b)


def atan2(a: Tensor, b: Tensor) -> Tensor:
    """Return the angle of the point (b, a) in radians, with broadcasting.

    It is in [-pi, pi]. The signs of zeros count. NaN propagates.

    Args:
        a: a tensor of floats.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: numpy.arctan2; C11 7.12.4.4.

    Example::

        >>> A, B = (rc.placeholder((4,), name=name) for name in "AB")
        >>> C = rc.topi.atan2(A, B)
        >>> a, b = np.array([1, 0, -0.0, 0], "float32"), np.array([1, -1, -1, 0], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c.round(4))
        [ 0.7854  3.1416 -3.1416  0.    ]
    """
    require_float(a, "atan2")
    return combine_elements(a, b, maths.atan2, "atan2")


@meaning_of(atan2, sample=_sample_floats, pattern="broadcast")
def atan2_numpy(a: Array, b: Array) -> Array:
    return round_once(np.arctan2, a, b)


def hypot(a: Tensor, b: Tensor) -> Tensor:
    """Return sqrt(a * a + b * b), element by element, with broadcasting.

    The squares cannot overflow. An infinite operand gives infinity, even if the other one is NaN.
    Otherwise, NaN propagates.

    Args:
        a: a tensor of floats.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: numpy.hypot; C11 7.12.7.3.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.hypot(A, B)
        >>> a, b = np.array([3, 1e30, -np.inf], "float32"), np.array([4, 0, np.nan], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [5.e+00 1.e+30    inf]
    """
    require_float(a, "hypot")
    return combine_elements(a, b, maths.hypot, "hypot")


@meaning_of(hypot, sample=_sample_floats, pattern="broadcast")
def hypot_numpy(a: Array, b: Array) -> Array:
    return round_once(np.hypot, a, b)


def copysign(a: Tensor, b: Tensor) -> Tensor:
    """Return a with the sign of b, element by element, with broadcasting.

    Zeros have a sign, too.

    Args:
        a: a tensor of floats.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: numpy.copysign; copySign of IEEE 754-2019.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.copysign(A, B)
        >>> a, b = np.array([3, 0, -np.inf], "float32"), np.array([-1, -0.0, 2], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [-3. -0. inf]
    """
    require_float(a, "copysign")
    return combine_elements(a, b, maths.copysign, "copysign")


@meaning_of(copysign, sample=_sample_floats, pattern="broadcast")
def copysign_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.copysign(a, b))


def logaddexp(a: Tensor, b: Tensor) -> Tensor:
    """Return log(exp(a) + exp(b)), element by element, with broadcasting.

    It is computed as `max(a, b) + log1p(exp(-abs(a - b)))`, which cannot overflow. Two equal
    infinities give themselves. NaN propagates.

    Args:
        a: a tensor of floats.
        b: a tensor of the dtype of `a`. Shapes broadcast as in numpy.

    Returns:
        A tensor of the broadcast shape and the dtype of `a`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or the shapes do not
            broadcast.

    Reference: numpy.logaddexp.

    Example::

        >>> A, B = (rc.placeholder((3,), name=name) for name in "AB")
        >>> C = rc.topi.logaddexp(A, B)
        >>> a, b = np.array([0, 1000, -np.inf], "float32"), np.array([0, 999, -np.inf], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c.round(4))
        [6.9309998e-01 1.0003132e+03          -inf]
    """
    require_float(a, "logaddexp")

    def logarithm(x: Expr, y: Expr) -> Expr:
        # The difference of equal infinities would be NaN.
        distance = maths.select(EQ(x, y), const(0.0, x.dtype), maths.abs(x - y))
        return maths.maximum(x, y) + maths.log1p(maths.exp(-distance))

    return combine_elements(a, b, logarithm, "logaddexp")


@meaning_of(logaddexp, sample=_sample_floats, pattern="broadcast")
def logaddexp_numpy(a: Array, b: Array) -> Array:
    return round_once(np.logaddexp, a, b)
