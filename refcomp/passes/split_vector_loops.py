"""Splits vectorized loops at the steps of quotients, so that each vector reads neighbours.

Before::

    func shuffle(A: f32[8], B: f32[8] out) {
      for i in range(8) vectorized {
        B@[i] = A@[i % 4 * 2 + i // 4]
      }
    }

After::

    func shuffle(A: f32[8], B: f32[8] out) {
      for i.outer in range(2) unrolled {
        for i.inner in range(4) vectorized {
          B@[i.outer * 4 + i.inner] = A@[i.outer + i.inner * 2]
        }
      }
    }

Within a step of a quotient, an index is linear in the loop variable. Otherwise each lane would need
an address of its own, and its division. The last axis of a channel shuffle has such indices, and so
have blocks of channels that are divided into groups.

A loop stays whole if its quotients have no constant divisors; if their steps are shorter than
4, or as long as the loop; or if a quotient would still depend on the inner loop.

Requires: offsets are simplified where they are a quotient and a remainder (`flatten_storage`).
Ensures: the iterations run in their order. Level: any, kept. It refuses nothing.
"""

from __future__ import annotations

import math

from refcomp.arith import Facts
from refcomp.ir.constants import as_int
from refcomp.ir.expr import BinaryExpr, FloorDiv, FloorMod, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import map_children, substitute, variables_in, walk
from refcomp.ir.stmt import UNROLLED, VECTORIZED, For, Stmt
from refcomp.passes.analysis.contents import holds
from refcomp.passes.analysis.scope_facts import facts_in, facts_of
from refcomp.passes.simplify_expressions import simplify_statement

# Shorter vectors gain less than one whose lanes are read one by one.
_MIN_LANES = 4


def split_vector_loops(func: PrimFunc) -> PrimFunc:
    """Return `func` with vectorized loops split where an index has steps."""
    if not holds(func, VECTORIZED):
        return func
    return func.with_body(_visit(func.body, facts_of(func)))


def _visit(stmt: Stmt, facts: Facts) -> Stmt:
    if isinstance(stmt, For) and stmt.kind == VECTORIZED:
        return _split(stmt, facts)

    def inside(child: Stmt) -> Stmt:
        return _visit(child, facts_in(stmt, child, facts))

    return map_children(stmt, inside, only=Stmt)


def _split(loop: For, facts: Facts) -> Stmt:
    extent = as_int(loop.extent) or 0
    lanes = _shared_step(loop.body, loop.var, extent)
    if not _MIN_LANES <= lanes < extent:
        return loop
    dtype = loop.var.dtype
    zero = IntImm(0, dtype)
    count = IntImm(extent // lanes, dtype)
    length = IntImm(lanes, dtype)
    outer = Var(f"{loop.var.name}.outer", dtype)
    inner = Var(f"{loop.var.name}.inner", dtype)
    place = loop.minimum + outer * length + inner
    known = facts.bind(outer, zero, count).bind(inner, zero, length)
    body = simplify_statement(substitute(loop.body, {loop.var: place}), known)
    if _quotients(body, inner):
        return loop
    vector = For(inner, zero, length, VECTORIZED, body, loop.origin)
    return For(outer, zero, count, UNROLLED, vector, loop.origin)


def _shared_step(body: Node, var: Var, extent: int) -> int:
    """Return the longest step of all quotients by `var`, a divisor of `extent`; 0 for none."""
    quotients = _quotients(body, var)
    divisors = [as_int(quotient.b) or 0 for quotient in quotients]
    return math.gcd(extent, *divisors) if divisors and all(divisors) else 0


def _quotients(body: Node, var: Var) -> list[BinaryExpr]:
    """Return the quotients and remainders whose operands depend on `var`."""
    return [
        node
        for node in walk(body)
        if isinstance(node, FloorDiv | FloorMod)
        and any(var is other for other in variables_in(node))
    ]
