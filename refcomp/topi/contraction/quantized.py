"""Products of quantized matrices: sums of integers, which may be scaled and rounded to 8 bits.

An integer q with a scale s and a zero point z stands for the number s * (q - z). Sums are integers
of 32 bits and wrap, so they do not depend on an order. A zero point has the dtype of its operand.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.foundation.dtype import I32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import reducer
from refcomp.te.extents import (
    Extent,
    broadcast_extents,
    extents,
    is_same,
    read_broadcast,
    require_extent,
    require_tensor,
)
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.rounding import round_to_integer, round_to_integer_numpy
from refcomp.topi.shapes import Array, require_one_dtype, require_rank
from refcomp.topi.tags import REDUCTION

Index = tuple[Expr, ...]


def matmul_integer(
    a: Tensor,
    b: Tensor,
    a_zero_point: Tensor | None = None,
    b_zero_point: Tensor | None = None,
) -> Tensor:
    """Return the products of matrices of 8-bit integers, less their zero points, as int32.

        result[..., i, j] = sum over k of (a[..., i, k] - za[i]) * (b[..., k, j] - zb[j])

    Args:
        a: [..., i, k], int8 or uint8.
        b: [..., k, j], int8 or uint8; the leading extents of a and b broadcast.
        a_zero_point: a scalar, [1] or [i], of the dtype of `a`; 0 by default.
        b_zero_point: a scalar, [1] or [j], of the dtype of `b`; 0 by default.

    Returns:
        A tensor [..., i, j] of int32, which wraps. An empty sum is 0.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: ONNX MatMulInteger.

    Example::

        >>> A = rc.placeholder((1, 2), "uint8", name="A")
        >>> B = rc.placeholder((2, 1), "int8", name="B")
        >>> Z = rc.placeholder((), "uint8", name="Z")
        >>> C = rc.topi.matmul_integer(A, B, Z)
        >>> a, b = np.array([[130, 127]], "uint8"), np.array([[10], [1]], "int8")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b, Z: np.array(128, "uint8")}))
        [[19]]
    """
    return _integer_product(a, b, a_zero_point, b_zero_point, "matmul_integer")


def _integer_product(
    a: Tensor,
    b: Tensor,
    a_zero_point: Tensor | None,
    b_zero_point: Tensor | None,
    name: str,
    transposed: bool = False,
) -> Tensor:
    """Return the product as int32. With `transposed`, b is [..., j, k]."""
    require_bytes(a, name, "a")
    require_bytes(b, name, "b")
    if a.ndim < 2 or b.ndim < 2:
        raise UserError(
            f"{name} cannot multiply a tensor of fewer than two dimensions",
            remedy="reshape it to a matrix first",
        )
    *batch_a, rows, depth = extents(a)
    *batch_b, depth_b, columns = extents(b)
    if transposed:
        depth_b, columns = columns, depth_b
    require_extent(depth_b, depth, name, "the reduced extent of b", tensors=(a, b))
    require_zero_point(a_zero_point, a, rows, name)
    require_zero_point(b_zero_point, b, columns, name)
    batch = broadcast_extents(batch_a, batch_b, name, tensors=(a, b))
    k = reduce_axis(depth, "k")

    def element(*index: Expr) -> Expr:
        *outer, i, j = index
        inner = (j, k.var) if transposed else (k.var, j)
        left = shifted(read_broadcast(a, (*outer, i, k.var)), a_zero_point, i)
        right = shifted(read_broadcast(b, (*outer, *inner)), b_zero_point, j)
        return reducer.sum(left * right, axis=k)

    shape = (*batch, rows, columns)
    return compute(shape, element, name="product", tag=REDUCTION)


def require_bytes(data: Tensor, operator: str, what: str) -> None:
    """Raise UserError if an operand is not a tensor of int8 or uint8."""
    require_tensor(data, operator)
    if not data.dtype.is_int or data.dtype.bits != 8:
        raise UserError(
            f"{operator}: {what} is {data.dtype}, not int8 or uint8",
            remedy="quantize it to 8 bits first",
            earlier=[data.declaration()],
        )


def require_zero_point(
    zero_point: Tensor | None, data: Tensor, count: Extent, operator: str
) -> None:
    """Raise UserError unless a zero point has the dtype of `data`, and 1 or `count` elements."""
    if zero_point is None:
        return
    require_tensor(zero_point, operator)
    require_one_dtype(operator, data, zero_point)
    require_parameter(zero_point, count, operator, "a zero point")


def require_parameter(
    parameter: Tensor, count: Extent, operator: str, what: str
) -> None:
    """Raise UserError unless `parameter` is a scalar, or a vector of one or `count` elements."""
    sizes = extents(parameter)
    if not sizes or (len(sizes) == 1 and is_same(sizes[0], 1)):
        return
    require_rank(parameter, 1, operator, what)
    require_extent(sizes[0], count, operator, f"{what}'s extent", tensors=(parameter,))


def require_scale(scale: Tensor, count: Extent, operator: str) -> None:
    """Raise UserError unless `scale` holds one float, or `count` floats."""
    require_tensor(scale, operator)
    if not scale.dtype.is_float or scale.dtype.bits < 32:
        raise UserError(
            f"{operator}: a scale is {scale.dtype}, not float32 or float64",
            remedy='give it as float32: x[i].astype("float32")',
            earlier=[scale.declaration()],
        )
    require_parameter(scale, count, operator, "a scale")


def shifted(value: Expr, zero_point: Tensor | None, place: Expr) -> Expr:
    """Return an 8-bit integer as i32, less its zero point."""
    wide = value.astype(I32)
    if zero_point is None:
        return wide
    return wide - read_broadcast(zero_point, (place,)).astype(I32)


def rescaled(
    sums: Tensor,
    scales: tuple[Tensor, Tensor, Tensor],
    zero_point: Tensor | None,
    places: Callable[[Index], tuple[Expr, Expr]],
    dtype: DType,
    name: str,
) -> Tensor:
    """Return round(sums * (scale_a * scale_b / scale)) + zero_point, which saturates.

    Args:
        sums: a tensor of i32.
        scales: those of both operands and of the result, which have one dtype.
        zero_point: the zero point of the result, a scalar or [1]; None for 0.
        places: from an index of the result to the places in the scales of both operands.
        dtype: the dtype of the result.
        name: the operator.
    """
    first, second, last = scales
    require_one_dtype(name, first, second, last)
    require_scale(last, 1, name)
    if zero_point is not None:
        require_parameter(zero_point, 1, name, "the result's zero point")

    def element(*index: Expr) -> Expr:
        i, j = places(index)
        factor = read_broadcast(first, (i,)) * read_broadcast(second, (j,))
        ratio = factor / read_broadcast(last, (i,))
        point = None
        if zero_point is not None:
            point = read_broadcast(zero_point, (i,))
        value = sums[index].astype(first.dtype) * ratio
        return round_to_integer(value, dtype, point)

    return compute(sums.shape, element, name=name, tag=INJECTIVE)


def _sample_zero(draws: Draws, count: int, dtype: str) -> Array:
    shape = draws.choice(((), (1,), (count,)))
    return draws.array(shape, dtype)


def _sample_matmul_integer(draws: Draws) -> Sample:
    i = draws.extent()
    k = draws.extent(0)
    j = draws.extent()
    outer = draws.shape(0, 2)
    dtype_a = draws.choice(("int8", "uint8"))
    dtype_b = draws.choice(("int8", "uint8"))
    first = draws.choice((outer, outer[1:]))
    a = draws.array((*first, i, k), dtype_a)
    b = draws.array((*outer, k, j), dtype_b)
    a_zero = _sample_zero(draws, i, dtype_a) if draws.flag() else None
    b_zero = _sample_zero(draws, j, dtype_b) if draws.flag() else None
    return Sample((a, b, a_zero, b_zero))


@meaning_of(matmul_integer, sample=_sample_matmul_integer)
def matmul_integer_numpy(
    a: Array,
    b: Array,
    a_zero_point: Array | None = None,
    b_zero_point: Array | None = None,
) -> Array:
    left = a.astype(np.int32)
    right = b.astype(np.int32)
    if a_zero_point is not None:
        left = left - a_zero_point.astype(np.int32).reshape(-1, 1)
    if b_zero_point is not None:
        right = right - b_zero_point.astype(np.int32)
    return np.asarray(np.matmul(left, right))


def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
) -> Tensor:
    """Return the products of quantized matrices, quantized again.

        sums = matmul_integer(a, b, a_zero_point, b_zero_point)
        result = saturate(round(sums * (a_scale * b_scale / y_scale)) + y_zero_point)

    A tie rounds to the even integer. If a scale of the result is 0 or NaN, infinities saturate and
    NaN gives 0.

    Args:
        a: [..., i, k], int8 or uint8.
        a_scale: a scalar, [1] or [i], float32 or float64.
        a_zero_point: a scalar, [1] or [i], of the dtype of `a`.
        b: [..., k, j], int8 or uint8; the leading extents of a and b broadcast.
        b_scale: a scalar, [1] or [j], of the dtype of `a_scale`.
        b_zero_point: a scalar, [1] or [j], of the dtype of `b`.
        y_scale: a scalar or [1], of the dtype of `a_scale`.
        y_zero_point: a scalar or [1], int8 or uint8.

    Returns:
        A tensor [..., i, j] of the dtype of `y_zero_point`.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: ONNX QLinearMatMul.

    Example::

        >>> A, B = (rc.placeholder((1, 1), "uint8", name=name) for name in "AB")
        >>> S, Z = rc.placeholder((), name="S"), rc.placeholder((), "uint8", name="Z")
        >>> C = rc.topi.qlinear_matmul(A, S, Z, B, S, Z, S, Z)
        >>> a, z = np.array([[11]], "uint8"), np.array(1, "uint8")
        >>> s = np.array(0.25, "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: a, S: s, Z: z}))
        [[26]]
    """
    name = "qlinear_matmul"
    require_bytes(y_zero_point, name, "the result's zero point")
    sums = _integer_product(a, b, a_zero_point, b_zero_point, name)
    require_scale(a_scale, extents(a)[-2], name)
    require_scale(b_scale, extents(b)[-1], name)
    return rescaled(
        sums,
        (a_scale, b_scale, y_scale),
        y_zero_point,
        lambda index: (index[-2], index[-1]),
        y_zero_point.dtype,
        name,
    )


def sample_scale(draws: Draws, count: int, dtype: str) -> Array:
    """Return a positive scale: a scalar, [1] or [count]."""
    shape = draws.choice(((), (1,), (count,)))
    return draws.uniform(shape, 0.01, 1.0, dtype)


def _sample_qlinear_matmul(draws: Draws) -> Sample:
    a, b, _, _ = _sample_matmul_integer(draws).operands
    assert a is not None and b is not None
    rows = a.shape[-2]
    columns = b.shape[-1]
    kind = draws.choice(("float32", "float64"))
    dtype = draws.choice(("int8", "uint8"))
    return Sample(
        (
            a,
            sample_scale(draws, rows, kind),
            _sample_zero(draws, rows, a.dtype.name),
            b,
            sample_scale(draws, columns, kind),
            _sample_zero(draws, columns, b.dtype.name),
            sample_scale(draws, 1, kind),
            _sample_zero(draws, 1, dtype),
        )
    )


@meaning_of(qlinear_matmul, sample=_sample_qlinear_matmul)
def qlinear_matmul_numpy(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    sums = matmul_integer_numpy(a, b, a_zero_point, b_zero_point)
    factor = a_scale.astype(np.float64).reshape(-1, 1) * b_scale.astype(np.float64)
    value = sums * (factor / y_scale.astype(np.float64))
    kind = DType("int" if y_zero_point.dtype == np.int8 else "uint", 8)
    return round_to_integer_numpy(value, kind, y_zero_point)


def quantized_dense(
    data: Tensor,
    weight: Tensor,
    data_scale: Tensor,
    weight_scale: Tensor,
    y_scale: Tensor,
    bias: Tensor | None = None,
    data_zero_point: Tensor | None = None,
    weight_zero_point: Tensor | None = None,
    y_zero_point: Tensor | None = None,
) -> Tensor:
    """Return the layer `dense` of quantized operands, quantized again.

        sums[..., o] = bias[o] + sum over i of (data[..., i] - zd) * (weight[o, i] - zw[o])
        result = saturate(round(sums * (data_scale * weight_scale[o] / y_scale)) + y_zero_point)

    A tie rounds to the even integer. If the scale of the result is 0 or NaN, infinities saturate
    and NaN gives 0.

    Args:
        data: [..., i], of two or more dimensions, int8 or uint8.
        weight: [o, i], int8 or uint8.
        data_scale: a scalar or [1], float32 or float64.
        weight_scale: a scalar, [1] or [o], of the dtype of `data_scale`.
        y_scale: a scalar or [1], of the dtype of `data_scale`.
        bias: [o], int32, in units of data_scale * weight_scale; optional.
        data_zero_point: a scalar or [1], of the dtype of `data`; 0 by default.
        weight_zero_point: a scalar, [1] or [o], of the dtype of `weight`; 0 by default.
        y_zero_point: a scalar or [1], int8 or uint8; by default 0 of int8.

    Returns:
        A tensor [..., o] of the dtype of `y_zero_point`, or of int8.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: TVM, relay.qnn.dense with relay.qnn.requantize.

    Example::

        >>> X, W = (rc.placeholder((1, 2), "int8", name=name) for name in "XW")
        >>> S = rc.placeholder((), name="S")
        >>> Y = rc.topi.quantized_dense(X, W, S, S, S)
        >>> x, s = np.array([[10, 3]], "int8"), np.array(0.5, "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, W: x, S: s}))
        [[54]]
    """
    name = "quantized_dense"
    require_rank(weight, 2, name, "the weight")
    sums = _integer_product(
        data, weight, data_zero_point, weight_zero_point, name, transposed=True
    )
    outputs, _ = extents(weight)
    if data_zero_point is not None:
        require_parameter(data_zero_point, 1, name, "the data's zero point")
    require_scale(data_scale, 1, name)
    require_scale(weight_scale, outputs, name)
    if bias is not None:
        sums = add_integer_bias(sums, bias, name, -1)
    dtype = result_dtype(y_zero_point, name)
    return rescaled(
        sums,
        (data_scale, weight_scale, y_scale),
        y_zero_point,
        lambda index: (index[-2], index[-1]),
        dtype,
        name,
    )


def result_dtype(zero_point: Tensor | None, operator: str) -> DType:
    """Return the dtype of a quantized result: that of its zero point, or int8 without one."""
    if zero_point is None:
        return DType("int", 8)
    require_bytes(zero_point, operator, "the result's zero point")
    return zero_point.dtype


def add_integer_bias(sums: Tensor, bias: Tensor, operator: str, axis: int) -> Tensor:
    """Return sums of i32 plus the element of `bias` for each place along `axis`."""
    require_rank(bias, 1, operator, "the bias")
    require_one_dtype(operator, sums, bias)
    require_extent(extents(bias)[0], extents(sums)[axis], operator, "the bias' extent")
    return compute(
        sums.shape, lambda *at: sums[at] + bias[at[axis]], name="bias", tag=INJECTIVE
    )


def _sample_quantized_dense(draws: Draws) -> Sample:
    inputs = draws.extent(0)
    outputs = draws.extent()
    dtype_a = draws.choice(("int8", "uint8"))
    dtype_b = draws.choice(("int8", "uint8"))
    dtype_y = draws.choice(("int8", "uint8"))
    kind = draws.choice(("float32", "float64"))
    data = draws.array((*draws.shape(1, 2), inputs), dtype_a)
    weight = draws.array((outputs, inputs), dtype_b)
    bias = draws.integers((outputs,), -999, 999) if draws.flag() else None
    return Sample(
        (
            data,
            weight,
            sample_scale(draws, 1, kind),
            sample_scale(draws, outputs, kind),
            sample_scale(draws, 1, kind),
            bias,
            _sample_zero(draws, 1, dtype_a) if draws.flag() else None,
            _sample_zero(draws, outputs, dtype_b) if draws.flag() else None,
            _sample_zero(draws, 1, dtype_y) if draws.flag() else None,
        )
    )


@meaning_of(quantized_dense, sample=_sample_quantized_dense)
def quantized_dense_numpy(
    data: Array,
    weight: Array,
    data_scale: Array,
    weight_scale: Array,
    y_scale: Array,
    bias: Array | None = None,
    data_zero_point: Array | None = None,
    weight_zero_point: Array | None = None,
    y_zero_point: Array | None = None,
) -> Array:
    sums = matmul_integer_numpy(data, weight.T, data_zero_point, weight_zero_point)
    if bias is not None:
        sums = sums + bias
    factor = data_scale.astype(np.float64) * weight_scale.astype(np.float64)
    value = sums * (factor / y_scale.astype(np.float64))
    if y_zero_point is None:
        return round_to_integer_numpy(value, DType("int", 8))
    kind = DType("int" if y_zero_point.dtype == np.int8 else "uint", 8)
    return round_to_integer_numpy(value, kind, y_zero_point)
