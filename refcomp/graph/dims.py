"""Extents of a graph's values: plain data that can be compared, and converted from and to te.

An extent (`artifacts.Dim`) is an int, the name of a symbol, or a small tree of operators. The
functions here build extents in a normal form: they fold constants, and gather the constants that
are added to one operand or that multiply it. So equal computations mostly give equal extents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from refcomp.foundation.artifacts import Dim, evaluate_dim
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.integers import floor_quotient, floor_remainder
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.te import maths
from refcomp.te.tensor import var

Shape = tuple[Dim, ...]


def add(a: Dim, b: Dim) -> Dim:
    """Return a + b."""
    if isinstance(a, int):
        a, b = b, a
    match a, b:
        case int(), int():
            return a + b
        case _, 0:
            return a
        case ("add", left, int(constant)), int():
            return add(left, constant + b)
    return ("add", a, b)


def subtract(a: Dim, b: Dim) -> Dim:
    """Return a - b."""
    if a == b:
        return 0
    return add(a, -b) if isinstance(b, int) else ("sub", a, b)


def multiply(a: Dim, b: Dim) -> Dim:
    """Return a * b."""
    if isinstance(a, int):
        a, b = b, a
    match a, b:
        case int(), int():
            return a * b
        case _, 0:
            return 0
        case _, 1:
            return a
        case ("mul", left, int(constant)), int():
            return multiply(left, constant * b)
    return ("mul", a, b)


def floor_divide(a: Dim, b: Dim) -> Dim:
    """Return a // b, which is 0 if b is 0."""
    if isinstance(a, int) and isinstance(b, int):
        return floor_quotient(a, b)
    if b == 1:
        return a
    match a, b:
        case ("mul", symbol, int(factor)), int() if b and factor % b == 0:
            return multiply(symbol, factor // b)
    return ("floordiv", a, b)


def _constant_or_node(
    operator: str, fold: Callable[[int, int], int]
) -> Callable[[Dim, Dim], Dim]:
    """Return the function that folds two constants and builds a tuple otherwise."""

    def apply(a: Dim, b: Dim) -> Dim:
        if isinstance(a, int) and isinstance(b, int):
            return fold(a, b)
        return (operator, a, b)

    return apply


_FROM_EXPR: dict[type[Expr], Callable[[Dim, Dim], Dim]] = {
    ir.Add: add,
    ir.Sub: subtract,
    ir.Mul: multiply,
    ir.FloorDiv: floor_divide,
    ir.FloorMod: _constant_or_node("floormod", floor_remainder),
    ir.Min: _constant_or_node("min", min),
    ir.Max: _constant_or_node("max", max),
}
_TO_EXPR: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "floormod": maths.floormod,
    "min": maths.minimum,
    "max": maths.maximum,
}


_FOLDED = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "floordiv": floor_divide,
}


def substitute(dim: Dim, symbols: Mapping[str, Dim]) -> Dim:
    """Return an extent or a condition with symbols replaced by their values or extents."""
    if isinstance(dim, str):
        return symbols.get(dim, dim)
    if isinstance(dim, int):
        return dim
    operator, left, right = dim
    a = substitute(left, symbols)
    b = substitute(right, symbols)
    if isinstance(a, int) and isinstance(b, int):
        return evaluate_dim((operator, a, b), {})
    if operator in _FOLDED:
        return _FOLDED[operator](a, b)
    return (operator, a, b)


class Symbols(dict[str, Var]):
    """The te variable of each symbol, which the first access makes."""

    def __missing__(self, name: str) -> Var:
        return self.setdefault(name, var(name))


def dim_to_expr(dim: Dim, symbols: Symbols) -> Expr:
    """Return the extent as a te expression over `symbols`."""
    if isinstance(dim, int):
        return IntImm(dim, I64)
    if isinstance(dim, str):
        return symbols[dim]
    operator, a, b = dim
    return _TO_EXPR[operator](dim_to_expr(a, symbols), dim_to_expr(b, symbols))


def expr_to_dim(expr: Expr, names: Mapping[Var, str] = MappingProxyType({})) -> Dim:
    """Return the te expression `expr` as an extent.

    Args:
        expr: integers, variables, and the operators of extents.
        names: variable -> symbol, for variables whose symbols have other names.

    Raises:
        Unsupported: `expr` has another operator.
    """
    match expr:
        case IntImm(value=value):
            return value
        case Var(name=name):
            return names.get(expr, name)
        # Extents are below 2**63, and only widened.
        case ir.Cast(dtype=dtype, value=inner) if dtype.is_int and inner.dtype.is_int:
            return expr_to_dim(inner, names)
        case ir.BinaryExpr(a=a, b=b) if type(expr) in _FROM_EXPR:
            return _FROM_EXPR[type(expr)](expr_to_dim(a, names), expr_to_dim(b, names))
    raise Unsupported(
        f"a graph cannot compute an extent by {type(expr).__name__}",
        why="extents are sums, differences, products, quotients, minima and maxima",
        remedy="compute the extent outside of the graph",
    )
