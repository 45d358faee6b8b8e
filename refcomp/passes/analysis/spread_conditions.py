"""Statements that mean the same and leave room for barriers.

A barrier may not stand where some threads of a group do not come, nor within a statement:

    if (tx < n) { S[tx] = A[tx]  B[tx] = S[tx + 1] }      S[tx] = S[tx + 1]

become

    if (tx < n) { S[tx] = A[tx] }                         let S.read = S[tx + 1] {
    if (tx < n) { B[tx] = S[tx + 1] }                       S[tx] = S.read }

A condition that reads memory is read once, before, as the statements below it may change it. What
they read for a let or for the range of a loop is still read only where the condition holds.
"""

from __future__ import annotations

from refcomp.foundation.dtype import BOOL
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.expr import And, Expr, IfThenElseExpr, Not, Var
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import walk, with_changes
from refcomp.ir.stmt import (
    Allocate,
    AtomicUpdate,
    Barrier,
    Block,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    Origin,
    Pragma,
    Stmt,
    block,
)


def read_first(stmt: BufferStore | AtomicUpdate) -> Stmt:
    """`stmt` with what it reads named before, so that a barrier can stand between."""
    names: list[tuple[Var, Expr]] = []

    def named(expr: Expr) -> Expr:
        if not _reads_memory(expr):
            return expr
        names.append((Var(f"{stmt.buffer.name}.read", expr.dtype), expr))
        return names[-1][0]

    result: Stmt = with_changes(
        stmt, indices=tuple(map(named, stmt.indices)), value=named(stmt.value)
    )
    for var, value in reversed(names):
        result = LetStmt(var, value, result, stmt.origin)
    return result


def spread(stmt: IfThenElse) -> Stmt:
    """`stmt` with its condition at the statements below it."""
    if _reads_memory(stmt.condition):
        known = Var("condition", BOOL)
        inner = spread(with_changes(stmt, condition=known))
        return LetStmt(known, stmt.condition, inner, stmt.origin)
    cases = [_under(stmt.condition, stmt.then_case, stmt.origin)]
    if stmt.else_case is not None:
        cases.append(_under(Not(stmt.condition), stmt.else_case, stmt.origin))
    return block(cases, stmt.origin)


def _under(condition: Expr, stmt: Stmt, origin: Origin | None) -> Stmt:
    """What `stmt` does where `condition`, which reads no memory, holds."""
    match stmt:
        case Barrier():
            return stmt
        case Block():
            return block(
                [_under(condition, item, origin) for item in stmt.stmts], stmt.origin
            )
        case Allocate() | Pragma():
            return with_changes(stmt, body=_under(condition, stmt.body, origin))
        case LetStmt():
            value, body = (
                _where(condition, stmt.value),
                _under(condition, stmt.body, origin),
            )
            return with_changes(stmt, value=value, body=body)
        case For():
            minimum, extent = (
                _where(condition, stmt.minimum),
                _where(condition, stmt.extent),
            )
            body = _under(condition, stmt.body, origin)
            return with_changes(stmt, minimum=minimum, extent=extent, body=body)
        case IfThenElse() if _reads_memory(stmt.condition):
            known = Var("condition", BOOL)
            inner = _under(condition, with_changes(stmt, condition=known), origin)
            return LetStmt(known, _where(condition, stmt.condition), inner, stmt.origin)
        case IfThenElse():
            return spread(_both(condition, stmt))
    return IfThenElse(condition, stmt, None, origin)


def _both(condition: Expr, stmt: IfThenElse) -> IfThenElse:
    """`stmt` where `condition` holds, too; its other case where only that one does."""
    other = stmt.else_case
    if other is not None:
        other = IfThenElse(condition, other, None, stmt.origin)
    return IfThenElse(
        And(condition, stmt.condition), stmt.then_case, other, stmt.origin
    )


def _where(condition: Expr, value: Expr) -> Expr:
    """`value`, which reads memory only where `condition` holds."""
    if not _reads_memory(value):
        return value
    return IfThenElseExpr(condition, value, const(0, value.dtype))


def _reads_memory(expr: Expr) -> bool:
    return any(isinstance(item, BufferLoad) for item in walk(expr))
