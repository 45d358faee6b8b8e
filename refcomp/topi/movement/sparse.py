"""Dense tensors of sparse ones: sparse_to_dense."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te.extents import extents, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.scatter import scatter_nd
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_rank


def sparse_to_dense(
    sparse_indices: Tensor,
    sparse_values: Tensor,
    *,
    output_shape: Sequence[int],
    default_value: float = 0.0,
) -> Tensor:
    """Return a tensor with values at given places, and a default everywhere else.

    Of several values at one place, the last one counts. A negative index counts from the end. A
    value with an index out of range is left out. The cost is that of `scatter_elements`.

    Args:
        sparse_indices: i32 or i64 of shape (values, rank of the result); or of shape (values,) for
            a result of one dimension.
        sparse_values: the values, of shape (values,) and any dtype.
        output_shape: the extents of the result, at least one.
        default_value: the other elements.

    Returns:
        A tensor of the shape `output_shape` and the dtype of the values.

    Raises:
        UserError: a rank, an extent or a dtype does not fit, or the default is not a value of the
            dtype.

    Reference: TVM, topi.sparse_to_dense, which takes the shape as the second argument.

    Example::

        >>> I, V = rc.placeholder((2, 2), "int32", name="I"), rc.placeholder((2,), name="V")
        >>> B = rc.topi.sparse_to_dense(I, V, output_shape=(2, 3))
        >>> feeds = {I: np.array([[0, 1], [1, 2]], "int32"), V: np.array([5, 7], "float32")}
        >>> print(*rc.oracle.evaluate([B], feeds))
        [[0. 5. 0.]
         [0. 0. 7.]]
    """
    require_tensor(sparse_indices, "sparse_to_dense")
    require_rank(sparse_values, 1, "sparse_to_dense", "the tensor of values")
    if not output_shape or min(output_shape) < 0:
        raise UserError(
            f"sparse_to_dense cannot make the shape {tuple(output_shape)}",
            remedy="give one or more extents >= 0",
        )
    places = sparse_indices
    if sparse_indices.ndim == 1:
        places = compute(
            (sparse_indices.shape[0], as_dim(1)),
            lambda i, _: sparse_indices[i],
            name="places",
            tag=INJECTIVE,
        )
    require_rank(places, 2, "sparse_to_dense", "the tensor of indices")
    depth = extents(places)[1]
    if depth != len(output_shape):
        raise UserError(
            f"sparse_to_dense cannot index {len(output_shape)} dimensions by {depth} numbers",
            remedy="give a number for each dimension",
            earlier=[sparse_indices.declaration()],
        )
    default = const(default_value, sparse_values.dtype)

    def element(*_index: Expr) -> Expr:
        return default

    dense = compute(tuple(output_shape), element, name="default", tag=INJECTIVE)
    return scatter_nd(dense, places, sparse_values)


def _sample_sparse_to_dense(draws: Draws) -> Sample:
    shape = draws.shape(1, 3)
    count = draws.integer(0, 5)
    dtype = draws.choice(("int32", "int64"))
    columns = [draws.integers((count,), -n, n, dtype) for n in shape]
    indices = np.stack(columns, axis=-1)
    if len(shape) == 1 and draws.flag():
        indices = indices[:, 0]
    values = draws.array((count,), draws.number_dtype())
    attributes = {"output_shape": shape, "default_value": float(draws.integer(0, 3))}
    return Sample((indices, values), attributes)


@meaning_of(sparse_to_dense, sample=_sample_sparse_to_dense)
def sparse_to_dense_numpy(
    sparse_indices: Array,
    sparse_values: Array,
    *,
    output_shape: Sequence[int],
    default_value: float = 0.0,
) -> Array:
    result = np.full(output_shape, default_value, sparse_values.dtype)
    rows = sparse_indices.reshape(len(sparse_values), len(output_shape))
    for row, value in zip(rows, sparse_values, strict=True):
        if all(-n <= i < n for i, n in zip(row, output_shape, strict=True)):
            result[tuple(row)] = value
    return result
