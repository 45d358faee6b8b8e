"""gather_nd: slices of a tensor at indices of several coordinates."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.indices import (
    clamp_index,
    clamped_numpy,
    from_end,
    read_existing,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_constant, require_integer


def gather_nd(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """Take slices of a tensor at indices, whose coordinates stand along the last axis.

    A negative coordinate counts from the end. One that is still out of range is moved to the
    nearest.

    Args:
        data: a tensor of any dtype.
        indices: integers [..., coordinates], with one or more dimensions. The number of coordinates
            is constant. It is at most the rank of `data` less `batch_dims`.
        batch_dims: the number of leading axes that both tensors have in common. Each index selects
            only in its own batch.

    Returns:
        A tensor of the dtype of `data`: the shape of `indices` without its last axis, then the
        axes of `data` that no coordinate counts. If a counted axis has no elements, it holds 0.

    Raises:
        UserError: `indices` are not integers or lack an axis, there are too many coordinates, or
            the extents of the batch differ.

    Reference: ONNX GatherND. TVM topi.gather_nd has the coordinates along the first axis.

    Example::

        >>> A, I = rc.placeholder((2, 2), name="A"), rc.placeholder((2, 2), "int32", name="I")
        >>> B = rc.topi.gather_nd(A, I)
        >>> a, i = np.array([[1, 2], [3, 4]], "float32"), np.array([[0, 1], [-1, 0]], "int32")
        >>> print(*rc.oracle.evaluate([B], {A: a, I: i}))
        [2. 3.]
    """
    require_tensor(data, "gather_nd")
    require_integer(indices, "gather_nd")
    if not 0 <= batch_dims < indices.ndim:
        raise UserError(
            f"gather_nd cannot have {batch_dims} batch axes in indices "
            f"of {indices.ndim} dimensions",
            remedy="the last axis of indices holds coordinates; axes before it may be batches",
            earlier=[indices.declaration()],
        )
    sizes = extents(data)
    *leading, last = extents(indices)
    count = require_constant(last, "gather_nd: the number of coordinates")
    if count > data.ndim - batch_dims:
        raise UserError(
            f"gather_nd cannot use {count} coordinates and {batch_dims} batch axes "
            f"for a tensor of {data.ndim} dimensions",
            remedy="give at most one coordinate for each axis that is not a batch",
            earlier=[data.declaration(), indices.declaration()],
        )
    for place in range(batch_dims):
        what = f"extent {place} of indices"
        require_extent(
            leading[place], sizes[place], "gather_nd", what, tensors=[indices, data]
        )
    counted = range(batch_dims, batch_dims + count)
    inner = sizes[batch_dims + count :]

    def element(*index: Expr) -> Expr:
        outer = index[: len(leading)]
        position = []
        for number, place in enumerate(counted):
            given = from_end(indices[(*outer, number)], sizes[place])
            position.append(clamp_index(given, sizes[place]))
        whole = (*index[:batch_dims], *position, *index[len(leading) :])
        return read_existing(data, whole, counted)

    return compute((*leading, *inner), element, name="gather_nd", tag=INJECTIVE)


def _sample_gather_nd(draws: Draws) -> Sample:
    data = draws.array(draws.shape(0, 3), draws.number_dtype())
    batch_dims = draws.integer(0, min(1, data.ndim))
    count = draws.integer(0, data.ndim - batch_dims)
    leading = (*data.shape[:batch_dims], *draws.shape(0, 2 - batch_dims))
    indices = draws.array((*leading, count), draws.integer_dtype())
    return Sample((data, indices), {"batch_dims": batch_dims})


@meaning_of(gather_nd, sample=_sample_gather_nd, pattern="injective")
def gather_nd_numpy(data: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    count = indices.shape[-1]
    leading = indices.shape[:-1]
    inner = data.shape[batch_dims + count :]
    result = np.zeros((*leading, *inner), data.dtype)
    if not data.size:
        return result
    for outer in np.ndindex(leading):
        position = []
        for number in range(count):
            size = data.shape[batch_dims + number]
            position.append(int(clamped_numpy(indices[outer][number], size)))
        result[outer] = data[(*outer[:batch_dims], *position)]
    return result
