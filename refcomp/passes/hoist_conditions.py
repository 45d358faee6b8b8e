"""Moves conditions that a loop does not change out of it.

Before::

    func f(A: f32[n, m], B: f32[n, m] out, s: i64) {
      for i in range(n) {
        for j in range(m) {
          if (i < s) {
            B[i, j] = A[i, j]
          } else {
            B[i, j] = 0.0f32
          }
        }
      }
    }

After::

    func f(A: f32[n, m], B: f32[n, m] out, s: i64) {
      for i in range(n) {
        if (i < s) {
          for j in range(m) {
            B[i, j] = A[i, j]
          }
        } else {
          for j in range(m) {
            B[i, j] = 0.0f32
          }
        }
      }
    }

A branch that is the whole body of a loop is moved outside, if its condition neither uses
the loop's variable nor reads memory. In a conjunction without an else, only the conjuncts
that fulfil this are moved. No statement is copied, only the head of the loop.

Requires: nothing. Ensures: the order and number of all operations. Level: nested or flat,
kept. Loops bound to threads, and loops around them, are not changed: a kernel begins with
its loops. It refuses nothing.
"""

from __future__ import annotations

from functools import reduce

from refcomp.ir.expr import And, Expr, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound
from refcomp.ir.rewrite import (
    buffers_in,
    map_children,
    substitute,
    variables_in,
    walk,
    with_fields,
)
from refcomp.ir.stmt import For, IfThenElse, Stmt
from refcomp.passes.analysis.contents import holds
from refcomp.passes.analysis.loop_guards import conjuncts


def hoist_conditions(func: PrimFunc) -> PrimFunc:
    """Return `func` with invariant conditions outside of loops."""
    return func.with_body(_visit(func.body)) if holds(func, IfThenElse) else func


def _visit(stmt: Stmt) -> Stmt:
    loop = map_children(stmt, _visit, only=Stmt)
    if not isinstance(loop, For) or not isinstance(loop.body, IfThenElse):
        return loop
    # Bound loops are not moved: a kernel has them outermost, directly nested.
    if any(isinstance(item, For) and is_bound(item) for item in walk(loop)):
        return loop
    branch = loop.body
    invariant: list[Expr] = []
    left: list[Expr] = []
    for part in conjuncts(branch.condition):
        # The body may change the memory that a condition reads.
        if buffers_in(part) or loop.var in variables_in(part):
            left.append(part)
        else:
            invariant.append(part)
    if not invariant:
        return loop
    then_case = branch.then_case
    else_case = branch.else_case
    if left:
        # The other case would be needed inside of the loop and outside.
        if else_case is not None:
            return loop
        then_case = with_fields(branch, condition=reduce(And, left))
    if else_case is not None:
        # A second loop, with a variable of its own.
        var = Var(loop.var.name, loop.var.dtype)
        else_case = substitute(else_case, {loop.var: var})
        else_case = with_fields(loop, var=var, body=else_case)
    then_case = with_fields(loop, body=then_case)
    return IfThenElse(reduce(And, invariant), then_case, else_case, branch.origin)
