"""Simplification of expressions and proofs of conditions as functions: the doors of this room."""

from __future__ import annotations

from refcomp.arith.facts import Facts
from refcomp.arith.interval import Interval
from refcomp.arith.modular import Modular
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr


def simplify(expr: Expr, facts: Facts | None = None) -> Expr:
    """Return a simpler expression of the same dtype, of equal value wherever `facts` hold.

    The result is the same object if nothing can be simplified. Expressions of equal structure
    have equal results.
    """
    known = Facts() if facts is None else facts
    return known.simplifier.simplify(expr)


def prove(condition: Expr, facts: Facts | None = None) -> bool:
    """Return True if the scalar bool `condition` holds wherever `facts` do.

    False means "not proved". Raises UserError for a condition of another dtype.
    """
    if not condition.dtype.is_bool or condition.dtype.lanes != 1:
        raise UserError(
            f"only a scalar bool can be proved, not a value of dtype {condition.dtype}",
            remedy="compare the value with something",
        )
    return as_int(simplify(condition, facts)) == 1


def interval(expr: Expr, facts: Facts | None = None) -> Interval:
    """Return bounds of the values of an integer expression."""
    known = Facts() if facts is None else facts
    return known.bounds.interval(known.simplifier.representative(expr))


def modular(expr: Expr, facts: Facts | None = None) -> Modular:
    """Return a congruence that holds for all values of an integer expression."""
    known = Facts() if facts is None else facts
    return known.bounds.modular(known.simplifier.representative(expr))
