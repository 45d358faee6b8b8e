"""Smooth activations: gates by sigmoids, error functions and logarithms.

Each takes a tensor of any shape, with or without elements, and returns a tensor of the same shape
and dtype. NaN stays NaN. Numbers that are attributes are rounded to the dtype of the tensor first.
"""

from __future__ import annotations

import math

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample, one_float_operand
from refcomp.topi.elements import map_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_float,
    round_once,
)

# numpy has no error function.
_erf = np.vectorize(math.erf, otypes=[np.float64])


def _normal_by_erf(x: Expr) -> Expr:
    half = const(0.5, x.dtype)
    one = const(1.0, x.dtype)
    return half * (one + maths.erf(x * const(math.sqrt(0.5), x.dtype)))


def _normal_by_tanh(x: Expr) -> Expr:
    half = const(0.5, x.dtype)
    one = const(1.0, x.dtype)
    # x + 0.044715 * x**3.
    bent = x * (one + const(0.044715, x.dtype) * (x * x))
    return half * (one + maths.tanh(const(math.sqrt(2 / math.pi), x.dtype) * bent))


def _gelu_by_tanh(x: Array) -> Array:
    bent = x + 0.044715 * x**3
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * bent)))


def _softplus(x: Expr) -> Expr:
    zero = const(0.0, x.dtype)
    return maths.maximum(x, zero) + maths.log1p(maths.exp(-maths.abs(x)))


def gelu(data: Tensor, *, approximate: str = "none") -> Tensor:
    """Return x * P(Z <= x) for a standard normal Z, for each element x of a float tensor.

        exact:  0.5 * x * (1 + erf(x / sqrt(2)))
        tanh:   0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))

    Infinity gives infinity, and minus infinity NaN.

    Args:
        data: a tensor of a float dtype.
        approximate: "none" for the exact function, or "tanh".

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: D. Hendrycks and K. Gimpel, "Gaussian error linear units", 2016; ONNX Gelu.

    Example::

        >>> A = rc.placeholder((5,), name="A")
        >>> B = rc.topi.gelu(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-1, 0, 2, np.inf, -np.inf], "float32")})
        >>> print(b.round(4))
        [-0.1587  0.      1.9545     inf     nan]
    """
    require_float(data, "gelu")
    if approximate not in ("none", "tanh"):
        raise UserError(
            f"gelu cannot be approximated by {approximate!r}",
            remedy='use "none" or "tanh"',
        )
    probability = _normal_by_tanh if approximate == "tanh" else _normal_by_erf
    return map_elements(data, lambda x: x * probability(x), "gelu")


def _sample_gelu(draws: Draws) -> Sample:
    attributes = {"approximate": draws.choice(("none", "tanh"))}
    return Sample(one_float_operand(draws).operands, attributes)


@meaning_of(gelu, sample=_sample_gelu, pattern="elementwise")
def gelu_numpy(data: Array, *, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return round_once(_gelu_by_tanh, data)
    return round_once(lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))), data)


def silu(data: Tensor) -> Tensor:
    """Return x * sigmoid(x), for each element x of a float tensor.

    It is also known as swish. Infinity gives infinity, and minus infinity NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: S. Elfwing et al., "Sigmoid-weighted linear units for neural network function
    approximation in reinforcement learning", Neural Networks 107, 2018.

    Example::

        >>> A = rc.placeholder((5,), name="A")
        >>> B = rc.topi.silu(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-1, 0, 2, np.inf, -np.inf], "float32")})
        >>> print(b.round(4))
        [-0.2689  0.      1.7616     inf     nan]
    """
    require_float(data, "silu")
    return map_elements(data, lambda x: x * maths.sigmoid(x), "silu")


@meaning_of(silu, sample=one_float_operand, pattern="elementwise")
def silu_numpy(data: Array) -> Array:
    return round_once(lambda x: x * (1 / (1 + np.exp(-x))), data)


