"""Rewrites statements to leave room for barriers, without a change of meaning.

A barrier may not stand where some threads of a group do not arrive, nor within a
statement:

    if (tx < n) { S[tx] = A[tx]  B[tx] = S[tx + 1] }      S[tx] = S[tx + 1]

become

    if (tx < n) { S[tx] = A[tx] }                         let S.read = S[tx + 1] {
    if (tx < n) { B[tx] = S[tx + 1] }                       S[tx] = S.read }

A condition that reads memory is evaluated once, before, since the statements below may
change what it reads. The value of a let and the range of a loop below may read memory,
too. They still read it only if the condition holds.
"""

from __future__ import annotations

from refcomp.foundation.dtype import BOOL
from refcomp.ir.expr import And, Expr, IfThenElseExpr, Not, Var
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import with_changes
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
    with_lets,
)
from refcomp.passes.analysis.access_ranges import reads_memory


def read_first(stmt: BufferStore | AtomicUpdate) -> Stmt:
    """Return `stmt` with its reads named by lets, so that a barrier fits in between."""
    names: list[tuple[Var, Expr]] = []

    def named(expr: Expr) -> Expr:
        if not reads_memory(expr):
            return expr
        var = Var(f"{stmt.buffer.name}.read", expr.dtype)
        names.append((var, expr))
        return var

    indices = tuple(map(named, stmt.indices))
    value = named(stmt.value)
    write = with_changes(stmt, indices=indices, value=value)
    return with_lets(names, write, stmt.origin)


def spread(stmt: IfThenElse) -> Stmt:
    """Return `stmt` with its condition at each of the statements below it."""
    # A statement may change what the condition reads, so it is evaluated once.
    if reads_memory(stmt.condition):
        known = Var("condition", BOOL)
        inner = spread(with_changes(stmt, condition=known))
        return LetStmt(known, stmt.condition, inner, stmt.origin)
    cases = [_under(stmt.condition, stmt.then_case, stmt.origin)]
    if stmt.else_case is not None:
        cases.append(_under(Not(stmt.condition), stmt.else_case, stmt.origin))
    return block(cases, stmt.origin)


def _under(condition: Expr, stmt: Stmt, origin: Origin | None) -> Stmt:
    """Return `stmt` under `condition`, which reads no memory."""
    match stmt:
        case Barrier():
            return stmt  # all threads must reach it, which is why conditions are spread
        case Block():
            stmts = [_under(condition, item, origin) for item in stmt.stmts]
            return block(stmts, stmt.origin)
        case Allocate() | Pragma():
            return with_changes(stmt, body=_under(condition, stmt.body, origin))
        case LetStmt():
            value = _where(condition, stmt.value)
            body = _under(condition, stmt.body, origin)
            return with_changes(stmt, value=value, body=body)
        case For():
            minimum = _where(condition, stmt.minimum)
            extent = _where(condition, stmt.extent)
            body = _under(condition, stmt.body, origin)
            return with_changes(stmt, minimum=minimum, extent=extent, body=body)
        case IfThenElse() if reads_memory(stmt.condition):
            known = Var("condition", BOOL)
            inner = _under(condition, with_changes(stmt, condition=known), origin)
            return LetStmt(known, _where(condition, stmt.condition), inner, stmt.origin)
        case IfThenElse(then_case=then_case, else_case=other):
            # The other case runs if `condition` holds and the condition of `stmt` does not.
            if other is not None:
                other = IfThenElse(condition, other, None, stmt.origin)
            both = And(condition, stmt.condition)
            return spread(IfThenElse(both, then_case, other, stmt.origin))
    return IfThenElse(condition, stmt, None, origin)


def _where(condition: Expr, value: Expr) -> Expr:
    """Return `value`, which reads memory only if `condition` holds."""
    if not reads_memory(value):
        return value
    return IfThenElseExpr(condition, value, const(0, value.dtype))
