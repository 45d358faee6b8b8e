"""Turns a select that may read out of range into a choice that reads only one side.

Before::

    func f(A: f32[n], B: f32[n] out) {
      for i in range(n) {
        B[i] = select(1 <= i, A[i - 1], 0.0f32) + select(i < 4, A[i], 0.0f32)
      }
    }

After::

    func f(A: f32[n], B: f32[n] out) {
      for i in range(n) {
        B[i] = if_then_else(1 <= i, A[i - 1], 0.0f32) + select(i < 4, A[i], 0.0f32)
      }
    }

Both sides of a `select` may be evaluated. But users of the classic language guard reads
by it. So if a read is not proved to be in range without the select's own condition, only
the chosen side may be evaluated. A select whose reads are all in range is kept, since it
is cheaper.

Requires: nothing. Ensures: no select reads out of range on the side that its condition
does not choose. Level: nested, kept. It refuses nothing.
"""

from __future__ import annotations

from refcomp.arith import Facts
from refcomp.ir.expr import Expr, IfThenElseExpr, Let, Select
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter
from refcomp.ir.stmt import Stmt
from refcomp.passes.analysis.access_ranges import is_in_range
from refcomp.passes.analysis.contents import holds
from refcomp.passes.analysis.scope_facts import facts_in, facts_of


def make_selects_lazy(func: PrimFunc) -> PrimFunc:
    """Return `func` with if_then_else for each select that may read out of range."""
    if not holds(func, Select):
        return func
    return func.with_body(_visit(func.body, facts_of(func)))


def _visit(stmt: Stmt, facts: Facts) -> Stmt:
    """Return `stmt`, which stands where `facts` hold, with lazy selects."""

    def visit(child: Stmt) -> Stmt:
        return _visit(child, facts_in(stmt, child, facts))

    rebuilt = map_children(stmt, lambda expr: _expr(expr, facts), only=Expr)
    return map_children(rebuilt, visit, only=Stmt)


def _expr(expr: Expr, facts: Facts) -> Expr:
    def visit(recurse: Rewrite, node: Node) -> Node:
        # Where more is known, the memo of this rewrite cannot be used.
        if isinstance(node, IfThenElseExpr | Let):
            return _inside(node, facts)
        if isinstance(node, Select):
            yes = node.true_value
            no = node.false_value
            if not (is_in_range(yes, facts) and is_in_range(no, facts)):
                lazy = IfThenElseExpr(node.condition, yes, no)
                return _inside(lazy, facts)
        return map_children(node, recurse)

    rewrite = rewriter(visit)
    return rewrite(expr)


def _inside(node: IfThenElseExpr | Let, facts: Facts) -> Expr:
    """Return `node` with lazy selects in its children."""

    def visit(child: Expr) -> Expr:
        return _expr(child, facts_in(node, child, facts))

    return map_children(node, visit, only=Expr)
