"""Lets one thread do the work of several virtual ones, statement by statement.

Before::

    func pairs(A: f32[8], B: f32[8] out) {
      for t in range(4) threadIdx.x {
        for v in range(2) vthread {
          alloc T: f32[1] local {
            for k in range(3) {
              T[0] = A[v * 4 + t] + f32(k)
              B[v * 4 + t] = T[0]
            }
          }
        }
      }
    }

After::

    func pairs(A: f32[8], B: f32[8] out) {
      for t in range(4) threadIdx.x {
        alloc T: f32[2, 1] local {
          for k in range(3) {
            for v in range(2) unrolled {
              T[v, 0] = A[v * 4 + t] + f32(k)
            }
            for v in range(2) unrolled {
              B[v * 4 + t] = T[v, 0]
            }
          }
        }
      }
    }

All virtual threads do one statement before any does the next, as real threads between two barriers
may: so what they share in shared memory is complete when it is read. A buffer of their own gets a
copy for each; what does not depend on the virtual thread is done once. Requires: before barriers
are inserted. Ensures: no loop of kind vthread is left. Level: nested, kept. It refuses (UserError)
an extent that is no constant, and a Barrier in a branch or loop that depends on the virtual thread.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    Rewrite,
    buffers_in,
    children,
    map_children,
    rewriter,
    substitute,
    variables_in,
    walk,
    with_changes,
    with_fields,
)
from refcomp.ir.stmt import (
    UNROLLED,
    VTHREAD,
    Allocate,
    AtomicUpdate,
    Barrier,
    Block,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    Pragma,
    Prefetch,
    Stmt,
)
from refcomp.passes.analysis.constant_extents import constant_extent


def inject_virtual_threads(func: PrimFunc) -> PrimFunc:
    """`func` with each vthread loop distributed over the statements in it."""
    return func.with_body(_visit(func.body))


def _visit(stmt: Stmt) -> Stmt:
    stmt = map_children(stmt, _visit, only=Stmt)
    return _inject(stmt) if isinstance(stmt, For) and stmt.kind == VTHREAD else stmt


def _inject(loop: For) -> Stmt:
    constant_extent(loop)
    own = _own_buffers(loop)
    copies = {buffer: _with_copies(buffer, loop.extent) for buffer in own}
    body = _index_copies(loop.body, copies, loop.var) if copies else loop.body
    return _Distribution(loop, frozenset(copies.values())).distribute(body)


def _with_copies(buffer: Buffer, extent: Expr) -> Buffer:
    return with_fields(buffer, shape=(extent, *buffer.shape))


def _index_copies(body: Stmt, copies: dict[Buffer, Buffer], var: Var) -> Stmt:
    def visit(recurse: Rewrite, node: Node) -> Node:
        node = map_children(node, recurse)
        if isinstance(node, Allocate):
            return with_changes(node, buffer=copies.get(node.buffer, node.buffer))
        if not isinstance(node, BufferLoad | BufferStore | AtomicUpdate | Prefetch):
            return node
        if node.buffer not in copies:
            return node
        return with_fields(
            node, buffer=copies[node.buffer], indices=(var, *node.indices)
        )

    return rewriter(visit)(body)


def _own_buffers(loop: For) -> set[Buffer]:
    """The buffers within the loop whose contents differ between virtual threads.

    Shared memory is one for all of them, as it is for all threads; but where they write different
    values to the same elements, as a row of threads does that combines what each has found.
    """
    allocated = {item.buffer for item in walk(loop.body) if isinstance(item, Allocate)}
    shared = {buffer for buffer in allocated if buffer.scope == "shared"}
    own: set[Buffer] = set()
    while True:
        found = {
            b for b in allocated - shared - own if _differs(loop.body, b, loop.var, own)
        }
        found |= {b for b in shared - own if _collides(loop.body, b, loop.var, own)}
        if not found:
            return own
        own |= found


def _differs(
    stmt: Node, buffer: Buffer, var: Var, own: set[Buffer], within: bool = False
) -> bool:
    """Whether a store to `buffer` depends on `var` or on a buffer of `own`, or lies within what
    does (`within`)."""
    exprs = [child for child in children(stmt) if isinstance(child, Expr)]
    depends = within or any(_depends(expr, var, own) for expr in exprs)
    if isinstance(stmt, BufferStore | AtomicUpdate):
        return stmt.buffer is buffer and depends
    inner = within or (depends and not isinstance(stmt, LetStmt))
    if isinstance(stmt, LetStmt) and depends:
        inner = True
    return any(
        _differs(child, buffer, var, own, inner)
        for child in children(stmt)
        if isinstance(child, Stmt)
    )


def _collides(stmt: Stmt, buffer: Buffer, var: Var, own: set[Buffer]) -> bool:
    """Whether virtual threads store different values to the same element of `buffer`."""
    return any(
        _depends(item.value, var, own)
        and not any(_depends(i, var, own) for i in item.indices)
        for item in walk(stmt)
        if isinstance(item, BufferStore) and item.buffer is buffer
    )


def _depends(node: Node, var: Var, own: Set[Buffer]) -> bool:
    return var in variables_in(node) or not own.isdisjoint(buffers_in(node))


def _overwrites_operand(let: LetStmt) -> bool:
    """Whether the body writes memory that the value was read from, as tuple reductions do."""
    written = {
        n.buffer for n in walk(let.body) if isinstance(n, BufferStore | AtomicUpdate)
    }
    return not written.isdisjoint(buffers_in(let.value))


@dataclass(frozen=True, slots=True)
class _Distribution:
    """Distributes one vthread loop; `own` are its buffers, with a copy for each iteration."""

    loop: For
    own: frozenset[Buffer]

    def distribute(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Block():
                return with_changes(stmt, stmts=tuple(map(self.distribute, stmt.stmts)))
            case Allocate() | Pragma():
                return with_fields(stmt, body=self.distribute(stmt.body))
            case LetStmt() if self._is_own(stmt.value) and _overwrites_operand(stmt):
                return self._repeated(
                    stmt
                )  # put in its place, the value would be another
            case LetStmt() if self._is_own(stmt.value):
                return self.distribute(substitute(stmt.body, {stmt.var: stmt.value}))
            case LetStmt():
                return with_fields(stmt, body=self.distribute(stmt.body))
            case For() if not (self._is_own(stmt.minimum) or self._is_own(stmt.extent)):
                return with_fields(stmt, body=self.distribute(stmt.body))
            case IfThenElse() if not self._is_own(stmt.condition):
                return self._both_cases(stmt)
            case Barrier():
                return stmt
            case BufferStore() | Prefetch() if not self._is_own(stmt):
                return stmt
        return self._repeated(stmt)

    def _both_cases(self, stmt: IfThenElse) -> Stmt:
        other = None if stmt.else_case is None else self.distribute(stmt.else_case)
        return with_fields(
            stmt, then_case=self.distribute(stmt.then_case), else_case=other
        )

    def _is_own(self, node: Node) -> bool:
        return _depends(node, self.loop.var, self.own)

    def _repeated(self, stmt: Stmt) -> Stmt:
        """`stmt`, whole, for one virtual thread after the other."""
        if any(isinstance(item, Barrier) for item in walk(stmt)):
            raise UserError(
                f"the virtual threads {self.loop.var.name} meet a barrier in different iterations",
                where=str(self.loop.origin or ""),
                why="a branch or a loop around it depends on the virtual thread",
                remedy="choose factors that divide, or bind a real thread axis instead",
            )
        var = Var(self.loop.var.name, self.loop.var.dtype)
        body = substitute(stmt, {self.loop.var: var})
        zero = IntImm(0, var.dtype)
        return For(var, zero, self.loop.extent, UNROLLED, body, self.loop.origin)
