"""Softmax: exp(x) divided by its sum along an axis, shifted so that nothing overflows."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths, reducer
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.shapes import Array, extents, normalize_axis, require_tensor, widen
from refcomp.topi.tags import INJECTIVE, REDUCTION, SHARED


def softmax(data: Tensor, *, axis: int = -1) -> Tensor:
    """exp(x - max) / sum of exp(x - max) along `axis`, of a float tensor."""
    require_tensor(data, "softmax")
    if not data.dtype.is_float or not data.ndim:
        raise UserError(
            f"softmax takes a float tensor of one or more dimensions, {data.dtype} "
            f"of {data.ndim} given"
        )
    place = normalize_axis(axis, data.ndim, "softmax")
    sizes = extents(data)
    rest = (*sizes[:place], *sizes[place + 1 :])

    def along(index: tuple[Expr, ...], position: Expr) -> tuple[Expr, ...]:
        return (*index[:place], position, *index[place:])

    def without(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (*index[:place], *index[place + 1 :])

    k = reduce_axis(sizes[place], "k")
    r = reduce_axis(sizes[place], "r")
    greatest: Tensor = compute(
        rest,
        lambda *index: reducer.max(data[along(index, k.var)], axis=k),
        name="greatest",
        tag=REDUCTION,
    )
    power: Tensor = compute(
        sizes,
        lambda *index: maths.exp(data[index] - greatest[without(index)]),
        name="power",
        tag=SHARED,
    )
    total: Tensor = compute(
        rest,
        lambda *index: reducer.sum(power[along(index, r.var)], axis=r),
        name="total",
        tag=REDUCTION,
    )
    result: Tensor = compute(
        sizes,
        lambda *index: power[index] / total[without(index)],
        name="softmax",
        tag=INJECTIVE,
    )
    return result


def softmax_numpy(data: Array, *, axis: int = -1) -> Array:
    wide = widen(data)
    if not wide.size:
        return data.copy()
    with np.errstate(invalid="ignore"):
        power = np.exp(wide - wide.max(axis=axis, keepdims=True))
        return np.asarray(power / power.sum(axis=axis, keepdims=True)).astype(
            data.dtype
        )
