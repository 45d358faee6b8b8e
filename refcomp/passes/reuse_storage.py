"""Gives buffers that are not in use at the same time one memory.

Before::

    func f(A: f32[8], B: f32[8] out) {
      alloc T: f32[8] {
        alloc U: f32[8] {
          alloc V: f32[6] {
            for i in range(8) {
              T@[i] = A@[i] * 2.0f32
            }
            for j in range(8) {
              U@[j] = T@[j] + 1.0f32
            }
            for k in range(6) {
              V@[k] = U@[k] * U@[k + 2]
            }
            for l in range(6) {
              B@[l] = V@[l]
            }
          }
        }
      }
    }

After::

    func f(A: f32[8], B: f32[8] out) {
      alloc T: f32[8] {
        alloc U: f32[8] {
          for i in range(8) {
            T@[i] = A@[i] * 2.0f32
          }
          for j in range(8) {
            U@[j] = T@[j] + 1.0f32
          }
          for k in range(6) {
            T@[k] = U@[k] * U@[k + 2]
          }
          for l in range(6) {
            B@[l] = T@[l]
          }
        }
      }
    }

Of allocations directly inside each other, each is in use from the first to the last of the
statements below that touch it. In order of first use, a buffer takes the memory of one of the same
type that is in use no more: the smallest that is large enough, or else the largest, which grows.
Of symbolic sizes only the same ones share.

Requires: nothing. Ensures: no two buffers in use at once share; each element is written before it
is read as it was before. Level: flat, kept. Local and shared memory stay as they are: the former
becomes registers, and in the latter other threads may still be reading. So do buffers whose
addresses are given away. It refuses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import AddressOf, Buffer
from refcomp.ir.constants import element_count
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import (
    buffers_in,
    map_children,
    replace_buffers,
    walk,
    with_fields,
)
from refcomp.ir.stmt import Allocate, Block, Stmt
from refcomp.ir.structure import structurally_equal


@dataclass(frozen=True, slots=True)
class _LiveRange:
    """The numbers of the first and the last statement that touch a buffer."""

    first: int
    last: int


@dataclass(slots=True)
class _Memory:
    """Memory for several buffers: as large as the largest, free after statement `last`."""

    first: Buffer
    size: int | None  # None: that of its first buffer, which is symbolic
    last: int
    buffers: list[Buffer] = field(default_factory=list)


def reuse_storage(func: PrimFunc) -> PrimFunc:
    """`func` with fewer allocations."""
    return func.with_body(_visit(func.body))


def _visit(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, Allocate):
        return map_children(stmt, _visit, only=Stmt)
    allocations, body = _chain(stmt)
    body = _visit(body)
    stmts = body.stmts if isinstance(body, Block) else (body,)
    shared = _shared(allocations, stmts)
    if not shared:
        return _around(allocations, body, stmt)
    return _rebuilt(allocations, body, shared)


def _chain(node: Allocate) -> tuple[list[Allocate], Stmt]:
    """Allocations directly inside each other, and what is inside them all."""
    found: list[Allocate] = []
    body: Stmt = node
    while isinstance(body, Allocate):
        found.append(body)
        body = body.body
    return found, body


def _around(allocations: Sequence[Allocate], body: Stmt, unchanged: Allocate) -> Stmt:
    if body is allocations[-1].body:
        return unchanged
    for allocation in reversed(allocations):
        body = with_fields(allocation, body=body)
    return body


def _rebuilt(
    allocations: Sequence[Allocate], body: Stmt, shared: Sequence[_Memory]
) -> Stmt:
    places: dict[Buffer, Buffer] = {}
    for memory in shared:
        place = _place(memory)
        places |= dict.fromkeys(memory.buffers, place)
    firsts = {memory.first for memory in shared}
    body = replace_buffers(body, places)
    for allocation in reversed(allocations):
        buffer = allocation.buffer
        if buffer in firsts or buffer not in places:
            body = with_fields(allocation, buffer=places.get(buffer, buffer), body=body)
    return body


def _place(memory: _Memory) -> Buffer:
    """The buffer that all of `memory` becomes: the first, flat where it had to grow."""
    alignment = max(buffer.alignment for buffer in memory.buffers)
    shape = memory.first.shape
    if memory.size is not None and memory.size != element_count(memory.first.shape):
        shape = (IntImm(memory.size, I64),)
    if shape is memory.first.shape and alignment == memory.first.alignment:
        return memory.first
    place: Buffer = with_fields(memory.first, shape=shape, alignment=alignment)
    return place


def _shared(allocations: Sequence[Allocate], stmts: Sequence[Stmt]) -> list[_Memory]:
    """The memories that several buffers get."""
    uses = _uses(stmts)
    fixed = {
        node.buffer
        for stmt in stmts
        for node in walk(stmt)
        if isinstance(node, AddressOf)
    }
    candidates = [
        a.buffer
        for a in allocations
        if a.buffer.scope == "global" and a.buffer in uses and a.buffer not in fixed
    ]
    memories: list[_Memory] = []
    for buffer in sorted(candidates, key=lambda b: uses[b].first):
        _put(buffer, uses[buffer], memories)
    return [memory for memory in memories if len(memory.buffers) > 1]


def _uses(stmts: Sequence[Stmt]) -> dict[Buffer, _LiveRange]:
    uses: dict[Buffer, _LiveRange] = {}
    for number, stmt in enumerate(stmts):
        for buffer in buffers_in(stmt):
            first = uses[buffer].first if buffer in uses else number
            uses[buffer] = _LiveRange(first, number)
    return uses


def _put(buffer: Buffer, use: _LiveRange, memories: list[_Memory]) -> None:
    size = element_count(buffer.shape)
    free = [m for m in memories if m.last < use.first and _may_share(m, buffer, size)]
    if not free:
        memories.append(_Memory(buffer, size, use.last, [buffer]))
        return
    memory = min(free, key=lambda m: _preference(m.size or 0, size or 0))
    memory.size = None if size is None else max(size, memory.size or 0)
    memory.last = use.last
    memory.buffers.append(buffer)


def _preference(size: int, wanted: int) -> tuple[bool, int]:
    """The smallest that is large enough, or else the largest."""
    return size < wanted, size if size >= wanted else -size


def _may_share(memory: _Memory, buffer: Buffer, size: int | None) -> bool:
    first = memory.first
    if first.dtype != buffer.dtype or (memory.size is None) != (size is None):
        return False
    return size is not None or _is_same_shape(first.shape, buffer.shape)


def _is_same_shape(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(map(structurally_equal, a, b))
