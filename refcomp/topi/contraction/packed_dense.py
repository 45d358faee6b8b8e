"""A dense layer whose weights lie in panels: dense_pack.

A panel holds some columns of the matrix, row after row. So a kernel reads it in order, whatever the
number of columns is. NaN, infinities, integers that overflow and empty sums are as in `matmul`.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import F32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import reducer
from refcomp.te.extents import Extent, extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.contraction.dense import check_factors
from refcomp.topi.contraction.fully_connected import add_bias
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_constant, require_rank, widen
from refcomp.topi.tags import REDUCTION


def dense_pack(
    data: Tensor,
    panels: Tensor,
    bias: Tensor | None = None,
    *,
    units: int | None = None,
) -> Tensor:
    """Return the product of data with a matrix in panels of columns, plus bias.

        result[..., j] = bias[j] + sum over i of data[..., i] * panels[j // width, i, j % width]

    Args:
        data: [..., i], with at least one dimension, of any numeric dtype.
        panels: [count, i, width], of the dtype of `data`. For data of float32, also of float16 or
            bfloat16: each element is converted before it is multiplied.
        bias: [units], of the dtype of `data`; optional.
        units: the columns of the matrix, by default count * width. The last panel may hold others
            behind them, which are not read.

    Returns:
        A tensor [..., units] of the dtype of `data`.

    Raises:
        UserError: a rank, extent or dtype does not fit; or `units` needs more or fewer panels.

    Reference: TVM, topi.nn.dense_pack. There, all panels are full.

    Example::

        >>> X, P = rc.placeholder((1, 2), name="X"), rc.placeholder((2, 2, 2), name="P")
        >>> Y = rc.topi.dense_pack(X, P, units=3)
        >>> x, p = np.array([[1, 10]], "float32"), np.arange(8, dtype="float32").reshape(2, 2, 2)
        >>> print(*rc.oracle.evaluate([Y], {X: x, P: p}))
        [[20. 31. 64.]]
    """
    require_tensor(data, "dense_pack")
    require_rank(panels, 3, "dense_pack", "the panels")
    if not _is_narrower(panels.dtype, data.dtype):
        check_factors("dense_pack", data, panels)
    if not data.ndim:
        raise UserError(
            "dense_pack: the data have rank 0", remedy="give a tensor [..., inputs]"
        )
    *outer, depth = extents(data)
    panel_count, panel_depth, panel_width = extents(panels)
    require_extent(
        panel_depth,
        depth,
        "dense_pack",
        "the reduced extent of the panels",
        tensors=(data, panels),
    )
    width = require_constant(panel_width, "dense_pack: the width of the panels")
    columns = require_columns(panel_count, width, units, "dense_pack")
    k = reduce_axis(depth, "k")

    def element(*index: Expr) -> Expr:
        *at, j = index
        weight = panels[j // width, k, j % width]
        return reducer.sum(data[(*at, k)] * weight.astype(data.dtype), axis=k)

    product = compute((*outer, columns), element, name="dense_pack", tag=REDUCTION)
    return product if bias is None else add_bias(product, bias, "dense_pack", -1)


def _is_narrower(panels: DType, data: DType) -> bool:
    return data == F32 and panels.is_float and panels.bits == 16


def require_columns(
    panel_count: Extent, width: int, units: int | None, operator: str
) -> int:
    """Return the columns that panels of `width` hold: `units`, or all if it is None.

    Raises UserError if so many columns need more or fewer panels.
    """
    count = require_constant(panel_count, f"{operator}: the number of panels")
    columns = count * width if units is None else units
    if width < 1 or count != -(-columns // width):
        raise UserError(
            f"{operator}: {columns} columns cannot lie in {count} panels of {width}",
            remedy="give as many panels as hold all columns, the last one in part",
        )
    return columns


def _sample_dense_pack(draws: Draws) -> Sample:
    inputs = draws.extent(0)
    width = draws.choice((1, 3, 8))
    count = draws.extent()
    units = count * width - draws.choice(range(width))
    dtype = draws.number_dtype()
    data = draws.array((*draws.shape(0, 2), inputs), dtype)
    is_narrow = dtype == "float32" and draws.flag()
    panels = draws.array((count, inputs, width), "float16" if is_narrow else dtype)
    bias = draws.array((units,), dtype) if draws.flag() else None
    return Sample((data, panels, bias), {"units": units})


@meaning_of(dense_pack, sample=_sample_dense_pack)
def dense_pack_numpy(
    data: Array,
    panels: Array,
    bias: Array | None = None,
    *,
    units: int | None = None,
) -> Array:
    count, depth, width = panels.shape
    matrix = panels.transpose(1, 0, 2).reshape(depth, count * width)[:, :units]
    result = widen(data) @ widen(matrix)
    if bias is not None:
        result = result + widen(bias)
    return np.asarray(result, data.dtype)
