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
from refcomp.ir.buffer import GLOBAL, AddressOf, Buffer
from refcomp.ir.constants import element_count
from refcomp.ir.expr import IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import (
    buffers_in,
    map_children,
    replace_buffers,
    walk,
    with_changes,
    with_fields,
)
from refcomp.ir.stmt import Allocate, Block, Stmt
from refcomp.ir.structure import structurally_equal
from refcomp.passes.analysis.contents import holds


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
    return func.with_body(_visit(func.body)) if holds(func, Allocate) else func


def _visit(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, Allocate):
        return map_children(stmt, _visit, only=Stmt)
    allocations: list[Allocate] = []
    body: Stmt = stmt
    while isinstance(body, Allocate):
        allocations.append(body)
        body = body.body
    body = _visit(body)
    stmts = body.stmts if isinstance(body, Block) else (body,)
    places: dict[Buffer, Buffer] = {}  # buffer -> the one whose memory it takes
    firsts: set[Buffer] = set()
    for memory in _shared(allocations, stmts):
        first = memory.first
        alignment = max(buffer.alignment for buffer in memory.buffers)
        shape = first.shape
        if memory.size is not None and memory.size != element_count(shape):
            # Memory that had to grow is flat.
            shape = (IntImm(memory.size, I64),)
        place = first
        if shape is not first.shape or alignment != first.alignment:
            place = with_fields(first, shape=shape, alignment=alignment)
        firsts.add(first)
        places.update(dict.fromkeys(memory.buffers, place))
    if places:
        body = replace_buffers(body, places)
    for allocation in reversed(allocations):
        buffer = allocation.buffer
        place = places.get(buffer, buffer)
        if buffer in firsts or buffer not in places:
            body = with_changes(allocation, buffer=place, body=body)
    return body


def _shared(allocations: Sequence[Allocate], stmts: Sequence[Stmt]) -> list[_Memory]:
    """Return the memories that several buffers share."""
    uses: dict[Buffer, _LiveRange] = {}
    fixed: set[Buffer] = set()  # a callee has the address, and sees the type
    for number, stmt in enumerate(stmts):
        for buffer in buffers_in(stmt):
            first = uses[buffer].first if buffer in uses else number
            uses[buffer] = _LiveRange(first, number)
        for node in walk(stmt):
            if isinstance(node, AddressOf):
                fixed.add(node.buffer)
    candidates: list[Buffer] = []
    for allocation in allocations:
        buffer = allocation.buffer
        if buffer in uses and buffer not in fixed and buffer.scope == GLOBAL:
            candidates.append(buffer)
    memories: list[_Memory] = []
    for buffer in sorted(candidates, key=lambda b: uses[b].first):
        _put(buffer, uses[buffer], memories)
    return [memory for memory in memories if len(memory.buffers) > 1]


def _put(buffer: Buffer, use: _LiveRange, memories: list[_Memory]) -> None:
    size = element_count(buffer.shape)
    free = [m for m in memories if m.last < use.first and _may_share(m, buffer, size)]
    if not free:
        memories.append(_Memory(buffer, size, use.last, [buffer]))
        return
    memory = free[0]
    if size is not None:
        # The smallest memory that is large enough, else the largest, which grows least.
        sufficient = [m for m in free if (m.size or 0) >= size]
        if sufficient:
            memory = min(sufficient, key=lambda m: m.size or 0)
        else:
            memory = max(free, key=lambda m: m.size or 0)
            memory.size = size
    memory.last = use.last
    memory.buffers.append(buffer)


def _may_share(memory: _Memory, buffer: Buffer, size: int | None) -> bool:
    first = memory.first
    if first.dtype != buffer.dtype or (memory.size is None) != (size is None):
        return False
    if size is not None:
        return True
    # Symbolic sizes are not compared, only shapes.
    shape = first.shape
    has_rank = len(shape) == len(buffer.shape)
    return has_rank and all(map(structurally_equal, shape, buffer.shape))
