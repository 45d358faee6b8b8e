"""Comparisons of elements in sorted order, in which NaN is greater than all numbers.

Zeros of both signs are equal, and so are all NaNs.
"""

from __future__ import annotations

from refcomp.ir.expr import Expr
from refcomp.te import maths


def is_less(a: Expr, b: Expr) -> Expr:
    """Return the condition that a comes before b in ascending order, where NaN is the greatest."""
    if a.dtype.is_bool:
        return a.astype("int32") < b.astype("int32")
    if not a.dtype.is_float:
        return a < b
    is_number_before_nan = maths.all(maths.isnan(b), ~maths.isnan(a))
    return maths.any(a < b, is_number_before_nan)


def precedes(a: Expr, b: Expr, is_ascend: bool) -> Expr:
    """Return the condition that a comes before b, whatever their positions are."""
    return is_less(a, b) if is_ascend else is_less(b, a)
