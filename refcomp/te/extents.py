"""Extents of tensors: comparing them, requiring that they agree, and broadcasting.

An extent is a Python int if it is constant, else an expression.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.structure import structurally_equal
from refcomp.te.tensor import ExprLike, Tensor

Extent = int | Expr


def require_tensor(value: object, operator: str) -> None:
    """Raise UserError if an operand is not a tensor."""
    if not isinstance(value, Tensor):
        raise UserError(
            f"{operator} is applied to a {type(value).__name__}, not to a tensor",
            remedy="make one by refcomp.placeholder; arrays are given to the built function",
        )


def extents(tensor: Tensor) -> tuple[Extent, ...]:
    """Return the tensor's extents. Each is an int if it is constant."""
    return tuple(d.value if isinstance(d, IntImm) else d for d in tensor.shape)


def is_same(a: Extent, b: Extent) -> bool:
    """Return True if two extents are known to be equal."""
    if isinstance(a, int) or isinstance(b, int):
        # Not `a == b` alone: with an expression, that builds a comparison.
        return isinstance(a, int) and isinstance(b, int) and a == b
    return structurally_equal(a, b)


def require_extent(
    actual: Extent,
    expected: Extent,
    operator: str,
    what: str,
    *,
    tensors: Sequence[Tensor] = (),
) -> None:
    """Raise UserError if two extents are not known to be equal.

    The message quotes the declarations of `tensors`, to which the extents belong.
    """
    if not is_same(actual, expected):
        shown = f"{_text(actual)} instead of {_text(expected)}"
        raise UserError(
            f"{operator}: {what} is {shown}",
            remedy="give tensors whose shapes agree",
            earlier=[tensor.declaration() for tensor in tensors],
        )


def _text(extent: Extent) -> str:
    if isinstance(extent, int):
        return str(extent)
    return str(extent)


def broadcast_extents(
    a: Sequence[Extent],
    b: Sequence[Extent],
    operator: str,
    *,
    tensors: Sequence[Tensor] = (),
) -> tuple[Extent, ...]:
    """Return the shape of an elementwise operation on shapes a and b, by numpy's rules.

    A message quotes the declarations of `tensors`, to which the shapes belong.

    Raises:
        UserError: two extents are not known to be equal, and neither is the constant 1.
    """
    rank = max(len(a), len(b))
    padded_a = (*[1] * (rank - len(a)), *a)
    padded_b = (*[1] * (rank - len(b)), *b)
    shape = []
    for x, y in zip(padded_a, padded_b, strict=True):
        if is_same(x, 1):
            shape.append(y)
            continue
        # A symbolic extent may be 1 at run time; it is not repeated then.
        if not is_same(y, 1):
            what = "an extent of the second operand"
            require_extent(y, x, operator, what, tensors=tensors)
        shape.append(x)
    return tuple(shape)


def read_broadcast(tensor: Tensor, index: tuple[Expr, ...]) -> Expr:
    """Return the element of `tensor` that broadcasting puts at `index` of the result."""
    aligned = index[len(index) - tensor.ndim :]
    own: list[ExprLike] = []
    for i, size in zip(aligned, extents(tensor), strict=True):
        own.append(0 if is_same(size, 1) else i)
    return tensor[tuple(own)]
