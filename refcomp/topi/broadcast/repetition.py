"""Repetition of a tensor along axes, to a wanted shape.

Shapes broadcast as in numpy: they are aligned at the last axis, and the constant extent 1 is
repeated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.te.extents import (
    Extent,
    extents,
    is_same,
    read_broadcast,
    require_extent,
    require_tensor,
)
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array


def _repeat(data: Tensor, shape: Sequence[Extent], name: str) -> Tensor:
    require_tensor(data, name)
    given = extents(data)
    missing = len(shape) - len(given)
    if missing < 0:
        raise UserError(
            f"{name} cannot make {len(shape)} dimensions of {len(given)}",
            remedy="reshape the tensor first",
            earlier=[data.declaration()],
        )
    for place, size in enumerate(given):
        if not is_same(size, 1):
            what = f"extent {place} of the tensor"
            require_extent(size, shape[place + missing], name, what, tensors=(data,))
    return compute(
        shape,
        lambda *index: read_broadcast(data, index),
        name=name,
        tag=INJECTIVE,
    )


def _draw_part(draws: Draws, shape: Sequence[int]) -> Array:
    """Return an array that broadcasts to `shape`."""
    return draws.array(draws.reduced_shape(shape), draws.number_dtype())


def broadcast_to(data: Tensor, *, shape: Sequence[int]) -> Tensor:
    """Return `data` repeated along axes, so that it has another shape.

    Shapes are aligned at the last axis. An extent of 1 is repeated, and missing first axes are
    added.

    Args:
        data: a tensor of any dtype.
        shape: the extents of the result. Each is the extent of `data` at its place, unless that is
            1.

    Returns:
        A tensor of this shape and the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor, `shape` has a negative extent, or `data` does not
            broadcast to it.

    Reference: TVM topi.broadcast_to; numpy.broadcast_to. ONNX Expand broadcasts in both directions.

    Example::

        >>> A = rc.placeholder((2, 1), "int32", name="A")
        >>> B = rc.topi.broadcast_to(A, shape=(2, 3))
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1], [2]], "int32")}))
        [[1 1 1]
         [2 2 2]]
    """
    if any(extent < 0 for extent in shape):
        raise UserError(
            f"broadcast_to cannot make the shape {tuple(shape)}",
            remedy="give extents >= 0",
        )
    return _repeat(data, tuple(shape), "broadcast_to")


def _sample_broadcast_to(draws: Draws) -> Sample:
    shape = draws.shape()
    return Sample((_draw_part(draws, shape),), {"shape": shape})


@meaning_of(broadcast_to, sample=_sample_broadcast_to, pattern="injective")
def broadcast_to_numpy(data: Array, *, shape: Sequence[int]) -> Array:
    return np.broadcast_to(data, tuple(shape)).copy()


def broadcast_like(data: Tensor, like: Tensor) -> Tensor:
    """Return `data` repeated along axes, so that it has the shape of `like`.

    Shapes are aligned as by `broadcast_to`. The elements of `like` are not read.

    Args:
        data: a tensor of any dtype.
        like: a tensor of any dtype, whose shape is taken.

    Returns:
        A tensor of the shape of `like` and the dtype of `data`.

    Raises:
        UserError: an operand is not a tensor, or `data` does not broadcast to the shape of `like`.

    Reference: TVM relay.broadcast_to_like.

    Example::

        >>> A, B = rc.placeholder((1,), "int32", name="A"), rc.placeholder((2, 3), name="B")
        >>> C = rc.topi.broadcast_like(A, B)
        >>> print(*rc.oracle.evaluate([C], {A: np.array([7], "int32")}))
        [[7 7 7]
         [7 7 7]]
    """
    require_tensor(like, "broadcast_like")
    return _repeat(data, extents(like), "broadcast_like")


def _sample_broadcast_like(draws: Draws) -> Sample:
    shape = draws.shape()
    like = draws.array(shape, draws.number_dtype())
    return Sample((_draw_part(draws, shape), like))


@meaning_of(broadcast_like, sample=_sample_broadcast_like, pattern="injective")
def broadcast_like_numpy(data: Array, like: Array) -> Array:
    return np.broadcast_to(data, like.shape).copy()
