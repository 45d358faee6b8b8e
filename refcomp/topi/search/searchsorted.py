"""Places of values in sorted sequences: searchsorted, bucketize."""

from __future__ import annotations

from typing import Literal

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.search.bisection import bisect
from refcomp.topi.shapes import (
    Array,
    require_index_dtype,
    require_one_dtype,
    require_rank,
)

Side = Literal["left", "right"]


def searchsorted(
    sorted_sequence: Tensor,
    values: Tensor,
    *,
    right: bool = False,
    dtype: DTypeLike = "int64",
) -> Tensor:
    """Return where values can be inserted into a sorted sequence, so that it stays sorted.

    The result is the number of elements that are less than the value, or with `right` less or
    equal. NaN is greater than all numbers, and equal to NaN. The result for a sequence that is not
    sorted is some place of it. Each value takes log n comparisons.

    Args:
        sorted_sequence: ascending along the last axis, NaN last. It has one dimension, or the
            leading axes of `values`: each row of values is then searched in its own sequence.
        values: of the dtype of the sequence, of any shape.
        right: True for the place behind equal elements, False for the place before them.
        dtype: the dtype of the places: int32 or int64.

    Returns:
        A tensor of the shape of `values`.

    Raises:
        UserError: the dtypes differ, the leading axes differ, or `dtype` is another one.

    Reference: TVM, topi.searchsorted; numpy.searchsorted.

    Example::

        >>> S, V = rc.placeholder((4,), name="S"), rc.placeholder((3,), name="V")
        >>> feeds = {S: np.array([1, 2, 2, 5], "float32"), V: np.array([0, 2, 9], "float32")}
        >>> print(*rc.oracle.evaluate([rc.topi.searchsorted(S, V)], feeds))
        [0 1 4]
        >>> print(*rc.oracle.evaluate([rc.topi.searchsorted(S, V, right=True)], feeds))
        [0 3 4]
    """
    require_tensor(sorted_sequence, "searchsorted")
    require_tensor(values, "searchsorted")
    require_one_dtype("searchsorted", sorted_sequence, values)
    require_index_dtype(dtype, "searchsorted")
    if not sorted_sequence.ndim:
        raise UserError(
            "searchsorted cannot search in a tensor without dimensions",
            remedy="give a sequence of one dimension",
            earlier=[sorted_sequence.declaration()],
        )
    if sorted_sequence.ndim > 1:
        require_rank(values, sorted_sequence.ndim, "searchsorted", "the values")
        pairs = zip(extents(values)[:-1], extents(sorted_sequence)[:-1], strict=True)
        for k, (extent, wanted) in enumerate(pairs):
            what = f"extent {k} of the values"
            tensors = (values, sorted_sequence)
            require_extent(extent, wanted, "searchsorted", what, tensors=tensors)
    return bisect(
        sorted_sequence, values, right=right, dtype=dtype, name="searchsorted"
    )


def _sample_searchsorted(draws: Draws) -> Sample:
    dtype = draws.number_dtype()
    values = draws.array(draws.shape(0, 3), dtype)
    rows = values.shape[:-1] if values.ndim and draws.flag() else ()
    sequence = np.sort(draws.array((*rows, draws.extent(0)), dtype), axis=-1)
    attributes = {"right": draws.flag(), "dtype": draws.choice(("int32", "int64"))}
    return Sample((sequence, values), attributes)


@meaning_of(searchsorted, pattern="opaque", sample=_sample_searchsorted)
def searchsorted_numpy(
    sorted_sequence: Array, values: Array, *, right: bool = False, dtype: str = "int64"
) -> Array:
    side: Side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.asarray(np.searchsorted(sorted_sequence, values, side), dtype)
    found = np.zeros(values.shape, dtype)
    for row in np.ndindex(values.shape[:-1]):
        found[row] = np.searchsorted(sorted_sequence[row], values[row], side)
    return found


def bucketize(
    data: Tensor,
    boundaries: Tensor,
    *,
    right: bool = False,
    dtype: DTypeLike = "int64",
) -> Tensor:
    """Return the number of the bucket of each element, between ascending boundaries.

    Bucket i holds x with boundaries[i - 1] < x <= boundaries[i], or with `right` boundaries[i - 1]
    <= x < boundaries[i]. The first and the last bucket have no outer limit. NaN is in the last one,
    unless a boundary is NaN. It is `searchsorted` with its operands exchanged.

    Args:
        data: numbers of any shape.
        boundaries: of the dtype of `data`, ascending, of one dimension.
        right: True if a boundary belongs to the bucket on its right.
        dtype: the dtype of the numbers: int32 or int64.

    Returns:
        A tensor of the shape of `data`, of numbers from 0 to the number of boundaries.

    Raises:
        UserError: the dtypes differ, the boundaries have another rank, or `dtype` is another one.

    Reference: torch.bucketize; numpy.digitize, whose `right` means the opposite.

    Example::

        >>> A, B = rc.placeholder((3,), name="A"), rc.placeholder((2,), name="B")
        >>> feeds = {A: np.array([0, 1, 7], "float32"), B: np.array([1, 5], "float32")}
        >>> print(*rc.oracle.evaluate([rc.topi.bucketize(A, B)], feeds))
        [0 0 2]
    """
    require_tensor(data, "bucketize")
    require_rank(boundaries, 1, "bucketize", "the tensor of boundaries")
    require_one_dtype("bucketize", data, boundaries)
    require_index_dtype(dtype, "bucketize")
    return bisect(boundaries, data, right=right, dtype=dtype, name="bucketize")


def _sample_bucketize(draws: Draws) -> Sample:
    dtype = draws.number_dtype()
    boundaries = np.sort(draws.array((draws.extent(0),), dtype))
    data = draws.array(draws.shape(), dtype)
    attributes = {"right": draws.flag(), "dtype": draws.choice(("int32", "int64"))}
    return Sample((data, boundaries), attributes)


@meaning_of(bucketize, pattern="opaque", sample=_sample_bucketize)
def bucketize_numpy(
    data: Array, boundaries: Array, *, right: bool = False, dtype: str = "int64"
) -> Array:
    return searchsorted_numpy(boundaries, data, right=right, dtype=dtype)
