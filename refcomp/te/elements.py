"""Computes that work element by element on tensors, with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refcomp.ir.expr import Expr
from refcomp.te.extents import (
    Extent,
    broadcast_extents,
    extents,
    is_same,
    require_tensor,
)
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import ExprLike, Tensor


def read_broadcast(tensor: Tensor, index: tuple[Expr, ...]) -> Expr:
    """Return the element of `tensor` that broadcasting puts at `index` of the result."""
    aligned = index[len(index) - tensor.ndim :]
    own: list[ExprLike] = []
    for i, size in zip(aligned, extents(tensor), strict=True):
        own.append(0 if is_same(size, 1) else i)
    return tensor[tuple(own)]


def broadcast_elements(
    tensors: Sequence[Tensor], function: Callable[..., Expr], name: str
) -> Tensor:
    """Return function(*elements) for the elements of one or more tensors, with broadcasting.

    Raises:
        UserError: an operand is not a tensor, or the shapes do not broadcast.
    """
    shape: tuple[Extent, ...] = ()
    for tensor in tensors:
        require_tensor(tensor, name)
        shape = broadcast_extents(shape, extents(tensor), name, tensors=tensors)

    def element(*index: Expr) -> Expr:
        return function(*(read_broadcast(tensor, index) for tensor in tensors))

    return compute(shape, element, name=name, tag=INJECTIVE)
