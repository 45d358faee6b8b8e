"""Removes statements that do nothing: empty loops and branches, allocations and lets not used.

Before::

    func zero(A: f32[n] out) {
      for j in range(n) {
        if (n < 8) {
        }
      }
      alloc T: f32[16] local {
        let t: i64 = n * 2 {
          for i in range(n) {
            if (n < 4) {
            } else {
              A[i] = 0.0f32
            }
          }
        }
      }
    }

After::

    func zero(A: f32[n] out) {
      for i in range(n) {
        if (4 <= n) {
          A[i] = 0.0f32
        }
      }
    }

An allocation is removed if no remaining statement reads it. The stores to it are removed,
too.

Requires: nothing. Ensures: no empty statement is left inside another. Level: any, kept.
It refuses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.arith import simplify
from refcomp.ir.buffer import AddressOf, Buffer
from refcomp.ir.expr import IntImm, Not, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import (
    buffers_in,
    child_expressions,
    same_items,
    statements_in,
    variables_in,
    walk,
    with_changes,
)
from refcomp.ir.stmt import (
    Allocate,
    AtomicUpdate,
    Block,
    BufferStore,
    For,
    IfThenElse,
    LaunchKernel,
    LetStmt,
    ParallelRegion,
    Pragma,
    Prefetch,
    Stmt,
    Store,
    block,
)


def remove_no_ops(func: PrimFunc) -> PrimFunc:
    """Return `func` without statements that do nothing."""
    # A let that was removed may have been the last one to read an allocation.
    while True:
        clearing = _Clearing(func.body)
        body = clearing.clear(func.body)
        if body is func.body:
            return func
        func = func.with_body(body)


def _is_empty(stmt: Stmt | None) -> bool:
    return stmt is None or (isinstance(stmt, Block) and not stmt.stmts)


class _Clearing:
    """Clears the body of a binding before the binding itself, so that all uses are known."""

    def __init__(self, body: Stmt) -> None:
        stmts = list(statements_in(body))
        self._unread = _unread_buffers(stmts)
        self._has_lets = any(isinstance(stmt, LetStmt) for stmt in stmts)
        # With lets: the variables that the statements so far use.
        self._used: set[Var] = set()

    def clear(self, stmt: Stmt) -> Stmt:
        """Return `stmt` without statements that do nothing, or an empty block."""
        cleared = self._cleared(stmt)
        if not self._has_lets:
            return cleared
        for expr in child_expressions(cleared):
            self._used.update(variables_in(expr))
        if isinstance(cleared, LaunchKernel):
            # The arguments of a launch are not its children.
            scalars = (item for item in cleared.arguments if isinstance(item, Var))
            self._used.update(scalars)
        return cleared

    def _cleared(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Block():
                stmts = [self.clear(item) for item in stmt.stmts]
                kept = [item for item in stmts if not _is_empty(item)]
                is_flat = not any(isinstance(item, Block) for item in kept)
                if is_flat and len(kept) != 1 and same_items(kept, stmt.stmts):
                    return stmt
                return block(kept, stmt.origin)
            case IfThenElse():
                return self._clear_if(stmt)
            case For(extent=IntImm(value=value)) if value <= 0:
                return Block((), stmt.origin)
            case BufferStore() | Store() | AtomicUpdate() | Prefetch() if (
                stmt.buffer in self._unread
            ):
                return Block((), stmt.origin)
            case Allocate():
                body = self.clear(stmt.body)
                if _is_empty(body) or stmt.buffer in self._unread:
                    return body
                for dim in stmt.buffer.shape:
                    self._used.update(variables_in(dim))
                return with_changes(stmt, body=body)
            case For() | LetStmt() | ParallelRegion():
                return self._clear_binding(stmt)
            case Pragma():
                body = self.clear(stmt.body)
                return body if _is_empty(body) else with_changes(stmt, body=body)
        return stmt

    def _clear_if(self, stmt: IfThenElse) -> Stmt:
        then_case = self.clear(stmt.then_case)
        else_case = stmt.else_case
        if else_case is not None:
            else_case = self.clear(else_case)
        if _is_empty(else_case):
            else_case = None
        if not _is_empty(then_case):
            return with_changes(stmt, then_case=then_case, else_case=else_case)
        if else_case is None:
            return Block((), stmt.origin)
        fails = simplify(Not(stmt.condition))
        return IfThenElse(fails, else_case, None, stmt.origin)

    def _clear_binding(self, stmt: For | LetStmt | ParallelRegion) -> Stmt:
        body = self.clear(stmt.body)
        if _is_empty(body):
            return body
        if isinstance(stmt, LetStmt) and stmt.var not in self._used:
            return body
        if not isinstance(stmt, ParallelRegion):
            return with_changes(stmt, body=body)
        captures = stmt.captures
        if body is not stmt.body:
            used: set[Var | Buffer] = {*variables_in(body), *buffers_in(body)}
            for item in walk(body):
                # Shapes are not children. An allocation needs its size, and a callee is
                # passed the shape.
                if isinstance(item, Allocate | AddressOf):
                    for dim in item.buffer.shape:
                        used.update(variables_in(dim))
            captures = tuple(capture for capture in captures if capture in used)
        self._used.update(c for c in captures if isinstance(c, Var))
        return with_changes(stmt, captures=captures, body=body)


def _unread_buffers(stmts: Sequence[Stmt]) -> set[Buffer]:
    """Return the allocations among `stmts` that only stores to such allocations read."""
    allocated = {item.buffer for item in stmts if isinstance(item, Allocate)}
    if not allocated:
        return set()
    sources: dict[Buffer, set[Buffer]] = {}  # buffer -> those whose values it is given
    stack: list[Buffer] = []  # buffers that are read, and whose sources are not yet
    for item in stmts:
        loaded = [b for expr in child_expressions(item) for b in buffers_in(expr)]
        if isinstance(item, BufferStore | Store | AtomicUpdate):
            sources.setdefault(item.buffer, set()).update(loaded)
        else:
            stack += loaded
        if isinstance(item, LaunchKernel):
            stack += buffers_in(item)
    # Whatever is not allocated here may be read after the function.
    stack += [buffer for buffer in sources if buffer not in allocated]
    live: set[Buffer] = set()
    while stack:
        buffer = stack.pop()
        if buffer not in live:
            live.add(buffer)
            stack += sources.get(buffer, ())
    return allocated - live
