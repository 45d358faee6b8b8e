"""Distributes virtual threads over statements, so that one thread does their work.

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

All virtual threads run one statement before any runs the next. Real threads may do the
same between two barriers. So the contents of shared memory are complete when they are
read. A buffer whose contents differ gets a copy for each virtual thread. A statement that
does not depend on the virtual thread runs once.

Requires: barriers are not inserted yet. Ensures: no loop of kind vthread is left. Level:
nested, kept. It refuses (UserError) an extent that is not a constant, and a Barrier in a
branch or loop that depends on the virtual thread.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import SHARED, Buffer, BufferLoad
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
    line_of,
    place_of,
)
from refcomp.passes.analysis.constant_extents import constant_extent
from refcomp.passes.analysis.contents import holds


def inject_virtual_threads(func: PrimFunc) -> PrimFunc:
    """Return `func` with each vthread loop distributed over the statements in it."""
    return func.with_body(_visit(func.body)) if holds(func, VTHREAD) else func


def _visit(stmt: Stmt) -> Stmt:
    stmt = map_children(stmt, _visit, only=Stmt)
    if not isinstance(stmt, For) or stmt.kind != VTHREAD:
        return stmt
    constant_extent(stmt)  # refuses others: the loops are unrolled later
    copies: dict[Buffer, Buffer] = {}
    for buffer in _own_buffers(stmt):
        copies[buffer] = with_fields(buffer, shape=(stmt.extent, *buffer.shape))
    body = stmt.body
    if copies:
        body = _index_copies(body, copies, stmt.var)
    distribution = _Distribution(stmt, frozenset(copies.values()))
    return distribution.distribute(body)


def _index_copies(body: Stmt, copies: dict[Buffer, Buffer], var: Var) -> Stmt:
    def visit(recurse: Rewrite, node: Node) -> Node:
        node = map_children(node, recurse)
        if isinstance(node, Allocate):
            return with_changes(node, buffer=copies.get(node.buffer, node.buffer))
        if not isinstance(node, BufferLoad | BufferStore | AtomicUpdate | Prefetch):
            return node
        if node.buffer not in copies:
            return node
        indices = (var, *node.indices)
        return with_fields(node, buffer=copies[node.buffer], indices=indices)

    return rewriter(visit)(body)


def _own_buffers(loop: For) -> set[Buffer]:
    """Return the buffers in the loop whose contents differ between virtual threads.

    All virtual threads have one shared memory, as all threads do. It needs copies only if
    they write different values to one element. Rows of threads that each combine partial
    results do this.
    """
    allocated = {item.buffer for item in walk(loop.body) if isinstance(item, Allocate)}
    own: set[Buffer] = set()
    # A buffer may be filled from another one that turned out to differ.
    while True:
        found: set[Buffer] = set()
        for buffer in allocated - own:
            needs_copies = _collides if buffer.scope == SHARED else _differs
            if needs_copies(loop.body, buffer, loop.var, own):
                found.add(buffer)
        if not found:
            return own
        own |= found


def _differs(
    stmt: Node, buffer: Buffer, var: Var, own: set[Buffer], within: bool = False
) -> bool:
    """Return True if a store to `buffer` depends on `var` or on a buffer of `own`.

    `within` says that a statement around `stmt` depends on them.
    """
    exprs = [child for child in children(stmt) if isinstance(child, Expr)]
    depends = within or any(_depends(expr, var, own) for expr in exprs)
    if isinstance(stmt, BufferStore | AtomicUpdate):
        return stmt.buffer is buffer and depends
    return any(
        _differs(child, buffer, var, own, depends)
        for child in children(stmt)
        if isinstance(child, Stmt)
    )


def _collides(stmt: Stmt, buffer: Buffer, var: Var, own: set[Buffer]) -> bool:
    """Return True if virtual threads store different values to one element of `buffer`."""
    for item in walk(stmt):
        if isinstance(item, BufferStore) and item.buffer is buffer:
            has_own_place = any(_depends(index, var, own) for index in item.indices)
            if _depends(item.value, var, own) and not has_own_place:
                return True
    return False


def _depends(node: Node, var: Var, own: Set[Buffer]) -> bool:
    return var in variables_in(node) or not own.isdisjoint(buffers_in(node))


@dataclass(frozen=True, slots=True)
class _Distribution:
    """Distributes one vthread loop."""

    loop: For
    # The buffers with a copy for each virtual thread.
    own: frozenset[Buffer]

    def distribute(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Block():
                stmts = tuple(map(self.distribute, stmt.stmts))
                return with_changes(stmt, stmts=stmts)
            case Allocate() | Pragma():
                return with_fields(stmt, body=self.distribute(stmt.body))
            case LetStmt() if self._is_own(stmt.value):
                # Evaluated later, the value would be a different one if the body writes the
                # memory that it is read from. Reductions of tuples do this.
                written: set[Buffer] = set()
                for item in walk(stmt.body):
                    if isinstance(item, BufferStore | AtomicUpdate):
                        written.add(item.buffer)
                if not written.isdisjoint(buffers_in(stmt.value)):
                    return self._repeated(stmt)
                body = substitute(stmt.body, {stmt.var: stmt.value})
                return self.distribute(body)
            case LetStmt():
                return with_fields(stmt, body=self.distribute(stmt.body))
            case For() if not (self._is_own(stmt.minimum) or self._is_own(stmt.extent)):
                return with_fields(stmt, body=self.distribute(stmt.body))
            case IfThenElse() if not self._is_own(stmt.condition):
                then_case = self.distribute(stmt.then_case)
                else_case = stmt.else_case
                if else_case is not None:
                    else_case = self.distribute(else_case)
                return with_fields(stmt, then_case=then_case, else_case=else_case)
            case Barrier():
                return stmt  # one barrier is for all virtual threads
            case BufferStore() | Prefetch() if not self._is_own(stmt):
                return stmt
        return self._repeated(stmt)

    def _is_own(self, node: Node) -> bool:
        return _depends(node, self.loop.var, self.own)

    def _repeated(self, stmt: Stmt) -> Stmt:
        """Return a loop that runs all of `stmt` for one virtual thread after the other."""
        if any(isinstance(item, Barrier) for item in walk(stmt)):
            raise UserError(
                f"the virtual threads {self.loop.var.name} meet a barrier in different iterations",
                where=place_of(self.loop.origin),
                at=line_of(self.loop.origin),
                why="a branch or a loop around it depends on the virtual thread",
                remedy="choose factors that divide, or bind a real thread axis instead",
            )
        var = Var(self.loop.var.name, self.loop.var.dtype)
        body = substitute(stmt, {self.loop.var: var})
        zero = IntImm(0, var.dtype)
        return For(var, zero, self.loop.extent, UNROLLED, body, self.loop.origin)
