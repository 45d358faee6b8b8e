"""Joins the calls that ask a GPU's instruction for its elements one by one.

Before::

    func f(A: f32[64], B: f32[4] out, x: f32) {
      for t in range(64) threadIdx.x {
        B@[0] = extern f32 llvm.amdgcn.mfma.f32.16x16x4f32(A@[t], A@[t], x, x, x, x, 0i32)
        B@[1] = extern f32 llvm.amdgcn.mfma.f32.16x16x4f32(A@[t], A@[t], x, x, x, x, 1i32)
        B@[2] = extern f32 llvm.amdgcn.mfma.f32.16x16x4f32(A@[t], A@[t], x, x, x, x, 2i32)
        B@[3] = extern f32 llvm.amdgcn.mfma.f32.16x16x4f32(A@[t], A@[t], x, x, x, x, 3i32)
      }
    }

After::

    func f(A: f32[64], B: f32[4] out, x: f32) {
      for t in range(64) threadIdx.x {
        B@[ramp(0, 1, 4)] = extern f32x4 llvm.amdgcn.mfma.f32.16x16x4f32(A@[t], A@[t], x, x, x, x)
      }
    }

So the instruction is issued once. A matrix load also reads its row as one vector.

Requires: statements that follow each other store the elements in order, side by side, in a
buffer that the operands do not read. Others stay as they are. Ensures: no such statements
are left. Level: device, kept. It refuses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.arith import simplify
from refcomp.ir.buffer import Load
from refcomp.ir.constants import as_constant, as_int
from refcomp.ir.expr import Expr, PureExtern, Ramp, Sub
from refcomp.ir.func import PrimFunc
from refcomp.ir.gpu_instructions.records import MatrixLoad
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS, result_count
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import map_children, walk, with_fields
from refcomp.ir.stmt import Block, Stmt, Store, block
from refcomp.ir.structure import structurally_equal
from refcomp.passes.analysis.contents import holds


def join_matrix_calls(func: PrimFunc) -> PrimFunc:
    """Return `func` with one call where calls asked for all elements of an instruction."""
    return func.with_body(_visit(func.body)) if holds(func, PureExtern) else func


def _visit(stmt: Stmt) -> Stmt:
    stmt = map_children(stmt, _visit, only=Stmt)
    if not isinstance(stmt, Block):
        return stmt
    joined: list[Stmt] = []
    rest = list(stmt.stmts)
    while rest:
        count = _count(rest[0])
        whole = _joined(rest[:count]) if count > 1 else None
        joined.append(rest[0] if whole is None else whole)
        del rest[: 1 if whole is None else count]
    return stmt if len(joined) == len(stmt.stmts) else block(joined)


def _count(stmt: Stmt) -> int:
    """Return the number of elements of the instruction whose first one `stmt` stores, else 0."""
    if not isinstance(stmt, Store) or stmt.predicate is not None:
        return 0
    call = stmt.value
    if not isinstance(call, PureExtern) or call.name not in GPU_INTRINSICS:
        return 0
    is_first = call.dtype.lanes == 1 and as_int(call.args[-1]) == 0
    return result_count(call) if is_first else 0


def _joined(stmts: Sequence[Stmt]) -> Stmt | None:
    """Return one store for all of `stmts`; None if they do not store what belongs together."""
    first = stmts[0]
    assert isinstance(first, Store)
    call = first.value
    assert isinstance(call, PureExtern)
    for number, stmt in enumerate(stmts):
        if not isinstance(stmt, Store) or stmt.buffer is not first.buffer:
            return None
        if not _is_distance(first.index, stmt.index, number):
            return None
        wanted = with_fields(call, args=(*call.args[:-1], _like(call.args[-1], number)))
        if stmt.predicate is not None or not structurally_equal(stmt.value, wanted):
            return None
    count = result_count(call)
    if len(stmts) < count or _reads(first, first.buffer):
        return None
    operands: Sequence[Expr] | None = call.args[:-1]
    if isinstance(GPU_INTRINSICS[call.name], MatrixLoad):
        operands = _row(call.args[:-1])
    if operands is None:
        return None
    whole = PureExtern(call.name, tuple(operands), call.dtype.with_lanes(count))
    index = _ramp(first.index, count)
    return with_fields(first, index=index, value=whole)


def _reads(store: Store, buffer: object) -> bool:
    parts = (*walk(store.value), *walk(store.index))
    return any(isinstance(part, Load) and part.buffer is buffer for part in parts)


def _row(elements: Sequence[Expr]) -> tuple[Expr] | None:
    """Return elements that lie side by side as one vector, else None."""
    first = elements[0]
    for number, element in enumerate(elements):
        if not (isinstance(first, Load) and isinstance(element, Load)):
            return None
        is_plain = element.predicate is None and element.buffer is first.buffer
        if not is_plain or not _is_distance(first.index, element.index, number):
            return None
    assert isinstance(first, Load)
    return (with_fields(first, index=_ramp(first.index, len(elements))),)


def _is_distance(first: Expr, index: Expr, number: int) -> bool:
    """Return True if a scalar `index` is `first` + `number`."""
    if index.dtype != first.dtype or index.dtype.lanes > 1:
        return False
    return as_constant(simplify(Sub(index, first))) == number


def _like(number: Expr, value: int) -> Expr:
    return const(value, number.dtype)


def _ramp(first: Expr, count: int) -> Ramp:
    return Ramp(first, const(1, first.dtype), count)
