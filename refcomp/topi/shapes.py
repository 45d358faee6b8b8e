"""Arithmetic on extents: Python integers where they are known, expressions where they are not.

Every operator computes its output's shape here, so that known extents stay plain constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.structure import structurally_equal
from refcomp.te.tensor import Tensor

Extent = int | Expr
Array = np.ndarray[Any, np.dtype[Any]]


def require_tensor(value: Any, operator: str) -> None:
    """UserError for an operand that is not a tensor."""
    if not isinstance(value, Tensor):
        raise UserError(
            f"{operator} is applied to a {type(value).__name__}, not to a tensor",
            remedy="make one by refcomp.placeholder; arrays are given to the built function",
        )


def extents(tensor: Tensor) -> tuple[Extent, ...]:
    """The tensor's extents; each is an int where it is constant."""
    return tuple(d.value if isinstance(d, IntImm) else d for d in tensor.shape)


def is_same(a: Extent, b: Extent) -> bool:
    """Return True if two extents are known to be equal."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return structurally_equal(a, b)


def require_constant(extent: Extent, what: str) -> int:
    """Return the extent as an int, or raise UserError if it is symbolic."""
    if isinstance(extent, int):
        return extent
    raise UserError(
        f"{what} must be a constant", why="refcomp needs it when it compiles"
    )


def require_rank(tensor: Tensor, rank: int, operator: str, what: str) -> None:
    """UserError when the tensor has another rank."""
    require_tensor(tensor, operator)
    if tensor.ndim != rank:
        raise UserError(
            f"{operator}: {what} has {tensor.ndim} dimensions instead of {rank}"
        )


def require_extent(actual: Extent, expected: Extent, operator: str, what: str) -> None:
    """UserError when two extents are not known to be equal."""
    if not is_same(actual, expected):
        shown = f"{_text(actual)} instead of {_text(expected)}"
        raise UserError(f"{operator}: {what} is {shown}")


def _text(extent: Extent) -> str:
    return (
        str(extent) if isinstance(extent, int) else getattr(extent, "name", "symbolic")
    )


def product(factors: Sequence[Extent]) -> Extent:
    """The product of extents, the constant ones multiplied first."""
    constant, result = 1, None
    for factor in factors:
        if isinstance(factor, int):
            constant *= factor
        else:
            result = factor if result is None else result * factor
    if result is None or constant == 0:
        return constant
    return result if constant == 1 else result * constant


def window_extent(
    size: Extent, kernel: int, stride: int, dilation: int, before: int, after: int
) -> Extent:
    """Return the number of windows along an axis of `size` elements with the given padding."""
    reach = before + after - dilation * (kernel - 1) - 1
    if isinstance(size, int):
        if size + reach < 0:
            raise UserError(
                f"a window of {dilation * (kernel - 1) + 1} does not fit in {size} elements "
                f"with {before} + {after} of padding"
            )
        return (size + reach) // stride + 1
    if stride == 1 and reach == -1:
        return size
    shifted = size + reach
    return (shifted if stride == 1 else shifted // stride) + 1


def broadcast_extents(
    a: Sequence[Extent], b: Sequence[Extent], operator: str
) -> tuple[Extent, ...]:
    """The shape of an elementwise operation on shapes a and b, by numpy's rules.

    UserError when two extents differ and neither is the constant 1.
    """
    rank = max(len(a), len(b))
    pairs = zip(_fill(a, rank), _fill(b, rank), strict=True)
    return tuple(_broadcast_pair(x, y, operator) for x, y in pairs)


def _fill(shape: Sequence[Extent], rank: int) -> tuple[Extent, ...]:
    return (*[1] * (rank - len(shape)), *shape)


def _broadcast_pair(a: Extent, b: Extent, operator: str) -> Extent:
    if isinstance(a, int) and a == 1:
        return b
    if isinstance(b, int) and b == 1:
        return a
    require_extent(b, a, operator, "an extent of the second operand")
    return a


def normalize_axis(axis: int, rank: int, operator: str) -> int:
    """`axis` counted from 0; UserError when it is out of range."""
    if not -rank <= axis < rank:
        raise UserError(
            f"{operator}: axis {axis} is out of range for {rank} dimensions"
        )
    return axis % rank


def widen(array: Array) -> Array:
    """A float array as f64, so that a meaning rounds once; any other array as it is."""
    return array.astype(np.float64) if as_dtype(array.dtype).is_float else array
