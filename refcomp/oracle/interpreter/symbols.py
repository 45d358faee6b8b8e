"""The sizes of shape variables, solved from the extents that arrays have.

A dimension that is a variable, `n`, has its size. Then each dimension that is linear in one unknown
variable, such as `n - 2` or `2 * n`, gives that variable. Quotients are rounded down and sizes are
never negative: where no size fits, the shape that follows differs from the one that is given.
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
    """Return `known` and each variable that the sizes of the given arrays determine."""
    sizes = dict(known)
    dims = [
        (dim, int(size))
        for tensor, given in shapes
        for dim, size in zip(tensor.shape, given, strict=True)
    ]
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
    """The slope and the rest of `dim` as a linear function of `var`; None if it is not one."""
    if var not in set(variables_in(dim)):
        frame = Frame()
        frame.values.update(sizes)
        return 0, int(frame.evaluate(dim))
    match dim:
        case Var():
            return 1, 0
        case ir.Cast(value=value):
            return _linear(value, var, sizes)
        case ir.Add(a=a, b=b) | ir.Sub(a=a, b=b) | ir.Mul(a=a, b=b):
            left, right = _linear(a, var, sizes), _linear(b, var, sizes)
        case _:
            return None
    if left is None or right is None:
        return None
    if isinstance(dim, ir.Mul):
        if left[0] and right[0]:
            return None
        slope = left[0] * right[1] + right[0] * left[1]
        return slope, left[1] * right[1]
    sign = -1 if isinstance(dim, ir.Sub) else 1
    return left[0] + sign * right[0], left[1] + sign * right[1]
