"""Proofs of conditions under facts, and simplification as a function: the doors of this room."""

from __future__ import annotations

from refcomp.arith.facts import Facts
from refcomp.arith.interval import Interval
from refcomp.arith.modular import Modular
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr


def simplify(expr: Expr, facts: Facts | None = None) -> Expr:
    """A simpler expression of the same dtype and, wherever `facts` hold, the same value.

    The same object when there is nothing to simplify. Equal expressions give equal results.
    """
    known = Facts() if facts is None else facts
    return known.simplifier.simplify(expr)


def prove(condition: Expr, facts: Facts | None = None) -> bool:
    """Whether the scalar bool `condition` holds wherever `facts` do; False means "not proved"."""
    if not condition.dtype.is_bool or condition.dtype.lanes != 1:
        raise UserError(
            f"only a scalar bool can be proved, not a value of dtype {condition.dtype}",
            remedy="compare the value with something",
        )
    return as_int(simplify(condition, facts)) == 1


def interval(expr: Expr, facts: Facts | None = None) -> Interval:
    """Bounds of an integer expression's values, None for a side without one."""
    known = Facts() if facts is None else facts
    return known.bounds.interval(known.simplifier.representative(expr))


def modular(expr: Expr, facts: Facts | None = None) -> Modular:
    """The known remainder of an integer expression's values."""
    known = Facts() if facts is None else facts
    return known.bounds.modular(known.simplifier.representative(expr))
