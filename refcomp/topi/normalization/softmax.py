"""Softmax: exp(x) divided by its sum along an axis, shifted so that nothing overflows.

Reference: P. Blanchard, D. J. Higham and N. J. Higham, "Accurately computing the log-sum-exp and
softmax functions", IMA Journal of Numerical Analysis 41, 2021; ONNX Softmax since opset 13.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_tensor
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, normalize_axis, widen
from refcomp.topi.tags import REDUCTION, SHARED


def softmax(data: Tensor, *, axis: int = -1) -> Tensor:
    """Return exp(x - m) / sum of exp(x - m) along `axis`, where m is the maximum along it.

    A NaN or an infinity makes all values along the axis NaN; minus infinity gives 0, unless all
    values are minus infinity. An axis of extent 0 gives a result without elements.

    Args:
        data: floats of any shape with at least one dimension.
        axis: the axis to sum along; -1 is the last one.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats or has no dimension, or the axis does not exist.

    Reference: ONNX Softmax.

    Example::

        >>> A = rc.placeholder((2, 3), name="A")
        >>> a = np.array([[1, 1, 1], [0, 1000, -np.inf]], "float32")
        >>> (b,) = rc.oracle.evaluate([rc.topi.softmax(A)], {A: a})
        >>> print(b.round(4))
        [[0.3333 0.3333 0.3333]
         [0.     1.     0.    ]]
    """
    require_tensor(data, "softmax")
    if not data.dtype.is_float or not data.ndim:
        raise UserError(
            "softmax takes a float tensor of one or more dimensions, "
            f"not {data.dtype} of {data.ndim}",
            remedy='give a float tensor with an axis: x[i].astype("float32")',
        )
    place = normalize_axis(axis, data.ndim, "softmax")
    sizes = extents(data)
    reduced_shape = (*sizes[:place], *sizes[place + 1 :])

    def insert(index: tuple[Expr, ...], position: Expr) -> tuple[Expr, ...]:
        return (*index[:place], position, *index[place:])

    def remove(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (*index[:place], *index[place + 1 :])

    k = reduce_axis(sizes[place], "k")
    r = reduce_axis(sizes[place], "r")
    greatest = compute(
        reduced_shape,
        lambda *index: reducer.max(data[insert(index, k.var)], axis=k),
        name="greatest",
        tag=REDUCTION,
    )
    # No exponent is above 0, and one is 0: the sum is at least 1 and cannot overflow.
    power = compute(
        sizes,
        lambda *index: maths.exp(data[index] - greatest[remove(index)]),
        name="power",
        tag=SHARED,
    )
    total = compute(
        reduced_shape,
        lambda *index: reducer.sum(power[insert(index, r.var)], axis=r),
        name="total",
        tag=REDUCTION,
    )
    # One division a row: those of vectors take several times as long as multiplications.
    inverse = compute(
        reduced_shape, lambda *index: 1 / total[index], name="inverse", tag=SHARED
    )
    return compute(
        sizes,
        lambda *index: power[index] * inverse[remove(index)],
        name="softmax",
        tag=INJECTIVE,
    )


def _sample_softmax(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.float_dtype())
    return Sample((data,), {"axis": draws.axis(data.ndim)})


@meaning_of(softmax, sample=_sample_softmax)
def softmax_numpy(data: Array, *, axis: int = -1) -> Array:
    wide = widen(data)
    if not wide.size:  # numpy has no maximum of nothing
        return data.copy()
    # Infinity - infinity is an invalid operation, and its result is the NaN that is wanted.
    with np.errstate(invalid="ignore"):
        power = np.exp(wide - wide.max(axis=axis, keepdims=True))
        result = power / power.sum(axis=axis, keepdims=True)
    return np.asarray(result, data.dtype)
