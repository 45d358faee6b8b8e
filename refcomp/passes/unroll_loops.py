"""Writes out the iterations of unrolled loops.

Before::

    func pair(A: f32[8], B: f32[8] out) {
      for i in range(4) {
        for j in range(2) unrolled {
          B@[i * 2 + j] = A@[i * 2 + j]
        }
      }
    }

After::

    func pair(A: f32[8], B: f32[8] out) {
      for i in range(4) {
        B@[i * 2 + 0] = A@[i * 2 + 0]
        B@[i * 2 + 1] = A@[i * 2 + 1]
      }
    }

Requires: constant extents of unrolled loops. Ensures: no unrolled loop is left; every copy binds
variables and buffers of its own, so that each is still bound once. Level: nested or flat, kept.

Inner loops are written out first. A loop stays serial when it has more than 256 iterations or its
copies would hold more than 10,000 nodes. It refuses (UserError) an extent that is negative or no
constant.
"""

from collections.abc import Callable
from typing import Any

from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, IntImm, Let, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import map_children, memoised, walk, with_fields
from refcomp.ir.stmt import (
    SERIAL,
    UNROLLED,
    Allocate,
    Block,
    BufferStore,
    For,
    LetStmt,
    Stmt,
    Store,
    block,
)
from refcomp.passes.constant_extents import constant_extent

MAX_COPIES = 256
MAX_NODES = 10_000


def unroll_loops(func: PrimFunc) -> PrimFunc:
    """`func` with each unrolled loop written out, or made serial where that would be too long."""
    return func.with_body(_visit(func.body))


def _visit(node: Any) -> Any:
    if isinstance(node, Expr):
        return node
    node = map_children(node, _visit)
    return _unroll(node) if isinstance(node, For) and node.kind == UNROLLED else node


def _unroll(loop: For) -> Stmt:
    copies = constant_extent(loop)
    if copies > MAX_COPIES or copies * sum(1 for _ in walk(loop.body)) > MAX_NODES:
        return with_fields(loop, kind=SERIAL)
    if copies == 0:
        return Block((), loop.origin)
    return block([_copy(loop.body, {loop.var: _step(loop, k)}) for k in range(copies)], loop.origin)


def _step(loop: For, step: int) -> Expr:
    dtype = loop.var.dtype
    if isinstance(loop.minimum, IntImm):
        return IntImm(loop.minimum.value + step, dtype)
    return loop.minimum + IntImm(step, dtype) if step else loop.minimum


def _copy(body: Stmt, values: dict[Var, Expr]) -> Stmt:
    """`body` with variables replaced, binding variables and buffers of its own."""
    buffers: dict[Buffer, Buffer] = {}

    def visit(recurse: Callable[[Any], Any], node: Any) -> Any:
        if isinstance(node, Var):
            return values.get(node, node)
        if isinstance(node, For | Let | LetStmt):
            var = values.setdefault(node.var, Var(node.var.name, node.var.dtype))
            return with_fields(map_children(node, recurse), var=var)
        if isinstance(node, Allocate):
            shape = tuple(recurse(dim) for dim in node.buffer.shape)
            buffers.setdefault(node.buffer, with_fields(node.buffer, shape=shape))
        node = map_children(node, recurse)
        if isinstance(node, BufferLoad | Load | BufferStore | Store | Allocate):
            buffer = buffers.get(node.buffer, node.buffer)
            return node if buffer is node.buffer else with_fields(node, buffer=buffer)
        return node

    result: Stmt = memoised(visit)(body)
    return result
