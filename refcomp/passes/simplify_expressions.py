"""Simplifies every expression, and drops guards and branches that are decided.

Before::

    func copy(A: f32[64], B: f32[64] out) {
      for i.outer in range(16) {
        for i.inner in range(4) {
          if (i.outer * 4 + i.inner < 64) {
            for k in range(1) {
              B[i.outer * 4 + i.inner + k] = A[(i.outer * 8 + i.inner * 2) // 2]
            }
          }
        }
      }
    }

After::

    func copy(A: f32[64], B: f32[64] out) {
      for i.outer in range(16) {
        for i.inner in range(4) {
          B[i.outer * 4 + i.inner] = A[i.outer * 4 + i.inner]
        }
      }
    }

Four kinds of facts are used (see `refcomp.arith.facts`): the ranges of the loops around,
the conditions of branches, the values of lets, and that shape symbols are >= 0. A loop of
one iteration becomes its body. A bound loop stays, as it makes its nest a kernel. A let
of a constant or a variable is replaced by its value.

Requires: nothing. Ensures: each expression has its value, bit for bit, wherever it is
evaluated. Level: any, kept. It refuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from refcomp.arith import Facts, simplify
from refcomp.arith.constants import is_copied
from refcomp.ir.buffer import AddressOf, Buffer
from refcomp.ir.constants import as_constant, as_int
from refcomp.ir.expr import Expr, IntImm, Not, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound
from refcomp.ir.rewrite import (
    buffers_in,
    replace_buffers,
    same_items,
    variables_in,
    with_changes,
)
from refcomp.ir.stmt import (
    Allocate,
    AtomicUpdate,
    Barrier,
    Block,
    BufferStore,
    CallExtern,
    CallPacked,
    For,
    IfThenElse,
    LaunchKernel,
    LetStmt,
    ParallelRegion,
    Pragma,
    Prefetch,
    Stmt,
    Store,
    block,
    with_lets,
)
from refcomp.passes.analysis.scope_facts import facts_of


def simplify_expressions(func: PrimFunc) -> PrimFunc:
    """Return `func` with simpler expressions and without decided branches."""
    return func.with_body(simplify_statement(func.body, facts_of(func)))


def simplify_statement(stmt: Stmt, facts: Facts) -> Stmt:
    """Return a simpler statement of the same meaning wherever `facts` hold."""
    return _VISITS[type(stmt)](stmt, facts)


def _simplified_all(exprs: Iterable[Expr], facts: Facts) -> tuple[Expr, ...]:
    return tuple(simplify(expr, facts) for expr in exprs)


def _visit_for(stmt: For, facts: Facts) -> Stmt:
    minimum = simplify(stmt.minimum, facts)
    extent = simplify(stmt.extent, facts)
    count = as_int(extent)
    if count is not None and count <= 0:
        return Block((), stmt.origin)
    # A minimum that reads memory must be evaluated once, before the body may write there.
    if count == 1 and not buffers_in(minimum):
        inside = facts.define(stmt.var, minimum)
        body = simplify_statement(stmt.body, inside)
        if not is_bound(stmt):
            return body
        # A bound loop of one iteration still says that the kernel has this thread index.
        return with_changes(stmt, body=body, extent=extent)
    inside = facts.bind(stmt.var, minimum, extent)
    body = simplify_statement(stmt.body, inside)
    return with_changes(stmt, minimum=minimum, extent=extent, body=body)


def _visit_if(stmt: IfThenElse, facts: Facts) -> Stmt:
    condition = simplify(stmt.condition, facts)
    decided = as_int(condition)
    if decided is not None:
        chosen = stmt.then_case if decided else stmt.else_case
        if chosen is None:
            return Block((), stmt.origin)
        return simplify_statement(chosen, facts)
    holds = facts.assume(condition)
    then_case = simplify_statement(stmt.then_case, holds)
    else_case = stmt.else_case
    if else_case is not None:
        fails = facts.assume(Not(condition))
        else_case = simplify_statement(else_case, fails)
    return with_changes(
        stmt,
        condition=condition,
        then_case=then_case,
        else_case=else_case,
    )


def _visit_let(stmt: LetStmt, facts: Facts) -> Stmt:
    value = simplify(stmt.value, facts)
    # The simplifier replaces a defined variable by its value wherever it occurs.
    if is_copied(value):
        return simplify_statement(stmt.body, facts.define(stmt.var, value))
    inside = facts.let(stmt.var, value)
    body = simplify_statement(stmt.body, inside)
    return with_changes(stmt, value=value, body=body)


def _visit_write(stmt: BufferStore | AtomicUpdate, facts: Facts) -> Stmt:
    indices = _simplified_all(stmt.indices, facts)
    value = simplify(stmt.value, facts)
    return with_changes(stmt, indices=indices, value=value)


def _visit_store(stmt: Store, facts: Facts) -> Stmt:
    predicate = stmt.predicate
    if predicate is not None:
        predicate = simplify(predicate, facts)
    holds = as_constant(predicate)
    if holds is not None:
        if not holds:
            return Block((), stmt.origin)
        predicate = None
    index = simplify(stmt.index, facts)
    value = simplify(stmt.value, facts)
    return with_changes(stmt, index=index, value=value, predicate=predicate)


def _visit_launch(stmt: LaunchKernel, facts: Facts) -> Stmt:
    """Simplify a launch. An argument that becomes a value is named by a let again."""
    lets: list[tuple[Var, Expr]] = []
    arguments: list[Var | Buffer] = []
    for item in stmt.arguments:
        if isinstance(item, Buffer):
            arguments.append(item)
            continue
        value = simplify(item, facts)
        if isinstance(value, Var):
            arguments.append(value)
        else:
            lets.append((item, value))
            arguments.append(item)
    launch = with_changes(
        stmt,
        arguments=tuple(arguments),
        grid=_simplified_all(stmt.grid, facts),
        block=_simplified_all(stmt.block, facts),
        shared_bytes=_simplified_all(stmt.shared_bytes, facts),
    )
    return with_lets(lets, launch, stmt.origin)


def _visit_region(stmt: ParallelRegion, facts: Facts) -> Stmt:
    inner = facts.nonnegative(stmt.num_tasks)
    inner = inner.bind(stmt.task, IntImm(0, stmt.task.dtype), stmt.num_tasks)
    # The keys are an ordered set: two captures may simplify to the same variable.
    captures: dict[Var | Buffer, None] = {}
    for capture in stmt.captures:
        if isinstance(capture, Buffer):
            captures[capture] = None
            continue
        value = simplify(capture, facts)
        for var in variables_in(value):
            captures[var] = None
    body = simplify_statement(stmt.body, inner)
    return with_changes(stmt, captures=tuple(captures), body=body)


def _visit_call(stmt: CallPacked | CallExtern, facts: Facts) -> Stmt:
    args: list[Expr] = []
    for arg in stmt.args:
        if isinstance(arg, AddressOf):
            indices = _simplified_all(arg.indices, facts)
            args.append(with_changes(arg, indices=indices))
        else:
            args.append(simplify(arg, facts))
    return with_changes(stmt, args=tuple(args))


def _visit_other(
    stmt: Allocate | Barrier | Block | Pragma | Prefetch, facts: Facts
) -> Stmt:
    match stmt:
        case Block():
            stmts = [simplify_statement(item, facts) for item in stmt.stmts]
            if same_items(stmts, stmt.stmts):
                return stmt
            return block(stmts, stmt.origin)
        case Allocate():
            # The shape is part of the buffer, which each access names.
            shape = _simplified_all(stmt.buffer.shape, facts)
            buffer = with_changes(stmt.buffer, shape=shape)
            if buffer is not stmt.buffer:
                stmt = replace_buffers(stmt, {stmt.buffer: buffer})
            return with_changes(stmt, body=simplify_statement(stmt.body, facts))
        case Prefetch():
            return with_changes(stmt, indices=_simplified_all(stmt.indices, facts))
        case Pragma():
            return with_changes(stmt, body=simplify_statement(stmt.body, facts))
        case Barrier():
            return stmt


# One function for each class: a lookup is faster than trying the classes in turn.
_VISITS: dict[type[Stmt], Callable[[Any, Facts], Stmt]] = {
    For: _visit_for,
    IfThenElse: _visit_if,
    LetStmt: _visit_let,
    Allocate: _visit_other,
    Block: _visit_other,
    BufferStore: _visit_write,
    Store: _visit_store,
    Barrier: _visit_other,
    AtomicUpdate: _visit_write,
    LaunchKernel: _visit_launch,
    ParallelRegion: _visit_region,
    Prefetch: _visit_other,
    Pragma: _visit_other,
    CallPacked: _visit_call,
    CallExtern: _visit_call,
}
