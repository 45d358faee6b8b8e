"""Convolution of quantized images: sums of integers, which may be scaled and rounded to 8 bits.

An integer q with a scale s and a zero point z stands for the number s * (q - z). The padding stands
for the number 0, so it holds zero points. Sums are integers of 32 bits and wrap.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import I32, as_dtype
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te.extents import read_broadcast
from refcomp.te.tensor import IterVar, Tensor
from refcomp.topi.contraction.quantized import (
    add_integer_bias,
    require_bytes,
    require_parameter,
    require_scale,
    require_zero_point,
    rescaled,
    sample_scale,
    shifted,
)
from refcomp.topi.convolution.windows import (
    Tap,
    check_groups,
    constant_sizes,
    convolve_numpy,
    make_windows,
    require_channels,
    sample_convolution,
    sum_windows,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.rounding import round_to_integer_numpy
from refcomp.topi.shapes import Array, Pair, require_rank
from refcomp.topi.spatial_padding import Padding


def conv2d_integer(
    data: Tensor,
    weight: Tensor,
    data_zero_point: Tensor | None = None,
    weight_zero_point: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Tensor:
    """Return the convolution of images of 8-bit integers, less their zero points, as int32.

        y[n, o, i] = sum over (c, k) of (x[n, c, j] - zx) * (w[o, c, k] - zw[o])
        j = i * stride + k * dilation - before

    where i, j and k are pairs, and x is zx outside of the image.

    Args:
        data: [n, c, h, w], int8 or uint8.
        weight: [o, c / groups, kh, kw], int8 or uint8, of constant extents.
        data_zero_point: zx, a scalar or [1] of the dtype of `data`; 0 by default.
        weight_zero_point: zw, a scalar, [1] or [o] of the dtype of `weight`; 0 by default.
        strides: elements down and across, from one window to the next.
        padding: zero points added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        groups: number of groups into which the channels are divided.

    Returns:
        A tensor [n, o, h', w'] of int32, which wraps. An empty sum is 0.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: ONNX ConvInteger.

    Example::

        >>> X = rc.placeholder((1, 1, 1, 2), "uint8", name="X")
        >>> W = rc.placeholder((1, 1, 1, 2), "int8", name="W")
        >>> Z = rc.placeholder((), "uint8", name="Z")
        >>> Y = rc.topi.conv2d_integer(X, W, Z, padding=(0, 1, 0, 0))
        >>> x, w = np.array([[[[130, 127]]]], "uint8"), np.array([[[[10, 1]]]], "int8")
        >>> print(*rc.oracle.evaluate([Y], {X: x, W: w, Z: np.array(128, "uint8")}))
        [[[[ 2 19]]]]
    """
    return _integer_sums(
        data,
        weight,
        data_zero_point,
        weight_zero_point,
        "conv2d_integer",
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def _integer_sums(
    data: Tensor,
    weight: Tensor,
    data_zero_point: Tensor | None,
    weight_zero_point: Tensor | None,
    operator: str,
    *,
    strides: Pair,
    padding: Padding,
    dilation: Pair,
    groups: int,
) -> Tensor:
    require_bytes(data, operator, "the data")
    require_bytes(weight, operator, "the weight")
    require_rank(data, 4, operator, "the data")
    sizes = constant_sizes(weight, "OIHW", operator)
    check_groups(groups, sizes["O"], operator)
    require_channels(data, weight, sizes["I"] * groups, "NCHW", operator)
    require_zero_point(data_zero_point, data, 1, operator)
    require_zero_point(weight_zero_point, weight, sizes["O"], operator)
    windows = make_windows(
        operator, "NCHW", (sizes["H"], sizes["W"]), strides, padding, dilation
    )
    # The only place of a zero point that all channels share.
    first = const(0, I32)
    border = const(0, data.dtype)
    if data_zero_point is not None:
        border = read_broadcast(data_zero_point, (first,))

    def product(read: Expr, tap: Tap) -> Expr:
        at: dict[str, Expr | IterVar] = {"O": tap.out, "I": tap.place, **tap.offsets}
        factor = weight[tuple(at[letter] for letter in "OIHW")]
        left = shifted(read, data_zero_point, first)
        return left * shifted(factor, weight_zero_point, tap.out)

    return sum_windows(
        windows.pad(data, border),
        windows,
        windows.counts(data),
        product,
        out=sizes["O"],
        depth=sizes["I"],
        groups=groups,
        name="sums",
    )


def _sample_integers(draws: Draws) -> tuple[Array, Array, dict[str, object]]:
    """Return images, weights and attributes."""
    sample = sample_convolution(draws, "NCHW", "OIHW")
    data, weight, _ = sample.operands
    assert data is not None and weight is not None
    attributes = dict(sample.attributes)
    attributes.pop("out_dtype", None)
    data = draws.array(data.shape, draws.choice(("int8", "uint8")))
    weight = draws.array(weight.shape, draws.choice(("int8", "uint8")))
    return data, weight, attributes


def _sample_conv2d_integer(draws: Draws) -> Sample:
    data, weight, attributes = _sample_integers(draws)
    data_zero = draws.array(draws.choice(((), (1,))), data.dtype.name)
    shape = draws.choice(((), (1,), (len(weight),)))
    weight_zero = draws.array(shape, weight.dtype.name)
    return Sample(
        (
            data,
            weight,
            data_zero if draws.flag() else None,
            weight_zero if draws.flag() else None,
        ),
        attributes,
    )


@meaning_of(conv2d_integer, sample=_sample_conv2d_integer)
def conv2d_integer_numpy(
    data: Array,
    weight: Array,
    data_zero_point: Array | None = None,
    weight_zero_point: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    image = data.astype(np.int32)
    factors = weight.astype(np.int32)
    if data_zero_point is not None:
        image = image - data_zero_point.astype(np.int32).reshape(())
    if weight_zero_point is not None:
        factors = factors - weight_zero_point.astype(np.int32).reshape(-1, 1, 1, 1)
    # Zeros around the shifted image are zero points around the given one.
    return convolve_numpy(
        image,
        factors,
        None,
        layout="NCHW",
        weight_layout="OIHW",
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def qlinear_conv2d(
    data: Tensor,
    data_scale: Tensor,
    data_zero_point: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    weight_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Tensor:
    """Return the convolution of quantized images, quantized again.

        sums = bias + conv2d_integer(data, weight, data_zero_point, weight_zero_point)
        y = saturate(round(sums * (data_scale * weight_scale[o] / y_scale)) + y_zero_point)

    A tie rounds to the even integer. If a scale of the result is 0 or NaN, infinities saturate and
    NaN gives 0.

    Args:
        data: [n, c, h, w], int8 or uint8.
        data_scale: a scalar or [1], float32 or float64.
        data_zero_point: a scalar or [1], of the dtype of `data`.
        weight: [o, c / groups, kh, kw], int8 or uint8, of constant extents.
        weight_scale: a scalar, [1] or [o], of the dtype of `data_scale`.
        weight_zero_point: a scalar, [1] or [o], of the dtype of `weight`.
        y_scale: a scalar or [1], of the dtype of `data_scale`.
        y_zero_point: a scalar or [1], int8 or uint8.
        bias: [o], int32, in units of data_scale * weight_scale; optional.
        strides: elements down and across, from one window to the next.
        padding: zero points added at the top, left, bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        groups: number of groups into which the channels are divided.

    Returns:
        A tensor [n, o, h', w'] of the dtype of `y_zero_point`.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: ONNX QLinearConv.

    Example::

        >>> X = rc.placeholder((1, 1, 1, 1), "uint8", name="X")
        >>> S, Z = rc.placeholder((), name="S"), rc.placeholder((), "uint8", name="Z")
        >>> Y = rc.topi.qlinear_conv2d(X, S, Z, X, S, Z, S, Z)
        >>> x, s = np.array([[[[11]]]], "uint8"), np.array(0.25, "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, S: s, Z: np.array(1, "uint8")}))
        [[[[26]]]]
    """
    name = "qlinear_conv2d"
    require_bytes(y_zero_point, name, "the result's zero point")
    sums = _integer_sums(
        data,
        weight,
        data_zero_point,
        weight_zero_point,
        name,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    require_scale(data_scale, 1, name)
    require_scale(weight_scale, constant_sizes(weight, "OIHW", name)["O"], name)
    require_parameter(y_zero_point, 1, name, "the result's zero point")
    if bias is not None:
        sums = add_integer_bias(sums, bias, name, 1)
    return rescaled(
        sums,
        (data_scale, weight_scale, y_scale),
        y_zero_point,
        lambda index: (index[0], index[1]),
        y_zero_point.dtype,
        name,
    )


def _sample_qlinear_conv2d(draws: Draws) -> Sample:
    data, weight, attributes = _sample_integers(draws)
    out = len(weight)
    kind = draws.choice(("float32", "float64"))
    scalar = draws.choice(((), (1,)))
    many = draws.choice(((), (1,), (out,)))
    dtype = draws.choice(("int8", "uint8"))
    bias = draws.integers((out,), -999, 999) if draws.flag() else None
    operands = (
        data,
        sample_scale(draws, 1, kind),
        draws.array(scalar, data.dtype.name),
        weight,
        sample_scale(draws, out, kind),
        draws.array(many, weight.dtype.name),
        sample_scale(draws, 1, kind),
        draws.array(scalar, dtype),
        bias,
    )
    return Sample(operands, attributes)


@meaning_of(qlinear_conv2d, sample=_sample_qlinear_conv2d)
def qlinear_conv2d_numpy(
    data: Array,
    data_scale: Array,
    data_zero_point: Array,
    weight: Array,
    weight_scale: Array,
    weight_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    bias: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    sums = conv2d_integer_numpy(
        data,
        weight,
        data_zero_point,
        weight_zero_point,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    if bias is not None:
        sums = sums + bias.reshape(-1, 1, 1)
    factor = data_scale.astype(np.float64) * weight_scale.astype(np.float64)
    ratio = factor / y_scale.astype(np.float64)
    value = sums * ratio.reshape(-1, 1, 1)
    return round_to_integer_numpy(value, as_dtype(y_zero_point.dtype), y_zero_point)
