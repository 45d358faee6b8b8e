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

from collections.abc import Callable
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
    variables_in,
    with_changes,
    with_fields,
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
)


def simplify_expressions(func: PrimFunc) -> PrimFunc:
    """Return `func` with simpler expressions and without decided branches."""
    return func.with_body(_simplified(func.body, facts_of(func)))


def facts_of(func: PrimFunc) -> Facts:
    """Return what the header implies: variables in shapes are not negative."""
    facts = Facts()
    for buffer in func.buffers:
        for dim in buffer.shape:
            for var in variables_in(dim):
                facts = facts.nonnegative(var)
    return facts


def _simplified(stmt: Stmt, facts: Facts) -> Stmt:
    return _VISITS[type(stmt)](stmt, facts)


def _simplified_all(exprs: tuple[Expr, ...], facts: Facts) -> tuple[Expr, ...]:
    result = tuple(simplify(expr, facts) for expr in exprs)
    return exprs if all(a is b for a, b in zip(result, exprs, strict=True)) else result


def _visit_for(stmt: For, facts: Facts) -> Stmt:
    minimum = simplify(stmt.minimum, facts)
    extent = simplify(stmt.extent, facts)
    count = as_int(extent)
    if count is not None and count <= 0:
        return Block((), stmt.origin)
    if count == 1 and not buffers_in(minimum):
        body = _simplified(stmt.body, facts.define(stmt.var, minimum))
        return with_changes(stmt, body=body, extent=extent) if is_bound(stmt) else body
    body = _simplified(stmt.body, facts.bind(stmt.var, minimum, extent))
    return with_changes(stmt, minimum=minimum, extent=extent, body=body)


def _visit_if(stmt: IfThenElse, facts: Facts) -> Stmt:
    condition = simplify(stmt.condition, facts)
    holds = as_int(condition)
    if holds is not None:
        chosen = stmt.then_case if holds else stmt.else_case
        return Block((), stmt.origin) if chosen is None else _simplified(chosen, facts)
    then_case = _simplified(stmt.then_case, facts.assume(condition))
    else_case = stmt.else_case
    if else_case is not None:
        else_case = _simplified(else_case, facts.assume(Not(condition)))
    return with_changes(
        stmt, condition=condition, then_case=then_case, else_case=else_case
    )


def _visit_let(stmt: LetStmt, facts: Facts) -> Stmt:
    value = simplify(stmt.value, facts)
    if is_copied(value):
        return _simplified(stmt.body, facts.define(stmt.var, value))
    body = _simplified(stmt.body, facts.let(stmt.var, value))
    return with_changes(stmt, value=value, body=body)


def _visit_allocate(stmt: Allocate, facts: Facts) -> Stmt:
    shape = _simplified_all(stmt.buffer.shape, facts)
    if shape is not stmt.buffer.shape:
        buffer: Buffer = with_fields(stmt.buffer, shape=shape)
        stmt = replace_buffers(stmt, {stmt.buffer: buffer})
    return with_changes(stmt, body=_simplified(stmt.body, facts))


def _visit_block(stmt: Block, facts: Facts) -> Stmt:
    stmts = [_simplified(item, facts) for item in stmt.stmts]
    if all(a is b for a, b in zip(stmts, stmt.stmts, strict=True)):
        return stmt
    return block(stmts, stmt.origin)


def _visit_write(stmt: BufferStore | AtomicUpdate, facts: Facts) -> Stmt:
    indices = _simplified_all(stmt.indices, facts)
    return with_changes(stmt, indices=indices, value=simplify(stmt.value, facts))


def _visit_store(stmt: Store, facts: Facts) -> Stmt:
    predicate = None if stmt.predicate is None else simplify(stmt.predicate, facts)
    holds = as_constant(predicate)
    if holds is not None:
        if not holds:
            return Block((), stmt.origin)
        predicate = None
    index = simplify(stmt.index, facts)
    value = simplify(stmt.value, facts)
    return with_changes(stmt, index=index, value=value, predicate=predicate)


def _visit_barrier(stmt: Barrier, _: Facts) -> Stmt:
    return stmt


def _visit_launch(stmt: LaunchKernel, facts: Facts) -> Stmt:
    """Simplify a launch. An argument that becomes a value is named by a let again."""
    lets: list[tuple[Var, Expr]] = []
    arguments: list[Var | Buffer] = []
    for item in stmt.arguments:
        value = simplify(item, facts) if isinstance(item, Var) else item
        if isinstance(item, Var) and not isinstance(value, Var | Buffer):
            lets.append((item, value))
        arguments.append(value if isinstance(value, Var) else item)
    is_same = all(a is b for a, b in zip(arguments, stmt.arguments, strict=True))
    result: Stmt = with_changes(
        stmt,
        arguments=stmt.arguments if is_same else tuple(arguments),
        grid=_simplified_all(stmt.grid, facts),
        block=_simplified_all(stmt.block, facts),
        shared_bytes=_simplified_all(stmt.shared_bytes, facts),
    )
    for var, value in reversed(lets):
        result = LetStmt(var, value, result, stmt.origin)
    return result


def _visit_region(stmt: ParallelRegion, facts: Facts) -> Stmt:
    inner = facts.nonnegative(stmt.num_tasks)
    inner = inner.bind(stmt.task, IntImm(0, stmt.task.dtype), stmt.num_tasks)
    captures: dict[Var | Buffer, None] = {}
    for capture in stmt.captures:
        if isinstance(capture, Var):
            captures.update(dict.fromkeys(variables_in(simplify(capture, facts))))
        else:
            captures[capture] = None
    # By identity: == between variables would build an expression.
    is_same = list(map(id, captures)) == list(map(id, stmt.captures))
    kept = stmt.captures if is_same else tuple(captures)
    return with_changes(stmt, captures=kept, body=_simplified(stmt.body, inner))


def _visit_prefetch(stmt: Prefetch, facts: Facts) -> Stmt:
    return with_changes(stmt, indices=_simplified_all(stmt.indices, facts))


def _visit_call(stmt: CallPacked | CallExtern, facts: Facts) -> Stmt:
    args = tuple(_simplified_argument(arg, facts) for arg in stmt.args)
    unchanged = all(a is b for a, b in zip(args, stmt.args, strict=True))
    return stmt if unchanged else with_fields(stmt, args=args)


def _simplified_argument(arg: Expr, facts: Facts) -> Expr:
    if isinstance(arg, AddressOf):
        return with_changes(arg, indices=_simplified_all(arg.indices, facts))
    return simplify(arg, facts)


def _visit_pragma(stmt: Pragma, facts: Facts) -> Stmt:
    return with_changes(stmt, body=_simplified(stmt.body, facts))


_VISITS: dict[type[Stmt], Callable[[Any, Facts], Stmt]] = {
    For: _visit_for,
    IfThenElse: _visit_if,
    LetStmt: _visit_let,
    Allocate: _visit_allocate,
    Block: _visit_block,
    BufferStore: _visit_write,
    Store: _visit_store,
    Barrier: _visit_barrier,
    AtomicUpdate: _visit_write,
    LaunchKernel: _visit_launch,
    ParallelRegion: _visit_region,
    Prefetch: _visit_prefetch,
    Pragma: _visit_pragma,
    CallPacked: _visit_call,
    CallExtern: _visit_call,
}
