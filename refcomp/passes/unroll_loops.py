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

Requires: constant extents of unrolled loops. Ensures: no unrolled loop is left. Each copy
binds variables and buffers of its own, so that each is still bound once. Arithmetic on
integer constants is done. Level: nested or flat, kept.

Inner loops are written out first. A loop becomes serial if it has more than 256
iterations, or if its copies would hold more than 10,000 nodes. It refuses (UserError) an
extent that is negative or not a constant.
"""

from refcomp.arith.constants import fold_integers
from refcomp.ir.constants import as_int
from refcomp.ir.expr import BinaryExpr, Expr, IntImm
from refcomp.ir.fresh_names import Copier
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import map_children, walk, with_fields
from refcomp.ir.stmt import SERIAL, UNROLLED, Block, For, Stmt, block
from refcomp.passes.analysis.constant_extents import constant_extent
from refcomp.passes.analysis.contents import holds

MAX_COPIES = 256
MAX_NODES = 10_000


def unroll_loops(func: PrimFunc) -> PrimFunc:
    """Return `func` with each unrolled loop written out, or serial if that is too long."""
    return func.with_body(_visit(func.body)) if holds(func, UNROLLED) else func


def _visit(stmt: Stmt) -> Stmt:
    loop = map_children(stmt, _visit, only=Stmt)
    if not isinstance(loop, For) or loop.kind != UNROLLED:
        return loop
    copies = constant_extent(loop)
    num_nodes = sum(1 for _ in walk(loop.body))
    if copies > MAX_COPIES or copies * num_nodes > MAX_NODES:
        return with_fields(loop, kind=SERIAL)
    if copies == 0:
        return Block((), loop.origin)
    dtype = loop.var.dtype
    first = as_int(loop.minimum)
    copier = Copier(loop.body, [loop.var], _folded)
    bodies: list[Stmt] = []
    for step in range(copies):
        value = loop.minimum
        if first is not None:
            value = IntImm(first + step, dtype)
        elif step > 0:
            value = loop.minimum + IntImm(step, dtype)
        # Names are bound once in a function, so each copy gets its own.
        bodies.append(copier.copy({loop.var: value}))
    return block(bodies, loop.origin)


def _folded(expr: BinaryExpr) -> Expr:
    """Return the value of an expression of two integers.

    Most indices of a copy are constants. The passes behind would visit each part of them.
    """
    a = expr.a
    b = expr.b
    if not isinstance(a, IntImm) or not isinstance(b, IntImm):
        return expr
    value = fold_integers(type(expr), a.value, b.value, a.dtype)
    return expr if value is None else IntImm(value, expr.dtype)
