"""Activations that keep positive elements, or those beyond a threshold.

Each takes a tensor of any shape, with or without elements, and returns a tensor of the same shape
and dtype. NaN stays NaN. Numbers that are attributes are rounded to the dtype of the tensor first.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import broadcast_elements
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample, one_float_operand, one_number_operand
from refcomp.topi.elements import map_elements
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_float,
    require_number,
    require_one_dtype,
    round_once,
)


def _exponential_unit(x: Expr, alpha: float) -> Expr:
    zero = const(0.0, x.dtype)
    # Bounded, so that no overflow reaches the gradient of positive elements.
    power = maths.expm1(maths.minimum(x, zero))
    return maths.select(x > zero, x, const(alpha, x.dtype) * power)


def leaky_relu(data: Tensor, *, alpha: float = 0.01) -> Tensor:
    """Return x where x >= 0, else alpha * x, for each element x of a float tensor.

    Minus infinity gives minus infinity, for alpha > 0.

    Args:
        data: a tensor of a float dtype.
        alpha: the slope of negative elements.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: TVM topi.leaky_relu; ONNX LeakyRelu.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.leaky_relu(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-8, 2, -np.inf, np.nan], "float32")})
        >>> print(b)
        [-0.08  2.    -inf   nan]
    """
    require_float(data, "leaky_relu")
    slope = const(alpha, data.dtype)
    zero = const(0.0, data.dtype)
    return map_elements(
        data, lambda x: maths.select(x < zero, slope * x, x), "leaky_relu"
    )


def _sample_leaky_relu(draws: Draws) -> Sample:
    attributes = {"alpha": draws.number(-2, 2)}
    return Sample(one_float_operand(draws).operands, attributes)


@meaning_of(leaky_relu, sample=_sample_leaky_relu, pattern="elementwise")
def leaky_relu_numpy(data: Array, *, alpha: float = 0.01) -> Array:
    slope = data.dtype.type(alpha)
    return round_once(lambda x: np.where(x < 0, x * slope, x), data)


def prelu(data: Tensor, slope: Tensor) -> Tensor:
    """Return x where x >= 0, else slope * x, for each element x of a float tensor.

    A slope belongs to each element by broadcasting. For one slope a channel of [n, channel, y, x],
    `slope` has the shape [channel, 1, 1].

    Args:
        data: a tensor of a float dtype.
        slope: a tensor of the dtype of `data`, which broadcasts to its shape.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: an operand is not such a tensor, the dtypes differ, or `slope` does not broadcast
            to the shape of `data`.

    Reference: ONNX PRelu; TVM topi.prelu, whose slopes are a vector.

    Example::

        >>> A, B = rc.placeholder((2, 2), name="A"), rc.placeholder((2, 1), name="B")
        >>> C = rc.topi.prelu(A, B)
        >>> a, b = np.array([[-1, 1], [-2, 2]], "float32"), np.array([[0.5], [3]], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [[-0.5  1. ]
         [-6.   2. ]]
    """
    require_float(data, "prelu")
    require_tensor(slope, "prelu")
    require_one_dtype("prelu", data, slope)
    zero = const(0.0, data.dtype)
    made = broadcast_elements(
        (data, slope), lambda x, s: maths.select(x < zero, s * x, x), "prelu"
    )
    if made.ndim > data.ndim:
        raise UserError(
            f"prelu: the slopes have {slope.ndim} dimensions, and the data {data.ndim}",
            remedy="give slopes that broadcast to the data",
            earlier=[data.declaration(), slope.declaration()],
        )
    for place, size in enumerate(extents(made)):
        what = f"extent {place} of the data"
        require_extent(extents(data)[place], size, "prelu", what, tensors=(data, slope))
    return made


def _sample_prelu(draws: Draws) -> Sample:
    dtype = draws.float_dtype()
    shape = draws.shape()
    slope = draws.array(draws.reduced_shape(shape), dtype)
    return Sample((draws.array(shape, dtype), slope))


@meaning_of(prelu, sample=_sample_prelu, pattern="broadcast")
def prelu_numpy(data: Array, slope: Array) -> Array:
    return round_once(lambda x, s: np.where(x < 0, x * s, x), data, slope)


def elu(data: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Return x where x > 0, else alpha * (exp(x) - 1), for each element x of a float tensor.

    Minus infinity gives -alpha.

    Args:
        data: a tensor of a float dtype.
        alpha: the depth of negative elements.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: D.-A. Clevert et al., "Fast and accurate deep network learning by exponential linear
    units", ICLR 2016; ONNX Elu.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.elu(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-1, 2, -np.inf, np.nan], "float32")})
        >>> print(b.round(4))
        [-0.6321  2.     -1.         nan]
    """
    require_float(data, "elu")
    return map_elements(data, lambda x: _exponential_unit(x, alpha), "elu")


def _sample_elu(draws: Draws) -> Sample:
    attributes = {"alpha": draws.number(-2, 2)}
    return Sample(one_float_operand(draws).operands, attributes)


@meaning_of(elu, sample=_sample_elu, pattern="elementwise")
def elu_numpy(data: Array, *, alpha: float = 1.0) -> Array:
    depth = data.dtype.type(alpha)
    return round_once(lambda x: np.where(x > 0, x, depth * np.expm1(x)), data)


def selu(
    data: Tensor,
    *,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
) -> Tensor:
    """Return gamma * elu(x, alpha), for each element x of a float tensor.

    The default numbers keep mean 0 and variance 1 from layer to layer. Minus infinity gives -gamma
    * alpha.

    Args:
        data: a tensor of a float dtype.
        alpha: the depth of negative elements before the scale.
        gamma: the scale of all elements.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: G. Klambauer et al., "Self-normalizing neural networks", NIPS 2017; ONNX Selu.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.selu(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-1, 2, -np.inf, np.nan], "float32")})
        >>> print(b.round(4))
        [-1.1113  2.1014 -1.7581     nan]
    """
    require_float(data, "selu")
    factor = const(gamma, data.dtype)
    return map_elements(data, lambda x: factor * _exponential_unit(x, alpha), "selu")


def _sample_selu(draws: Draws) -> Sample:
    attributes = {"alpha": draws.number(-2, 2), "gamma": draws.number(-2, 2)}
    return Sample(one_float_operand(draws).operands, attributes)


@meaning_of(selu, sample=_sample_selu, pattern="elementwise")
def selu_numpy(
    data: Array,
    *,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
) -> Array:
    depth = data.dtype.type(alpha)
    factor = data.dtype.type(gamma)
    return round_once(lambda x: factor * np.where(x > 0, x, depth * np.expm1(x)), data)


def celu(data: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Return max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)), for each element x.

    Its slope at 0 is 1 for every alpha. Minus infinity gives -alpha.

    Args:
        data: a tensor of a float dtype.
        alpha: the depth of negative elements, > 0.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype, or alpha is not > 0.

    Reference: J. T. Barron, "Continuously differentiable exponential linear units", 2017; ONNX
    Celu.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.celu(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-1, 2, -np.inf, np.nan], "float32")})
        >>> print(b.round(4))
        [-0.6321  2.     -1.         nan]
    """
    require_float(data, "celu")
    if not alpha > 0:
        raise UserError(
            f"celu cannot have the alpha {alpha}", remedy="give a number > 0"
        )
    depth = const(alpha, data.dtype)
    zero = const(0.0, data.dtype)

    def unit(x: Expr) -> Expr:
        # Bounded, so that no overflow reaches the gradient of positive elements.
        power = maths.expm1(maths.minimum(x, zero) / depth)
        return maths.select(x > zero, x, depth * power)

    return map_elements(data, unit, "celu")


def _sample_celu(draws: Draws) -> Sample:
    attributes = {"alpha": draws.number(0.1, 3)}
    return Sample(one_float_operand(draws).operands, attributes)


@meaning_of(celu, sample=_sample_celu, pattern="elementwise")
def celu_numpy(data: Array, *, alpha: float = 1.0) -> Array:
    depth = data.dtype.type(alpha)
    return round_once(
        lambda x: np.maximum(x, 0) + np.minimum(0, depth * np.expm1(x / depth)), data
    )


def thresholded_relu(data: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Return x where x > alpha, else 0, for each element x of a float tensor.

    Args:
        data: a tensor of a float dtype.
        alpha: the threshold.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: ONNX ThresholdedRelu.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.thresholded_relu(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([0.5, 1, 1.5, np.nan], "float32")})
        >>> print(b)
        [0.  0.  1.5 nan]
    """
    require_float(data, "thresholded_relu")
    threshold = const(alpha, data.dtype)
    zero = const(0.0, data.dtype)
    return map_elements(
        data, lambda x: maths.select(x <= threshold, zero, x), "thresholded_relu"
    )


