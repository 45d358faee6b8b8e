"""A quantized dense layer whose weights lie in panels of pairs: quantized_dense_pack.

Two integers that follow each other along the sum, less their zero points, are the halves of an i32
(`refcomp.ir.integer_pairs`). So x86 adds the products of 8, 16 or 32 integers by one instruction.
The halves have 16 bits, as an integer of 8 bits less a zero point has 9. All sums are exact until
they wrap at 32 bits, as in `refcomp.topi.contraction.quantized`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from refcomp.foundation.dtype import I32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.integer_pairs import make_pair, pair_product
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.contraction.packed_dense import require_columns
from refcomp.topi.contraction.quantized import (
    add_integer_bias,
    require_bytes,
    require_scale,
    require_zero_point,
    rescaled,
    result_dtype,
    sample_scale,
    shifted,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.rounding import round_to_integer_numpy
from refcomp.topi.shapes import Array, require_constant, require_rank
from refcomp.topi.tags import REDUCTION, SHARED

_NAME = "quantized_dense_pack"


def quantized_dense_pack(
    data: Tensor,
    panels: Tensor,
    data_scale: Tensor | None = None,
    weight_scale: Tensor | None = None,
    y_scale: Tensor | None = None,
    bias: Tensor | None = None,
    data_zero_point: Tensor | None = None,
    y_zero_point: Tensor | None = None,
    *,
    units: int | None = None,
) -> Tensor:
    """Return the layer `quantized_dense` with its weights in panels, or its sums.

        sums[..., j] = bias[j] + sum over i of (data[..., i] - zd) * (weight[j, i] - zw[j])
        result = saturate(round(sums * (data_scale * weight_scale[j] / y_scale)) + y_zero_point)

    The weights less their zero points lie in pairs in the panels. With z = weight - zw:

        panels[j // width, k, j % width] = z[j, 2k + 1] * 2^16 + (z[j, 2k] mod 2^16)

    Without scales, the result is the sums. A tie rounds to the even integer. If the scale of the
    result is 0 or NaN, infinities saturate and NaN gives 0.

    Args:
        data: [..., i], with at least one dimension, int8 or uint8; i is a constant.
        panels: [count, pairs, width], int32, where pairs is i / 2, rounded up. If i is odd, the
            high half of the last pair is not used.
        data_scale: a scalar or [1], float32 or float64; optional.
        weight_scale: a scalar, [1] or [units], of the dtype of `data_scale`; optional.
        y_scale: a scalar or [1], of the dtype of `data_scale`; optional.
        bias: [units], int32; optional.
        data_zero_point: a scalar or [1], of the dtype of `data`; 0 by default.
        y_zero_point: a scalar or [1], int8 or uint8; by default 0 of int8. Only with scales.
        units: the columns of the matrix, by default count * width. The last panel may hold others
            behind them, which are not read.

    Returns:
        A tensor [..., units] of int32; with scales of the dtype of `y_zero_point`, or of int8.

    Raises:
        UserError: a rank, extent or dtype does not fit; some scales are given and others are not;
            or `units` needs more or fewer panels.

    Reference: Intel, "Lower Numerical Precision Deep Learning Inference and Training", 2018;
    TVM, topi.nn.dense_pack.

    Example::

        >>> X, P = rc.placeholder((1, 2), "int8", name="X"), rc.placeholder((1, 1, 1), "int32")
        >>> Y = rc.topi.quantized_dense_pack(X, P)
        >>> x, p = np.array([[3, 10]], "int8"), np.array([[[5 * 2**16 + 7]]], "int32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, P: p}))
        [[71]]
    """
    sums = _sums(data, panels, data_zero_point, units)
    if bias is not None:
        sums = add_integer_bias(sums, bias, _NAME, -1)
    scales = (data_scale, weight_scale, y_scale)
    if all(scale is None for scale in scales):
        if y_zero_point is not None:
            raise UserError(
                f"{_NAME}: a zero point of the result is given without scales",
                remedy="give all three scales, or no zero point",
            )
        return sums
    if data_scale is None or weight_scale is None or y_scale is None:
        raise UserError(
            f"{_NAME}: some of the three scales are missing",
            remedy="give the scales of data, weight and result, or none",
        )
    require_scale(data_scale, 1, _NAME)
    require_scale(weight_scale, extents(sums)[-1], _NAME)
    return rescaled(
        sums,
        (data_scale, weight_scale, y_scale),
        y_zero_point,
        lambda index: (index[-1], index[-1]),
        result_dtype(y_zero_point, _NAME),
        _NAME,
    )


def _sums(
    data: Tensor, panels: Tensor, zero_point: Tensor | None, units: int | None
) -> Tensor:
    """Return the sums of products as int32."""
    require_bytes(data, _NAME, "the data")
    if not data.ndim:
        raise UserError(
            f"{_NAME}: the data have rank 0", remedy="give a tensor [..., inputs]"
        )
    require_tensor(panels, _NAME)
    require_rank(panels, 3, _NAME, "the panels")
    if panels.dtype != I32:
        raise UserError(
            f"{_NAME}: the panels are {panels.dtype}, not int32",
            remedy="put two integers of 16 bits in each int32",
            earlier=[panels.declaration()],
        )
    require_zero_point(zero_point, data, 1, _NAME)
    *outer, last = extents(data)
    depth = require_constant(last, f"{_NAME}: the reduced extent of the data")
    panel_count, panel_pairs, panel_width = extents(panels)
    count = -(-depth // 2)
    require_extent(
        panel_pairs,
        count,
        _NAME,
        "the number of pairs in a column",
        tensors=(data, panels),
    )
    width = require_constant(panel_width, f"{_NAME}: the width of the panels")
    columns = require_columns(panel_count, width, units, _NAME)
    pairs = _pairs(data, zero_point, depth)
    k = reduce_axis(count, "k")

    def element(*index: Expr) -> Expr:
        *at, j = index
        weight = panels[j // width, k, j % width]
        return reducer.sum(pair_product(pairs[(*at, k)], weight), axis=k)

    return compute((*outer, columns), element, name="product", tag=REDUCTION)


def _pairs(data: Tensor, zero_point: Tensor | None, depth: int) -> Tensor:
    """Return the elements less their zero point, in pairs; a last one is paired with 0."""
    is_odd = depth % 2 == 1

    def element(*index: Expr) -> Expr:
        *at, pair = index
        first = data[(*at, 2 * pair)]
        low = shifted(first, zero_point, pair)
        place = 2 * pair + 1
        high = shifted(data[(*at, place)], zero_point, pair)
        if is_odd:
            high = maths.if_then_else(place < depth, high, const(0, I32))
        return make_pair(low, high)

    *outer, _ = extents(data)
    shape = (*outer, -(-depth // 2))
    return compute(shape, element, name="pairs", tag=SHARED)


def pack_pairs_numpy(matrix: Array, width: int) -> npt.NDArray[np.int32]:
    """Return a matrix in panels of pairs, whose last panel and last pairs end in zeros.

    Args:
        matrix: [depth, columns] of integers that fit 16 bits.
        width: the columns of a panel.

    Returns:
        [count, pairs, width] of int32, as `quantized_dense_pack` reads it.
    """
    depth, columns = matrix.shape
    wide = np.pad(matrix.astype(np.int64), ((0, depth % 2), (0, -columns % width)))
    pairs = (wide[1::2] << 16) | (wide[::2] & 0xFFFF)
    count = wide.shape[1] // width
    panels = pairs.reshape(len(pairs), count, width).transpose(1, 0, 2)
    return np.ascontiguousarray(panels.astype(np.int32))


def _sample_quantized_dense_pack(draws: Draws) -> Sample:
    inputs = draws.extent(0)
    width = draws.choice((1, 3, 8))
    count = draws.extent()
    units = count * width - draws.choice(range(width))
    dtype = draws.choice(("int8", "uint8"))
    data = draws.array((*draws.shape(0, 2), inputs), dtype)
    panels = draws.array((count, -(-inputs // 2), width), "int32")
    bias = draws.integers((units,), -999, 999) if draws.flag() else None
    zero = draws.array(draws.choice(((), (1,))), dtype) if draws.flag() else None
    if draws.flag():
        return Sample((data, panels, None, None, None, bias, zero), {"units": units})
    kind = draws.choice(("float32", "float64"))
    scales = [sample_scale(draws, number, kind) for number in (1, units, 1)]
    dtype_y = draws.choice(("int8", "uint8"))
    zero_y = draws.array((), dtype_y) if draws.flag() else None
    return Sample((data, panels, *scales, bias, zero, zero_y), {"units": units})


@meaning_of(quantized_dense_pack, sample=_sample_quantized_dense_pack)
def quantized_dense_pack_numpy(
    data: Array,
    panels: Array,
    data_scale: Array | None = None,
    weight_scale: Array | None = None,
    y_scale: Array | None = None,
    bias: Array | None = None,
    data_zero_point: Array | None = None,
    y_zero_point: Array | None = None,
    *,
    units: int | None = None,
) -> Array:
    count, pairs, width = panels.shape
    columns = panels.transpose(1, 0, 2).reshape(pairs, count * width)[:, :units]
    halves = np.stack([columns.astype(np.int16), columns >> 16], axis=1)
    # Without pairs, -1 would not say how many columns there are.
    rows = halves.reshape(2 * pairs, columns.shape[1])
    matrix = rows[: data.shape[-1]].astype(np.int32)
    left = data.astype(np.int32)
    if data_zero_point is not None:
        left = left - data_zero_point.astype(np.int32)
    sums = np.matmul(left, matrix)
    if bias is not None:
        sums = sums + bias
    if data_scale is None or weight_scale is None or y_scale is None:
        return np.asarray(sums)
    factor = data_scale.astype(np.float64) * weight_scale.astype(np.float64)
    value = sums * (factor / y_scale.astype(np.float64))
    if y_zero_point is None:
        return round_to_integer_numpy(value, DType("int", 8))
    kind = DType("int" if y_zero_point.dtype == np.int8 else "uint", 8)
    return round_to_integer_numpy(value, kind, y_zero_point)
