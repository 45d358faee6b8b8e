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
from refcomp.ir.expr import Expr, IfThenElseExpr, Let, Not, Select
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, walk
from refcomp.ir.stmt import For, IfThenElse, LetStmt, Stmt
from refcomp.passes.analysis.access_ranges import is_in_range
from refcomp.passes.simplify_expressions import facts_of


def make_selects_lazy(func: PrimFunc) -> PrimFunc:
    """Return `func` with if_then_else for each select that may read out of range."""
    if not any(isinstance(node, Select) for node in walk(func.body)):
        return func
    return func.with_body(_visit(func.body, facts_of(func)))


def _visit(stmt: Stmt, facts: Facts) -> Stmt:
    """Return `stmt`, which stands where `facts` hold, with lazy selects."""

    def visit(child: Stmt) -> Stmt:
        return _visit(child, _facts_in(stmt, child, facts))

    rebuilt = map_children(stmt, lambda expr: _expr(expr, facts), only=Expr)
    return map_children(rebuilt, visit, only=Stmt)


def _facts_in(stmt: Stmt, child: Stmt, facts: Facts) -> Facts:
    """Return the facts that hold in a child of `stmt`."""
    if isinstance(stmt, For) and child is stmt.body:
        return facts.bind(stmt.var, stmt.minimum, stmt.extent)
    if isinstance(stmt, LetStmt) and child is stmt.body:
        return facts.let(stmt.var, stmt.value)
    if isinstance(stmt, IfThenElse) and child is stmt.then_case:
        return facts.assume(stmt.condition)
    if isinstance(stmt, IfThenElse) and child is stmt.else_case:
        return facts.assume(Not(stmt.condition))
    return facts


def _expr(expr: Expr, facts: Facts) -> Expr:
    def visit(recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, IfThenElseExpr):
            return _choice(node, facts)
        if isinstance(node, Let):
            value = recurse(node.value)
            body = _expr(node.body, facts.let(node.var, node.value))
            is_same = value is node.value and body is node.body
            return node if is_same else Let(node.var, value, body)
        if isinstance(node, Select) and not all(
            is_in_range(side, facts) for side in (node.true_value, node.false_value)
        ):
            lazy = IfThenElseExpr(node.condition, node.true_value, node.false_value)
            return _choice(lazy, facts)
        return map_children(node, recurse)

    return rewriter(visit)(expr)


def _choice(node: IfThenElseExpr, facts: Facts) -> Expr:
    def visit(child: Expr) -> Expr:
        if child is node.condition:
            return _expr(child, facts)
        holds = node.condition if child is node.true_value else Not(node.condition)
        return _expr(child, facts.assume(holds))

    return map_children(node, visit, only=Expr)
