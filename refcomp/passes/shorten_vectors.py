"""Shortens vectors under a mask that is constant, and is False from some lane on.

Before::

    func f(A: f32[20], B: f32[20] out) {
      let mask: boolx8 = ramp(16, 1, 8) < broadcast(20, 8) {
        B@[ramp(16, 1, 8)] = A@[ramp(16, 1, 8) if mask] * broadcast(2.0f32, 8) if mask
      }
    }

After::

    func f(A: f32[20], B: f32[20] out) {
      B@[ramp(16, 1, 4)] = A@[ramp(16, 1, 4)] * broadcast(2.0f32, 4)
    }

Such vectors occur at the border of a tensor whose extent is constant. LLVM cannot keep memory in
registers that is accessed under a mask. So a tile at a border would take longer than a whole tile.

The let of a mask is removed on two conditions: each statement in its body is a store under this
mask, and the vectors of these stores have no lets inside. Otherwise the let stays. Stores under a
mask of no lanes are removed. A mask of all lanes is left out.

Requires: constants are folded. Ensures: each lane that was stored has its value, bit for bit; no
other lane is read. Level: flat, kept. It refuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from refcomp.foundation.dtype import BOOL, DType
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Load
from refcomp.ir.expr import LT, Broadcast, Expr, IntImm, Ramp, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import map_children, memoised, walk, with_fields
from refcomp.ir.stmt import Block, LetStmt, Stmt, Store, block
from refcomp.passes.analysis.contents import dtypes_in


def shorten_vectors(func: PrimFunc) -> PrimFunc:
    """Return `func` with shorter vectors in place of those under a constant mask."""
    if not any(_is_mask(dtype) for dtype in dtypes_in(func)):
        return func
    return func.with_body(_visit(func.body))


def _is_mask(dtype: DType) -> bool:
    return dtype.element == BOOL and dtype.lanes > 1


def _visit(stmt: Stmt) -> Stmt:
    stmt = map_children(stmt, _visit, only=Stmt)
    if not isinstance(stmt, LetStmt):
        return stmt
    count = _first_lanes(stmt.value)
    if count is None:
        return stmt
    body = stmt.body
    stores = body.stmts if isinstance(body, Block) else (body,)
    if not all(_can_cut(store, stmt.var) for store in stores):
        return stmt
    if count == 0:
        return block([], stmt.origin)
    cut = memoised(partial(_cut, stmt.var, count))
    shortened = [_shortened(store, cut) for store in stores]
    return block(shortened, stmt.origin)


def _first_lanes(mask: Expr) -> int | None:
    """Return n if a mask holds in the first n lanes, and only there; None if this is unknown."""
    match mask:
        case LT(
            a=Ramp(base=IntImm(first), stride=IntImm(1)), b=Broadcast(IntImm(limit))
        ):
            count = max(limit - first, 0)
            return min(count, mask.dtype.lanes)
    return None


def _can_cut(stmt: Stmt, mask: Var) -> bool:
    """Return True for a store under this mask, all of whose vectors can be cut."""
    if not isinstance(stmt, Store) or stmt.predicate is not mask:
        return False
    lanes = mask.dtype.lanes
    for node in walk(stmt):
        if not isinstance(node, Expr) or node is mask or node.dtype.lanes == 1:
            continue
        # Variables other than the mask are vectors of lets around it.
        is_bound = isinstance(node, ir.Let | Var)
        if is_bound or node.dtype.lanes != lanes:
            return False
    return True


def _shortened(store: Stmt, cut: Callable[[Expr], Expr]) -> Stmt:
    assert isinstance(store, Store)
    return with_fields(
        store,
        index=cut(store.index),
        value=cut(store.value),
        predicate=None,
    )


def _cut(mask: Var, count: int, recurse: Callable[[Expr], Expr], expr: Expr) -> Expr:
    """Return the first `count` lanes of a vector; a scalar is not changed."""
    match expr:
        case _ if expr.dtype.lanes == 1:
            return expr
        case Ramp(base=base, stride=stride):
            return base if count == 1 else Ramp(base, stride, count)
        case Broadcast(value=value):
            return value if count == 1 else Broadcast(value, count)
        case Load(predicate=predicate) if predicate is mask:
            return with_fields(expr, index=recurse(expr.index), predicate=None)
        case Var():
            return const(True, BOOL.with_lanes(count))
    cut = map_children(expr, recurse, only=Expr)
    if isinstance(cut, ir.Cast | ir.Call):
        # These state their dtype; all others derive it from their operands.
        return with_fields(cut, dtype=cut.dtype.with_lanes(count))
    return cut
