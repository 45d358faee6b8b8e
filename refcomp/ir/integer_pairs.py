"""Products of pairs: an i32 holds two integers of 16 bits, as one lane of a vector register does.

    x = low(x) + 2^16 * high(x),   with -2^15 <= low(x), high(x) < 2^15
    pair_product(x, y) = low(x) * low(y) + high(x) * high(y)

Processors add the products of pairs by one instruction for each vector (x86: pmaddwd). Loop IR has
no node for it: it is arithmetic that every target has, and a printer may recognise it.
"""

from __future__ import annotations

from refcomp.foundation.dtype import I32
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Add, Broadcast, Expr, Mul, ShiftLeft, ShiftRight
from refcomp.ir.promotion import const
from refcomp.ir.structure import structurally_equal

_HALF = 16  # bits


def make_pair(low: Expr, high: Expr) -> Expr:
    """Return the i32 that holds two integers of 16 bits.

    Args:
        low: an i32 between -2^15 and 2^15 - 1.
        high: likewise.
    """
    return (low & const(0xFFFF, I32)) | (high << const(_HALF, I32))


def pair_product(x: Expr, y: Expr) -> Expr:
    """Return low(x) * low(y) + high(x) * high(y) of two scalars of i32. The sum wraps."""
    half = const(_HALF, I32)
    low = ((x << half) >> half) * ((y << half) >> half)
    return low + (x >> half) * (y >> half)


def find_pair_product(expr: Expr) -> tuple[Expr, Expr] | None:
    """Return x and y if `expr` is their `pair_product`, on scalars or vectors; else None.

    A factor that is a vector of equal lanes is returned as a Broadcast.
    """
    if not isinstance(expr, Add) or expr.dtype.element != I32:
        return None
    if not (isinstance(expr.a, Mul) and isinstance(expr.b, Mul)):
        return None
    for low, high in ((expr.a, expr.b), (expr.b, expr.a)):
        lows = (_low_of(low.a), _low_of(low.b))
        x, y = _high_of(high.a), _high_of(high.b)
        if x is None or y is None:
            continue
        for a, b in (lows, lows[::-1]):
            if _is_same(a, x) and _is_same(b, y):
                return x, y
    return None


def _is_same(a: Expr | None, b: Expr) -> bool:
    return a is not None and structurally_equal(a, b)


def _low_of(expr: Expr) -> Expr | None:
    """Return x of `x << 16 >> 16`; None if the expression is something else."""
    if isinstance(expr, Broadcast):
        return _repeated(_low_of(expr.value), expr.lanes)
    shifted = _high_of(expr)
    if isinstance(shifted, ShiftLeft) and _is_half(shifted.b):
        return shifted.a
    return None


def _high_of(expr: Expr) -> Expr | None:
    """Return x of `x >> 16`; None if the expression is something else."""
    if isinstance(expr, Broadcast):
        return _repeated(_high_of(expr.value), expr.lanes)
    if isinstance(expr, ShiftRight) and _is_half(expr.b):
        return expr.a
    return None


def _is_half(distance: Expr) -> bool:
    return as_constant(distance) == _HALF


def _repeated(value: Expr | None, lanes: int) -> Expr | None:
    return None if value is None else Broadcast(value, lanes)
