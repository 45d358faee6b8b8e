"""The Python values of constant expressions.

All modules read constants with these functions, so that no module tests for classes of nodes.
"""

from collections.abc import Sequence
from math import prod

from refcomp.ir.expr import Broadcast, Expr, FloatImm, IntImm


def as_constant(expr: Expr | None) -> float | None:
    """Return the value of a constant or a broadcast constant; None for other expressions."""
    if isinstance(expr, Broadcast):
        expr = expr.value
    return expr.value if isinstance(expr, IntImm | FloatImm) else None


def as_int(expr: Expr | None) -> int | None:
    """Return the value of a scalar integer or bool constant; None for other expressions."""
    return expr.value if isinstance(expr, IntImm) else None


def as_ints(exprs: Sequence[Expr]) -> list[int] | None:
    """Return the values of integer or bool constants; None if any of `exprs` is not constant."""
    values = [expr.value for expr in exprs if isinstance(expr, IntImm)]
    return values if len(values) == len(exprs) else None


def element_count(shape: Sequence[Expr]) -> int | None:
    """Return the number of elements of a buffer of this shape; None if a dimension is symbolic."""
    dims = as_ints(shape)
    if dims is None:
        return None
    return prod(max(0, dim) for dim in dims)