def _sample_thresholded_relu(draws: Draws) -> Sample:
    attributes = {"alpha": draws.number(-2, 2)}
    return Sample(one_float_operand(draws).operands, attributes)


@meaning_of(thresholded_relu, sample=_sample_thresholded_relu, pattern="elementwise")
def thresholded_relu_numpy(data: Array, *, alpha: float = 1.0) -> Array:
    threshold = data.dtype.type(alpha)
    return round_once(lambda x: np.where(x <= threshold, 0, x), data)


def shrink(data: Tensor, *, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """Return x - bias above lambd, x + bias below -lambd, else 0, for each element x.

    With bias = 0 this is the hard shrinkage, and with bias = lambd the soft shrinkage.

    Args:
        data: a tensor of a float dtype.
        lambd: the threshold, >= 0.
        bias: by how much elements move toward 0.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype, or lambd is not >= 0.

    Reference: ONNX Shrink.

    Example::

        >>> A = rc.placeholder((5,), name="A")
        >>> B = rc.topi.shrink(A)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([-2, -0.5, 0.5, 2, np.nan], "float32")})
        >>> print(b)
        [-2.  0.  0.  2. nan]
    """
    require_float(data, "shrink")
    if not lambd >= 0:
        raise UserError(
            f"shrink cannot have the lambd {lambd}", remedy="give a number >= 0"
        )
    threshold = const(lambd, data.dtype)
    moved = const(bias, data.dtype)
    zero = const(0.0, data.dtype)

    def shrunk(x: Expr) -> Expr:
        beyond = maths.select(x < zero, x + moved, x - moved)
        return maths.select(maths.abs(x) <= threshold, zero, beyond)

    return map_elements(data, shrunk, "shrink")


def _sample_shrink(draws: Draws) -> Sample:
    attributes = {"lambd": draws.number(0, 2), "bias": draws.number(-1, 1)}
    return Sample(one_float_operand(draws).operands, attributes)


@meaning_of(shrink, sample=_sample_shrink, pattern="elementwise")
def shrink_numpy(data: Array, *, lambd: float = 0.5, bias: float = 0.0) -> Array:
    threshold = data.dtype.type(lambd)
    moved = data.dtype.type(bias)

    def shrunk(x: Array) -> Array:
        return np.select(
            [x < -threshold, x > threshold, np.isnan(x)],
            [x + moved, x - moved, x],
            0,
        )

    return round_once(shrunk, data)


def relu6(data: Tensor) -> Tensor:
    """Return min(max(x, 0), 6) for each element x, of any numeric dtype.

    NaN gives NaN.

    Args:
        data: a tensor of floats or integers.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, or not of such a dtype.

    Reference: A. Howard et al., "MobileNets: efficient convolutional neural networks for mobile
    vision applications", 2017; TVM relay.clip; TensorFlow relu6.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.relu6(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([-1, 3, 9, np.nan], "float32")}))
        [ 0.  3.  6. nan]
    """
    require_number(data, "relu6")
    zero = const(0, data.dtype)
    six = const(6, data.dtype)
    return map_elements(
        data, lambda x: maths.minimum(maths.maximum(x, zero), six), "relu6"
    )


@meaning_of(relu6, sample=one_number_operand, pattern="elementwise")
def relu6_numpy(data: Array) -> Array:
    return np.asarray(np.clip(data, 0, 6), data.dtype)
