"""Positions as indices, and permutations that are undone: unravel_index, invert_permutation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.scatter import scatter
from refcomp.topi.operator import meaning_of
from refcomp.topi.search.flat_index import index_at
from refcomp.topi.shapes import Array, require_rank


def unravel_index(indices: Tensor, *, shape: Sequence[int]) -> Tensor:
    """Return the indices of elements whose positions in row-major order are given.

    A position that is out of range is moved to the nearest one that exists.

    Args:
        indices: positions: integers of any shape.
        shape: the extents of the tensor whose elements are meant, each at least 1.

    Returns:
        A tensor of the dtype of `indices`. Its first axis has an element for each entry of `shape`,
        and the axes of `indices` follow.

    Raises:
        UserError: `indices` does not hold integers, or `shape` is empty, has an extent less than 1
            or more elements than the dtype can count.

    Reference: TVM, topi.unravel_index; numpy.unravel_index.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> B = rc.topi.unravel_index(A, shape=(2, 3))
        >>> print(*rc.oracle.evaluate([B], {A: np.array([0, 4, 99], "int32")}))
        [[0 1 1]
         [0 1 2]]
    """
    require_tensor(indices, "unravel_index")
    _require_integers(indices, "unravel_index")
    size = math.prod(shape)
    if not shape or min(shape) < 1 or size - 1 > indices.dtype.max_value:
        raise UserError(
            f"unravel_index cannot find {indices.dtype} positions in the shape {tuple(shape)}",
            remedy="give extents >= 1, and positions of a wider dtype if there are many",
            earlier=[indices.declaration()],
        )

    def element(axis: Expr, *place: Expr) -> Expr:
        given = indices[place]
        lowest = maths.maximum(given, const(0, indices.dtype))
        nearest = maths.minimum(lowest, const(size - 1, indices.dtype))
        found: Expr = as_dim(0)
        for number, part in enumerate(index_at(nearest.astype("int64"), shape)):
            found = maths.select(axis == number, part, found)
        return found.astype(indices.dtype)

    wanted: tuple[Extent, ...] = (len(shape), *extents(indices))
    return compute(wanted, element, name="unravel_index", tag=INJECTIVE)


def _require_integers(data: Tensor, operator: str) -> None:
    if not data.dtype.is_int or data.dtype.is_bool:
        raise UserError(
            f"{operator} takes integers, not {data.dtype}",
            remedy='convert them first: x[i].astype("int32")',
            earlier=[data.declaration()],
        )


def _sample_unravel_index(draws: Draws) -> Sample:
    indices = draws.array(draws.shape(0, 3), draws.integer_dtype())
    return Sample((indices,), {"shape": draws.shape(1, 3, least=1)})


@meaning_of(unravel_index, sample=_sample_unravel_index)
def unravel_index_numpy(indices: Array, *, shape: Sequence[int]) -> Array:
    nearest = np.clip(indices, 0, math.prod(shape) - 1).astype(np.int64)
    return np.stack(np.unravel_index(nearest, shape)).astype(indices.dtype)


def invert_permutation(data: Tensor) -> Tensor:
    """Return the permutation that undoes another one: element data[i] of the result is i.

    If `data` is not a permutation, a place that it names several times holds the last of them. A
    place that it does not name holds 0. The cost is that of `scatter_elements`.

    Args:
        data: i32 or i64, of one dimension: each number from 0 to its extent - 1 once.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` has another rank or dtype.

    Reference: TVM, topi.invert_permutation.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> B = rc.topi.invert_permutation(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([2, 0, 1], "int32")}))
        [1 2 0]
    """
    require_rank(data, 1, "invert_permutation", "the permutation")
    if str(data.dtype) not in ("i32", "i64"):
        raise UserError(
            f"invert_permutation takes i32 or i64, not {data.dtype}",
            remedy='convert it first: x[i].astype("int32")',
            earlier=[data.declaration()],
        )
    numbers = compute(
        data.shape, lambda i: i.astype(data.dtype), name="numbers", tag=INJECTIVE
    )
    zero = const(0, data.dtype)
    start = compute(data.shape, lambda i: zero, name="start", tag=INJECTIVE)
    return scatter(start, data, numbers)


def _sample_invert_permutation(draws: Draws) -> Sample:
    dtype = draws.choice(("int32", "int64"))
    order = np.array(draws.order(draws.integer(0, 6)), dtype)
    if draws.flag():
        order = draws.integers(order.shape, 0, max(len(order) - 1, 0), dtype)
    return Sample((order,))


@meaning_of(invert_permutation, sample=_sample_invert_permutation)
def invert_permutation_numpy(data: Array) -> Array:
    result = np.zeros_like(data)
    for number, place in enumerate(data):
        result[place] = number
    return result
