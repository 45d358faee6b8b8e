"""Grids of coordinates: meshgrid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.te.extents import Extent, extents
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.rearrange import rearrange
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_rank


def meshgrid(*vectors: Tensor, indexing: str = "ij") -> list[Tensor]:
    """Return for each vector a tensor that repeats it along the axes of all others.

        result[k][i0, i1, ...] = vectors[k][ik]

    With `indexing="xy"` the first two axes of all results are exchanged. Elements are not changed,
    so NaN keeps its bits. A vector without elements makes all results empty.

    Args:
        vectors: one or more vectors [n0], [n1], ..., of any dtypes.
        indexing: "ij" for matrix order, "xy" for the order of images.

    Returns:
        A list of tensors [n0, n1, ...], or [n1, n0, ...] for "xy", each of its vector's dtype.

    Raises:
        UserError: there is no vector, an operand is not a vector, or `indexing` is something else.

    Reference: numpy.meshgrid; TVM, topi.meshgrid.

    Example::

        >>> A, B = rc.placeholder((2,), name="A"), rc.placeholder((3,), name="B")
        >>> X, Y = rc.topi.meshgrid(A, B)
        >>> a, b = np.array([1, 2], "float32"), np.array([3, 4, 5], "float32")
        >>> rc.oracle.evaluate([X], {A: a})[0].tolist()
        [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
        >>> rc.oracle.evaluate([Y], {B: b})[0].tolist()
        [[3.0, 4.0, 5.0], [3.0, 4.0, 5.0]]
    """
    operator = "meshgrid"
    if not vectors:
        raise UserError(f"{operator} has no vectors", remedy="give one or more vectors")
    for vector in vectors:
        require_rank(vector, 1, operator, "a vector")
    if indexing not in ("ij", "xy"):
        raise UserError(
            f"{operator} has no indexing {indexing!r}", remedy='give "ij" or "xy"'
        )
    # The axis of the results along which each vector lies.
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(axes) > 1:
        axes[0], axes[1] = 1, 0
    shape = [extents(vectors[axis])[0] for axis in axes]
    return [
        _repeated(vector, axis, shape)
        for vector, axis in zip(vectors, axes, strict=True)
    ]


def _repeated(vector: Tensor, axis: int, shape: Sequence[Extent]) -> Tensor:
    """Return a tensor of `shape` that has the vector along `axis`."""
    return rearrange(vector, shape, lambda index: [index[axis]], "meshgrid")


def _sample_meshgrid(draws: Draws) -> Sample:
    count = draws.integer(1, 3)
    vectors = [
        draws.array((draws.extent(0),), draws.number_dtype()) for _ in range(count)
    ]
    return Sample(tuple(vectors), {"indexing": draws.choice(("ij", "xy"))})


@meaning_of(meshgrid, sample=_sample_meshgrid, pattern="injective")
def meshgrid_numpy(*vectors: Array, indexing: str = "ij") -> list[Array]:
    grids = np.meshgrid(*vectors, indexing=indexing)  # type: ignore[call-overload]
    return [np.ascontiguousarray(grid) for grid in grids]
