"""The sizes of shape variables, solved from the shapes of arrays.

A dimension that is a variable, `n`, has its size. Then each dimension that is linear in one unknown
variable, such as `n - 2` or `2 * n`, determines that variable. Quotients are rounded down and sizes
are never negative. So where no size fits, the shape that follows differs from the given one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import symbol_of
from refcomp.ir.rewrite import variables_in
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.te.tensor import Tensor


def solve_symbols(
    shapes: Sequence[tuple[Tensor | Buffer, Sequence[int]]], known: Mapping[Var, int]
) -> dict[Var, int]:
    """Return `known` and each variable that the given shapes determine.

    `shapes` has the shape of an array for each tensor or buffer, of the same rank.
    """
    sizes = dict(known)
    dims: list[tuple[Expr, int]] = []
    for tensor, given in shapes:
        dims += zip(tensor.shape, map(int, given), strict=True)
    for dim, size in dims:
        symbol = symbol_of(dim)
        if symbol is not None:
            sizes.setdefault(symbol, size)
    before = -1
    while len(sizes) > before:
        before = len(sizes)
        for dim, size in dims:
            _solve(dim, size, sizes)
    return sizes


def unknown_symbol(tensor: Tensor | Buffer, known: Mapping[Var, object]) -> Var | None:
    """Return a variable in the shape of `tensor` that is not known; None if all are."""
    for dim in tensor.shape:
        for var in variables_in(dim):
            if var not in known:
                return var
    return None


def _solve(dim: Expr, size: int, sizes: dict[Var, int]) -> None:
    """Add the only unknown variable of `dim`, if `dim` is linear in it."""
    unknown = {var for var in variables_in(dim) if var not in sizes}
    if len(unknown) != 1:
        return
    (var,) = unknown
    linear = _linear(dim, var, sizes)
    if linear is not None and linear[0] != 0:
        slope, rest = linear
        sizes[var] = max(0, (size - rest) // slope)


def _linear(dim: Expr, var: Var, sizes: Mapping[Var, int]) -> tuple[int, int] | None:
    """Return slope and rest of `dim` as a linear function of `var`; None if it is not linear."""
    if var not in set(variables_in(dim)):  # as == of expressions builds one
        frame = Frame()
        frame.values.update(sizes)
        return 0, int(frame.evaluate(dim))
    match dim:
        case Var():
            return 1, 0
        case ir.Cast(value=value):
            return _linear(value, var, sizes)
        case ir.Add(a=a, b=b) | ir.Sub(a=a, b=b) | ir.Mul(a=a, b=b):
            left = _linear(a, var, sizes)
            right = _linear(b, var, sizes)
        case _:
            return None
    if left is None or right is None:
        return None
    left_slope, left_rest = left
    right_slope, right_rest = right
    if isinstance(dim, ir.Add):
        return left_slope + right_slope, left_rest + right_rest
    if isinstance(dim, ir.Sub):
        return left_slope - right_slope, left_rest - right_rest
    if left_slope and right_slope:
        return None
    slope = left_slope * right_rest + right_slope * left_rest
    return slope, left_rest * right_rest
