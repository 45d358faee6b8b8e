"""The Python values of constant expressions; every room asks here whether one is constant."""

from collections.abc import Sequence
from math import prod

from refcomp.ir.expr import Broadcast, Expr, FloatImm, IntImm


def as_constant(expr: Expr | None) -> float | None:
    """Return the number that a constant, or a broadcast one, holds in each lane; else None."""
    if isinstance(expr, Broadcast):
        expr = expr.value
    return expr.value if isinstance(expr, IntImm | FloatImm) else None


def as_int(expr: Expr | None) -> int | None:
    """Return the value of an integer or bool constant of one lane; else None."""
    return expr.value if isinstance(expr, IntImm) else None


def as_ints(exprs: Sequence[Expr]) -> list[int] | None:
    """Return the values of integer or bool constants; None if any of `exprs` is not constant."""
    values = [expr.value for expr in exprs if isinstance(expr, IntImm)]
    return values if len(values) == len(exprs) else None


def element_count(shape: Sequence[Expr]) -> int | None:
    """Return how many elements a buffer of this shape has; None where a dimension is symbolic."""
    dims = as_ints(shape)
    return None if dims is None else prod(max(0, dim) for dim in dims)