def swish(data: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Return x * sigmoid(alpha * x), for each element x of a float tensor.

    For alpha > 0, infinity gives infinity, and minus infinity NaN.

    Args:
        data: a tensor of a float dtype.
        alpha: the factor inside of the sigmoid.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: P. Ramachandran et al., "Searching for activation functions", 2017; ONNX Swish.

    Example::

        >>> A = rc.placeholder((5,), name="A")
        >>> B = rc.topi.swish(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-1, 0, 2, np.inf, -np.inf], "float32")})
        >>> print(b.round(4))
        [-0.2689  0.      1.7616     inf     nan]
    """
    require_float(data, "swish")
    factor = const(alpha, data.dtype)
    return map_elements(data, lambda x: x * maths.sigmoid(factor * x), "swish")


def _sample_swish(draws: Draws) -> Sample:
    attributes = {"alpha": draws.number(-2, 2)}
    return Sample(one_float_operand(draws).operands, attributes)


@meaning_of(swish, sample=_sample_swish, pattern="elementwise")
def swish_numpy(data: Array, *, alpha: float = 1.0) -> Array:
    factor = data.dtype.type(alpha)
    return round_once(lambda x: x * (1 / (1 + np.exp(-(factor * x)))), data)


def softplus(data: Tensor) -> Tensor:
    """Return log(1 + exp(x)), for each element x of a float tensor.

    It is computed as `max(x, 0) + log1p(exp(-abs(x)))`, which cannot overflow. Minus infinity gives
    0.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: ONNX Softplus.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.softplus(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-1, 0, 1000, -np.inf], "float32")})
        >>> print(b.round(4))
        [3.133e-01 6.931e-01 1.000e+03 0.000e+00]
    """
    require_float(data, "softplus")
    return map_elements(data, _softplus, "softplus")


@meaning_of(softplus, sample=one_float_operand, pattern="elementwise")
def softplus_numpy(data: Array) -> Array:
    return round_once(lambda x: np.logaddexp(0, x), data)


def log_sigmoid(data: Tensor) -> Tensor:
    """Return log(sigmoid(x)), for each element x of a float tensor.

    It is computed as `min(x, 0) - log1p(exp(-abs(x)))`, which cannot overflow. Minus infinity gives
    itself.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: torch.nn.LogSigmoid.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.log_sigmoid(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-1000, 0, 1, np.inf], "float32")})
        >>> print(b.round(4))
        [-1.000e+03 -6.931e-01 -3.133e-01  0.000e+00]
    """
    require_float(data, "log_sigmoid")
    zero = const(0.0, data.dtype)

    def logarithm(x: Expr) -> Expr:
        return maths.minimum(x, zero) - maths.log1p(maths.exp(-maths.abs(x)))

    return map_elements(data, logarithm, "log_sigmoid")


@meaning_of(log_sigmoid, sample=one_float_operand, pattern="elementwise")
def log_sigmoid_numpy(data: Array) -> Array:
    return round_once(lambda x: -np.logaddexp(0, -x), data)


def mish(data: Tensor) -> Tensor:
    """Return x * tanh(softplus(x)), for each element x of a float tensor.

    Infinity gives infinity, and minus infinity NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: D. Misra, "Mish: a self regularized non-monotonic activation function", 2019; ONNX
    Mish.

    Example::

        >>> A = rc.placeholder((5,), name="A")
        >>> B = rc.topi.mish(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-1, 0, 2, np.inf, -np.inf], "float32")})
        >>> print(b.round(4))
        [-0.3034  0.      1.944      inf     nan]
    """
    require_float(data, "mish")
    return map_elements(data, lambda x: x * maths.tanh(_softplus(x)), "mish")


@meaning_of(mish, sample=one_float_operand, pattern="elementwise")
def mish_numpy(data: Array) -> Array:
    return round_once(lambda x: x * np.tanh(np.logaddexp(0, x)), data)


def softsign(data: Tensor) -> Tensor:
    """Return x / (1 + abs(x)), for each element x of a float tensor.

    An infinity gives NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: ONNX Softsign.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.softsign(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-1, 0, 3, np.inf], "float32")})
        >>> print(b)
        [-0.5   0.    0.75   nan]
    """
    require_float(data, "softsign")
    one = const(1.0, data.dtype)
    return map_elements(data, lambda x: x / (one + maths.abs(x)), "softsign")


@meaning_of(softsign, sample=one_float_operand, pattern="elementwise")
def softsign_numpy(data: Array) -> Array:
    return round_once(lambda x: x / (1 + np.abs(x)), data)


def hard_sigmoid(data: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """Return max(0, min(1, alpha * x + beta)), for each element x of a float tensor.

    Args:
        data: a tensor of a float dtype.
        alpha: the slope.
        beta: the value at 0.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: ONNX HardSigmoid; torch.nn.Hardsigmoid has alpha = 1 / 6.

    Example::

        >>> A = rc.placeholder((5,), name="A")
        >>> B = rc.topi.hard_sigmoid(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-4, 0, 1, np.inf, np.nan], "float32")})
        >>> print(b)
        [0.  0.5 0.7 1.  nan]
    """
    require_float(data, "hard_sigmoid")
    slope = const(alpha, data.dtype)
    shift = const(beta, data.dtype)
    zero = const(0.0, data.dtype)
    one = const(1.0, data.dtype)

    def clipped(x: Expr) -> Expr:
        return maths.maximum(maths.minimum(slope * x + shift, one), zero)

    return map_elements(data, clipped, "hard_sigmoid")


def _sample_hard_sigmoid(draws: Draws) -> Sample:
    attributes = {"alpha": draws.number(-2, 2), "beta": draws.number(-2, 2)}
    return Sample(one_float_operand(draws).operands, attributes)


@meaning_of(hard_sigmoid, sample=_sample_hard_sigmoid, pattern="elementwise")
def hard_sigmoid_numpy(data: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    slope = data.dtype.type(alpha)
    shift = data.dtype.type(beta)
    return round_once(lambda x: np.clip(slope * x + shift, 0, 1), data)


def hard_swish(data: Tensor) -> Tensor:
    """Return x * max(0, min(6, x + 3)) / 6, for each element x of a float tensor.

    Infinity gives infinity, and minus infinity NaN.

    Args:
        data: a tensor of a float dtype.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: A. Howard et al., "Searching for MobileNetV3", ICCV 2019; ONNX HardSwish.

    Example::

        >>> A = rc.placeholder((5,), name="A")
        >>> B = rc.topi.hard_swish(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-4, -1, 2, 5, np.nan], "float32")})
        >>> print(b.round(4))
        [-0.     -0.3333  1.6667  5.         nan]
    """
    require_float(data, "hard_swish")
    three = const(3.0, data.dtype)
    six = const(6.0, data.dtype)
    zero = const(0.0, data.dtype)

    def gated(x: Expr) -> Expr:
        return x * (maths.maximum(maths.minimum(x + three, six), zero) / six)

    return map_elements(data, gated, "hard_swish")


@meaning_of(hard_swish, sample=one_float_operand, pattern="elementwise")
def hard_swish_numpy(data: Array) -> Array:
    return round_once(lambda x: x * (np.clip(x + 3, 0, 6) / 6), data)
