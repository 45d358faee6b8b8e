"""Computes indices in i32 where they are proved to fit.

Before::

    func f(A: f32[100, 8], B: f32[100, 8] out, n: i64) {
      for i in range(100) {
        for j in range(8) {
          if (i * 8 + j < n) {
            B@[i * 8 + j] = A@[i * 8 + j] * f32(i)
          }
        }
      }
    }

After::

    func f(A: f32[100, 8], B: f32[100, 8] out, n: i64) {
      for i: i32 in range(100i32) {
        for j: i32 in range(8i32) {
          if (i64(i * 8i32 + j) < n) {
            B@[i * 8i32 + j] = A@[i * 8i32 + j] * f32(i64(i))
          }
        }
      }
    }

A GPU has registers of 32 bits. An i64 takes two of them, and each operation several
instructions. A loop variable becomes an i32 if its range is known to fit. An index, the
sides of a comparison, and the value of a let become i32 if each operation in them is
known to fit, so that none wraps. Expressions of other types read the variable as an i64,
as before. Loops bound to threads keep their variables, whose values the launch gives.

Requires: nothing. Ensures: the value of every expression. Level: flat, kept. It refuses nothing.
"""

from __future__ import annotations

from refcomp.arith import Facts, Interval, interval
from refcomp.foundation.dtype import I32, I64
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Load
from refcomp.ir.expr import Broadcast, Cast, Expr, IntImm, Ramp, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound
from refcomp.ir.rewrite import children, map_children, with_changes, with_fields
from refcomp.ir.stmt import For, IfThenElse, LetStmt, ParallelRegion, Stmt, Store
from refcomp.passes.analysis.scope_facts import facts_of

_I32 = Interval(I32.min_value, I32.max_value)
_ARITHMETIC = (ir.Add, ir.Sub, ir.Mul, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)


def narrow_index_types(func: PrimFunc) -> PrimFunc:
    """Return `func` with i32 variables and indices where they fit."""
    narrowing = _Narrowing(facts_of(func), {})
    return func.with_body(narrowing.stmt(func.body))


class _Narrowing:
    """Rewrites statements and expressions at one place.

    `facts` hold there for the original variables. `narrowed` has the i32 variables that
    replace some of them. Each place has an object of its own: what fits there need not fit
    elsewhere, so no result is reused.
    """

    def __init__(self, facts: Facts, narrowed: dict[Var, Var]) -> None:
        self._facts = facts
        self._narrowed = narrowed
        # id -> expression, which is kept alive, and its rewritten form of the same type.
        self._wide: dict[int, tuple[Expr, Expr]] = {}

    # Statements.

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                return self._for(stmt)
            case LetStmt():
                inside = self._facts.let(stmt.var, stmt.value)
                value = self.narrow(stmt.value)
                if value is None:
                    value = self.expr(stmt.value)
                    body = _Narrowing(inside, self._narrowed).stmt(stmt.body)
                    return with_changes(stmt, value=value, body=body)
                var = Var(stmt.var.name, value.dtype)
                narrowed = self._narrowed | {stmt.var: var}
                body = _Narrowing(inside, narrowed).stmt(stmt.body)
                return with_fields(stmt, var=var, value=value, body=body)
            case IfThenElse():
                return self._if(stmt)
            case Store():
                store = map_children(stmt, self.expr, only=Expr)
                return with_changes(store, index=self._index(stmt.index))
            case ParallelRegion():
                captures = tuple(
                    self._narrowed.get(item, item) if isinstance(item, Var) else item
                    for item in stmt.captures
                )
                body = self.stmt(stmt.body)
                return with_changes(stmt, captures=captures, body=body)
        rebuilt = map_children(stmt, self.expr, only=Expr)
        return map_children(rebuilt, self.stmt, only=Stmt)

    def _for(self, loop: For) -> Stmt:
        inside = self._facts.bind(loop.var, loop.minimum, loop.extent)
        minimum = self.narrow(loop.minimum)
        extent = self.narrow(loop.extent)
        # A loop also computes its end, to compare the variable with it.
        end = ir.Add(loop.minimum, loop.extent)
        ends_fit = self._fits(loop.minimum) and self._fits(end)
        if minimum is None or extent is None or is_bound(loop) or not ends_fit:
            minimum = self.expr(loop.minimum)
            extent = self.expr(loop.extent)
            body = _Narrowing(inside, self._narrowed).stmt(loop.body)
            return with_changes(loop, minimum=minimum, extent=extent, body=body)
        var = Var(loop.var.name, I32)
        narrowed = self._narrowed | {loop.var: var}
        body = _Narrowing(inside, narrowed).stmt(loop.body)
        return with_fields(loop, var=var, minimum=minimum, extent=extent, body=body)

    def _if(self, stmt: IfThenElse) -> Stmt:
        holds = self._facts.assume(stmt.condition)
        then_case = _Narrowing(holds, self._narrowed).stmt(stmt.then_case)
        else_case = stmt.else_case
        if else_case is not None:
            fails = self._facts.assume(ir.Not(stmt.condition))
            else_case = _Narrowing(fails, self._narrowed).stmt(else_case)
        condition = self.expr(stmt.condition)
        return with_changes(
            stmt,
            condition=condition,
            then_case=then_case,
            else_case=else_case,
        )

    # Expressions.

    def expr(self, expr: Expr) -> Expr:
        """Return `expr`, of its own type, with narrow parts."""
        found = self._wide.get(id(expr))
        if found is None:
            found = self._wide[id(expr)] = (expr, self._expr(expr))
        return found[1]

    def _expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Var):
            var = self._narrowed.get(expr)
            return expr if var is None else Cast(expr.dtype, var)
        if isinstance(expr, Load):
            load = map_children(expr, self.expr, only=Expr)
            return with_changes(load, index=self._index(expr.index))
        if isinstance(expr, ir.Comparison):
            # A comparison is a bool at either width, so it needs no cast.
            narrow = self._with_narrow_parts(expr)
            if narrow is not None:
                return narrow
        if isinstance(expr, (*_ARITHMETIC, Ramp)):
            narrow = self.narrow(expr)
            if narrow is not None:
                return Cast(expr.dtype, narrow)
        return map_children(expr, self.expr, only=Expr)

    def _index(self, index: Expr) -> Expr:
        narrow = self.narrow(index)
        return self.expr(index) if narrow is None else narrow

    def narrow(self, expr: Expr) -> Expr | None:
        """Return `expr`, an i64, as an i32; None if it, or a part of it, may not fit."""
        if expr.dtype.element != I64 or not self._fits(expr):
            return None
        dtype = I32.with_lanes(expr.dtype.lanes)
        if isinstance(expr, IntImm):
            return IntImm(expr.value, I32)
        if isinstance(expr, Var):
            return self._narrowed.get(expr, Cast(dtype, expr))
        if isinstance(expr, Cast):
            value = self.expr(expr.value)
            return value if value.dtype == dtype else Cast(dtype, value)
        if not isinstance(expr, (*_ARITHMETIC, Ramp, Broadcast)):
            return None
        return self._with_narrow_parts(expr)

    def _with_narrow_parts(self, expr: Expr) -> Expr | None:
        parts: list[Expr] = []
        for child in children(expr):
            part = self.narrow(child)
            if part is None:
                return None
            parts.append(part)
        remaining = iter(parts)
        return map_children(expr, lambda _: next(remaining), only=Expr)

    def _fits(self, expr: Expr) -> bool:
        return interval(expr, self._facts).lies_in(_I32)
