"""Guards as conjunctions of comparisons, and comparisons as linear functions of one variable.

A condition is followed if it is a conjunction of integer comparisons, or the negation of a
disjunction of them.
"""

from __future__ import annotations

from typing import NamedTuple

from refcomp.foundation.dtype import I64, U64
from refcomp.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Expr,
    IntImm,
    Mul,
    Not,
    Or,
    Sub,
    Var,
)
from refcomp.ir.rewrite import variables_in


class AtMost(NamedTuple):
    """The comparison `small + gap <= large`, in exact integers."""

    small: Expr
    large: Expr
    gap: int


def comparisons(condition: Expr, holds: bool = True) -> tuple[AtMost, ...] | None:
    """Return the comparisons whose conjunction is `condition`, or its negation if not `holds`.

    Return None if the condition is not followed.
    """
    match condition:
        case Not(a=a):
            return comparisons(a, not holds)
        case And(a=a, b=b) | Or(a=a, b=b) if isinstance(condition, And) == holds:
            left = comparisons(a, holds)
            right = comparisons(b, holds)
            return None if left is None or right is None else (*left, *right)
        case BinaryExpr(a=a, b=b) if a.dtype.is_int and a.dtype.lanes == 1:
            # Values of u64 do not fit in i64, in which ends are computed.
            return None if a.dtype == U64 else _comparison(condition, a, b, holds)
    return None


def _comparison(
    condition: Expr, a: Expr, b: Expr, holds: bool
) -> tuple[AtMost, ...] | None:
    kind = type(condition)
    if kind in (GT, GE):
        kind = LT if kind is GT else LE
        a, b = b, a
    if kind in (LT, LE):
        if not holds:
            # The opposite of a < b is b <= a.
            kind = LE if kind is LT else LT
            a, b = b, a
        gap = 1 if kind is LT else 0
        return (AtMost(a, b, gap),)
    if kind is (EQ if holds else NE):
        return AtMost(a, b, 0), AtMost(b, a, 0)
    return None


class Linear(NamedTuple):
    """The value `factor * var + rest`, whose `rest` does not depend on the variable."""

    factor: int
    rest: Expr


def linear(expr: Expr, var: Var) -> Linear | None:
    """Return `expr`, of i64, as a linear function of `var`; None if it is not one."""
    if expr.dtype != I64:
        return None
    if expr is var:
        return Linear(1, IntImm(0, I64))
    if var not in variables_in(expr):
        return Linear(0, expr)
    match expr:
        case Add(a=a, b=b) | Sub(a=a, b=b):
            left = linear(a, var)
            right = linear(b, var)
            if left is None or right is None:
                return None
            if isinstance(expr, Add):
                return Linear(left.factor + right.factor, left.rest + right.rest)
            return Linear(left.factor - right.factor, left.rest - right.rest)
        case Mul(a=a, b=IntImm(value=factor)) | Mul(a=IntImm(value=factor), b=a):
            inner = linear(a, var)
            return inner and Linear(inner.factor * factor, inner.rest * factor)
    return None
