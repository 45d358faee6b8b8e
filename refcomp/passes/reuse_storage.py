"""Lets buffers that are not in use at the same time share memory.

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

The pass examines allocations that are directly nested. A buffer is in use from the first
to the last of the statements below that access it. In order of first use, a buffer takes
the memory of a buffer of the same type that is no longer in use. It takes the smallest
memory that is large enough. If there is none, the largest one grows. Buffers of symbolic
sizes share only if their shapes are the same.

Requires: nothing. Ensures: buffers in use at once do not share, and each element is still
written before it is read. Level: flat, kept. It refuses nothing.

Three kinds of buffers are not changed: local ones, which become registers; shared ones,
which other threads may still be reading; and those whose address is passed on.
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
    """Memory for several buffers."""

    first: Buffer
    # In elements, that of the largest buffer. None: the size of `first`, which is symbolic.
    size: int | None
    # The number of the last statement that uses it.
    last: int
    buffers: list[Buffer] = field(default_factory=list)


def reuse_storage(func: PrimFunc) -> PrimFunc:
    """Return `func` with fewer allocations."""
    return func.with_body(_visit(func.body))


def _visit(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, Allocate):
        return map_children(stmt, _visit, only=Stmt)
    allocations, body = _chain(stmt)
    body = _visit(body)
    stmts = body.stmts if isinstance(body, Block) else (body,)
    shared = _shared(allocations, stmts)
    if shared:
        return _rebuilt(allocations, body, shared)
    if body is allocations[-1].body:
        return stmt
    for allocation in reversed(allocations):
        body = with_fields(allocation, body=body)
    return body


def _chain(node: Allocate) -> tuple[list[Allocate], Stmt]:
    """Return directly nested allocations, and the body inside of them all."""
    found: list[Allocate] = []
    body: Stmt = node
    while isinstance(body, Allocate):
        found.append(body)
        body = body.body
    return found, body


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
    """Return the buffer for all of `memory`: its first one, flat if it had to grow."""
    alignment = max(buffer.alignment for buffer in memory.buffers)
    shape = memory.first.shape
    if memory.size is not None and memory.size != element_count(memory.first.shape):
        shape = (IntImm(memory.size, I64),)
    if shape is memory.first.shape and alignment == memory.first.alignment:
        return memory.first
    return with_fields(memory.first, shape=shape, alignment=alignment)


def _shared(allocations: Sequence[Allocate], stmts: Sequence[Stmt]) -> list[_Memory]:
    """Return the memories that several buffers share."""
    uses = _uses(stmts)
    nodes = (node for stmt in stmts for node in walk(stmt))
    fixed = {node.buffer for node in nodes if isinstance(node, AddressOf)}
    buffers = [allocation.buffer for allocation in allocations]
    used = [buffer for buffer in buffers if buffer in uses and buffer not in fixed]
    candidates = [buffer for buffer in used if buffer.scope == "global"]
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
    """Return a key by which the smallest sufficient size is first, else the largest."""
    return size < wanted, size if size >= wanted else -size


def _may_share(memory: _Memory, buffer: Buffer, size: int | None) -> bool:
    first = memory.first
    if first.dtype != buffer.dtype or (memory.size is None) != (size is None):
        return False
    return size is not None or _is_same_shape(first.shape, buffer.shape)


def _is_same_shape(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(map(structurally_equal, a, b))
