"""Local response normalization: each element is divided by a power of its neighbours' squares.

Reference: A. Krizhevsky, I. Sutskever, G. E. Hinton, "ImageNet Classification with Deep
Convolutional Neural Networks", 2012, section 3.3; ONNX LRN.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.normalization.moments import rounded, sum_dtype
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    replace_entry,
    require_float,
    widen,
)
from refcomp.topi.tags import PAD, REDUCTION


def lrn(
    data: Tensor,
    *,
    size: int,
    axis: int = 1,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
) -> Tensor:
    """Return `data`, divided by a power of the sum of squares of neighbouring channels.

        y = x / (bias + alpha / size * sum of squares of the neighbours) ** beta

    The neighbours of channel c are the existing channels from c - floor((size - 1) / 2) to
    c + ceil((size - 1) / 2). Floats of 16 bits are added up in f32. A NaN makes its neighbours NaN.
    If the base of the power is negative, and `beta` is not an integer, the result is NaN.

    Args:
        data: floats of any shape with at least one dimension.
        size: the number of neighbours, itself included, at least 1.
        axis: the axis of the channels; -1 is the last one.
        alpha: the factor of the sum.
        beta: the exponent.
        bias: added to the sum.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, the size is not positive, or the axis does not
            exist.

    Reference: ONNX LRN; TVM, topi.nn.lrn.

    Example::

        >>> X = rc.placeholder((1, 3), name="X")
        >>> Y = rc.topi.lrn(X, size=3, alpha=3.0, beta=1.0, bias=0.0)
        >>> print(*rc.oracle.evaluate([Y], {X: np.array([[1, 2, 0]], "float32")}))
        [[0.2 0.4 0. ]]
    """
    require_float(data, "lrn")
    place = normalize_axis(axis, data.ndim, "lrn")
    if size < 1:
        raise UserError(
            f"lrn cannot have {size} neighbours", remedy="give a size of at least 1"
        )
    wide = sum_dtype(data)
    before = (size - 1) // 2
    channels = data.shape[place]
    sizes = extents(data)

    def square(*index: Expr) -> Expr:
        source = index[place] - before
        value = data[replace_entry(index, place, source)].astype(wide)
        is_inside = maths.all(source >= 0, source < channels)
        return maths.if_then_else(is_inside, value * value, const(0, wide))

    padded = compute(
        replace_entry(sizes, place, sizes[place] + (size - 1)),
        square,
        name="squares",
        tag=PAD,
    )
    k = reduce_axis(size, "k")

    def neighbours(*index: Expr) -> Expr:
        source = replace_entry(index, place, index[place] + k.var)
        return reducer.sum(padded[source], axis=k)

    total = compute(sizes, neighbours, name="total", tag=REDUCTION)
    factor = const(alpha / size, wide)

    def element(*index: Expr) -> Expr:
        base = total[index] * factor + const(bias, wide)
        divisor = _power(base, beta)
        return (data[index].astype(wide) / divisor).astype(data.dtype)

    return compute(sizes, element, name="lrn", tag=INJECTIVE)


def _power(base: Expr, exponent: float) -> Expr:
    """Return a power as a product of square roots if there is one, with an error below 2.4 ulp.

    A call of pow takes ten times as long.
    """
    if exponent == 1.0:
        return base
    if exponent in (0.5, 0.75):
        root = maths.sqrt(base)
        return root if exponent == 0.5 else root * maths.sqrt(root)
    return maths.power(base, const(exponent, base.dtype))


def _sample_lrn(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.float_dtype())
    attributes = {
        "size": draws.integer(1, 5),
        "axis": draws.axis(data.ndim),
        "alpha": draws.choice((0.5, 1.0)),
        "beta": draws.choice((0.5, 0.75, 1.0)),
        "bias": draws.choice((0.5, 1.0, 2.0)),
    }
    return Sample((data,), attributes)


@meaning_of(lrn, sample=_sample_lrn)
def lrn_numpy(
    data: Array,
    *,
    size: int,
    axis: int = 1,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
) -> Array:
    wide = np.moveaxis(widen(data), axis, 0)
    total = np.zeros_like(wide)
    for c in range(len(wide)):
        first = max(0, c - (size - 1) // 2)
        last = c + size // 2
        total[c] = np.square(wide[first : last + 1]).sum(axis=0)
    base = rounded(bias, data) + rounded(alpha / size, data) * total
    result = wide / np.power(base, rounded(beta, data))
    return np.moveaxis(result, 0, axis).astype(data.dtype)
