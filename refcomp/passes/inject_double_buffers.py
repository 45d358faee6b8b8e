"""Fills a buffer for the next iteration while this one uses its present contents.

Before::

    func sums(A: f32[64], B: f32[8] out) {
      for t in range(8) threadIdx.x {
        for k in range(8) {
          pragma double_buffer 1 {
            alloc T: f32[8] shared {
              T[t] = A[k * 8 + t]
              B[t] = B[t] + T[7 - t]
            }
          }
        }
      }
    }

After::

    func sums(A: f32[64], B: f32[8] out) {
      for t in range(8) threadIdx.x {
        alloc T: f32[2, 8] shared {
          if (0 < 8) {
            T[0, t] = A[0 * 8 + t]
          }
          for k in range(8) {
            if (k + 1 < 8) {
              T[(k + 1) % 2, t] = A[(k + 1) * 8 + t]
            }
            B[t] = B[t] + T[k % 2, 7 - t]
          }
        }
      }
    }

Then one barrier in each iteration is enough instead of two.

Requires: barriers are not inserted yet. Ensures: no such pragma is left. Level: nested, kept. It
refuses (UserError) a buffer that is not in a serial loop, or that is read before it is filled. It
also refuses a buffer that is filled from values of the same iteration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import LT, Add, Expr, FloorMod, IntImm, Sub
from refcomp.ir.fresh_names import with_fresh_names
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    Rewrite,
    buffers_in,
    map_children,
    rewriter,
    statements_in,
    substitute,
    walk,
    with_fields,
)
from refcomp.ir.stmt import (
    SERIAL,
    Allocate,
    AtomicUpdate,
    Block,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    Pragma,
    Prefetch,
    Stmt,
    block,
    line_of,
    place_of,
)
from refcomp.passes.analysis.contents import holds

DOUBLE_BUFFER = "double_buffer"
_WRITES = (BufferStore, AtomicUpdate)


def inject_double_buffers(func: PrimFunc) -> PrimFunc:
    """Return `func` with two copies of each buffer under a pragma."""
    if not holds(func, Pragma):
        return func
    body = _visit(func.body)
    for stmt in statements_in(body):
        if isinstance(stmt, Pragma) and stmt.key == DOUBLE_BUFFER:
            _refuse(
                stmt,
                why="it is not allocated in a serial loop",
                remedy="compute it at a serial loop",
            )
    return func.with_body(body)


def _visit(stmt: Stmt) -> Stmt:
    stmt = map_children(stmt, _visit, only=Stmt)
    if isinstance(stmt, For) and stmt.kind == SERIAL:
        return _double(stmt)
    return stmt


def _double(loop: For) -> Stmt:
    """Return `loop` with all buffers under pragmas doubled."""
    pragma = loop.body
    # Lets, allocations and other pragmas may stand between the loop and the pragma.
    while not (isinstance(pragma, Pragma) and pragma.key == DOUBLE_BUFFER):
        if not isinstance(pragma, Pragma | Allocate | LetStmt):
            return loop
        pragma = pragma.body
    allocation = pragma.body
    if not isinstance(allocation, Allocate):
        return loop
    doubling = _Doubling(loop, allocation.buffer, pragma)
    doubled = doubling.doubled()
    start, ahead = doubling.apply(doubled)
    # The loop may hold more pragmas: its body still has those of other buffers.
    body = block([start, _double(ahead)])
    return Allocate(doubled, body, allocation.origin)


def _refuse(pragma: Pragma, why: str, remedy: str) -> NoReturn:
    body = pragma.body
    name = body.buffer.name if isinstance(body, Allocate) else "a statement"
    raise UserError(
        f"{name} cannot be double-buffered",
        where=place_of(pragma.origin),
        at=line_of(pragma.origin),
        why=why,
        remedy=remedy,
    )


@dataclass(frozen=True, slots=True)
class _DividedBody:
    """The body of a loop in which a buffer is filled and used."""

    # The statements that fill the buffer.
    fills: Stmt
    # All others.
    rest: Stmt
    # Pragmas and allocations that stand around both, outermost first.
    wrappers: list[Pragma | Allocate]


@dataclass(frozen=True, slots=True)
class _Doubling:
    """One loop, and the buffer allocated in it that gets two copies."""

    loop: For
    buffer: Buffer
    pragma: Pragma

    def apply(self, doubled: Buffer) -> tuple[Stmt, For]:
        """Return the first filling, and the loop that fills one iteration ahead."""
        loop = self.loop
        dtype = loop.var.dtype
        parts = self._divide()
        end = loop.extent
        if as_int(loop.minimum) != 0:
            end = Add(loop.minimum, loop.extent)
        # A loop of no iterations must not fill the buffer: the values may not exist.
        is_run = LT(IntImm(0, loop.extent.dtype), loop.extent)
        first = self._fill(parts.fills, doubled, loop.minimum, IntImm(0, dtype))
        start = IfThenElse(is_run, first, None, loop.origin)
        ahead = Add(loop.var, IntImm(1, dtype))
        fill_next = self._fill(parts.fills, doubled, ahead, self._slot(ahead))
        fill = IfThenElse(LT(ahead, end), fill_next, None, loop.origin)
        use = _at_slot(parts.rest, self.buffer, doubled, self._slot(loop.var))
        body = block([fill, use])
        for wrapper in reversed(parts.wrappers):
            body = with_fields(wrapper, body=body)
        return start, with_fields(loop, body=body)

    def doubled(self) -> Buffer:
        """Return a buffer for two copies, one behind the other."""
        shape = self.buffer.shape
        two = IntImm(2, shape[0].dtype if shape else I64)
        return with_fields(self.buffer, shape=(two, *shape))

    def _divide(self) -> _DividedBody:
        wrappers: list[Pragma | Allocate] = []
        stmt = self.loop.body
        while isinstance(stmt, Pragma | Allocate | LetStmt):
            if isinstance(stmt, LetStmt):  # the first filling stands outside of it
                stmt = substitute(stmt.body, {stmt.var: stmt.value})
                continue
            # The buffer's allocation and the pragma around it move out of the loop.
            is_pragma = isinstance(stmt, Pragma) and stmt.key == DOUBLE_BUFFER
            inner = stmt.body if is_pragma else stmt
            if not (isinstance(inner, Allocate) and inner.buffer is self.buffer):
                wrappers.append(stmt)
            stmt = stmt.body
        stmts = stmt.stmts if isinstance(stmt, Block) else (stmt,)
        fills = [s for s in stmts if self._writes(s)]
        rest = [s for s in stmts if not self._writes(s)]
        self._check(stmts, fills, rest)
        return _DividedBody(block(fills), block(rest), wrappers)

    def _writes(self, stmt: Stmt) -> bool:
        return any(
            isinstance(item, _WRITES) and item.buffer is self.buffer
            for item in walk(stmt)
        )

    def _check(
        self, stmts: tuple[Stmt, ...], fills: list[Stmt], rest: list[Stmt]
    ) -> None:
        if not fills:
            why = "nothing fills it there"
            _refuse(self.pragma, why, remedy="compute it at this loop")
        before = stmts[: stmts.index(fills[-1])]
        if any(self.buffer in _read_by(s) for s in before if s not in fills):
            why = "it is read before it is filled"
            _refuse(self.pragma, why, remedy="fill it first")
        # A statement runs early as a whole. A second buffer that it fills would need two
        # copies as well, unless the buffer is allocated in the statement or around the loop.
        around = _buffers_of([self.loop.body], Allocate) - _buffers_of(stmts, Allocate)
        filled = _buffers_of(fills, _WRITES) & around
        if len(filled) > 1:
            names = " and ".join(sorted(buffer.name for buffer in filled))
            why = f"one statement fills {names}"
            _refuse(self.pragma, why, remedy="fill them one by one")
        sources = {buffer for stmt in fills for buffer in _read_by(stmt)}
        used = sources & _buffers_of(rest, _WRITES)
        if used:
            name = min(buffer.name for buffer in used)
            why = f"it is filled from {name}, which the same iteration computes"
            _refuse(self.pragma, why, remedy=f"double-buffer {name}, or neither")

    def _fill(self, fills: Stmt, doubled: Buffer, step: Expr, slot: Expr) -> Stmt:
        copy = with_fresh_names(fills, {self.loop.var: step})
        return _at_slot(copy, self.buffer, doubled, slot)

    def _slot(self, step: Expr) -> Expr:
        """Return the copy that iteration `step` uses: 0 or 1, in turn."""
        minimum = self.loop.minimum
        offset = step if as_int(minimum) == 0 else Sub(step, minimum)
        return FloorMod(offset, IntImm(2, step.dtype))


def _buffers_of(
    stmts: Iterable[Stmt],
    classes: type[Allocate] | tuple[type[BufferStore], type[AtomicUpdate]],
) -> set[Buffer]:
    """Return the buffers of the statements of these classes inside `stmts`."""
    items = (item for stmt in stmts for item in walk(stmt))
    return {item.buffer for item in items if isinstance(item, classes)}


def _read_by(stmt: Stmt) -> set[Buffer]:
    loads = (item for item in walk(stmt) if isinstance(item, BufferLoad))
    return {buffer for load in loads for buffer in buffers_in(load)}


def _at_slot(stmt: Stmt, buffer: Buffer, doubled: Buffer, slot: Expr) -> Stmt:
    def visit(recurse: Rewrite, node: Node) -> Node:
        node = map_children(node, recurse)
        if not isinstance(node, BufferLoad | BufferStore | AtomicUpdate | Prefetch):
            return node
        if node.buffer is not buffer:
            return node
        return with_fields(node, buffer=doubled, indices=(slot, *node.indices))

    return rewriter(visit)(stmt)
