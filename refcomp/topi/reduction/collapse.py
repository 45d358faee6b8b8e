"""Sums over the axes that broadcasting repeats: the gradient of `broadcast_to`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast
from refcomp.te import reducer
from refcomp.te.extents import extents, is_same, require_extent
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import accumulator_of, reduce_along
from refcomp.topi.shapes import Array, require_number, widen


def collapse_sum(data: Tensor, *, shape: Sequence[int]) -> Tensor:
    """Return the sums of `data` along axes, so that it has another shape.

    Shapes are aligned at the last axis. It sums along missing first axes, and along those for which
    `shape` has 1. So it is the gradient of `broadcast_to`. Integers wrap. NaN propagates. f16 and
    bf16 are accumulated in f32.

    Args:
        data: a tensor of floats or integers.
        shape: the extents of the result: each is 1, or the extent of `data` at its place.

    Returns:
        A tensor of this shape and the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of numbers, or `shape` does not broadcast to its shape.

    Reference: TVM topi.collapse_sum.

    Example::

        >>> A = rc.placeholder((2, 3), "int32", name="A")
        >>> B = rc.topi.collapse_sum(A, shape=(3,))
        >>> C = rc.topi.collapse_sum(A, shape=(2, 1))
        >>> a = np.array([[1, 2, 3], [4, 5, 6]], "int32")
        >>> for result in rc.oracle.evaluate([B, C], {A: a}):
        ...     print(result.tolist())
        [5, 7, 9]
        [[6], [15]]
    """
    require_number(data, "collapse_sum")
    sizes = extents(data)
    missing = len(sizes) - len(shape)
    if missing < 0:
        raise UserError(
            f"collapse_sum cannot make {len(shape)} dimensions of {len(sizes)}",
            remedy="give a shape that broadcasts to that of the tensor",
            earlier=[data.declaration()],
        )
    places = list(range(missing))
    for place, size in enumerate(shape):
        own = sizes[place + missing]
        if size == 1 and not is_same(own, 1):
            places.append(place + missing)
        else:
            what = f"extent {place} of the shape"
            require_extent(size, own, "collapse_sum", what, tensors=(data,))
    wide = accumulator_of(data.dtype)
    total = reduce_along(
        data,
        places,
        lambda *index: cast(wide, data[index]),
        reducer.sum,
        name="collapsed",
    )
    kept = [place for place in range(data.ndim) if place not in places]

    def element(*index: Expr) -> Expr:
        return cast(data.dtype, total[tuple(index[place - missing] for place in kept)])

    return compute(tuple(shape), element, name="collapse_sum", tag=INJECTIVE)


def _sample_collapse_sum(draws: Draws) -> Sample:
    whole = draws.shape()
    data = draws.array(whole, draws.number_dtype())
    return Sample((data,), {"shape": draws.reduced_shape(whole)})


@meaning_of(collapse_sum, pattern="reduction", sample=_sample_collapse_sum)
def collapse_sum_numpy(data: Array, *, shape: Sequence[int]) -> Array:
    wide = widen(data)
    missing = data.ndim - len(shape)
    repeated = tuple(k + missing for k, size in enumerate(shape) if size == 1)
    axes = (*range(missing), *repeated)
    total = np.sum(wide, axis=axes, keepdims=True, dtype=wide.dtype)
    return np.asarray(total.reshape(tuple(shape)), data.dtype)
