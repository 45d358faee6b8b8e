"""Turns parallel loops into parallel regions, whose tasks share the iterations evenly.

Before::

    func scale(A: f32[n], B: f32[n] out) {
      for i in range(n) parallel {
        B@[i] = A@[i] * 2.0f32
      }
    }

After::

    func scale(A: f32[n], B: f32[n] out) {
      region scale.parallel0 (n, B, A) task task of tasks {
        let begin: i64 = n * task // tasks {
          let end: i64 = n * (task + 1) // tasks {
            for i in range(begin, extent=end - begin) {
              B@[i] = A@[i] * 2.0f32
            }
          }
        }
      }
    }

Under `pragma parallel_stride_pattern`, a task takes every iteration number task, task + tasks, ...
instead: `for turn in range((n - task + tasks - 1) // tasks)`, with `i = task + turn * tasks`.

Requires: nothing before it. Ensures: no parallel loop is left, and no region lies in
another one: a parallel loop inside a region becomes serial. So does a loop that calls
registered Python functions, which run in order. The minimum and the extent of
a loop are evaluated once, outside. Captures are in order of first use. Level: flat, kept.
It refuses nothing.
"""

from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import AddressOf, Buffer, Load
from refcomp.ir.constants import as_int
from refcomp.ir.expr import (
    Expr,
    FloorDiv,
    IntImm,
    Let,
    Var,
)
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node, bound_by
from refcomp.ir.outside_calls import calls_python
from refcomp.ir.promotion import cast
from refcomp.ir.rewrite import children, map_children, with_fields
from refcomp.ir.stmt import (
    PARALLEL,
    SERIAL,
    STRIDE_PATTERN,
    Allocate,
    For,
    LetStmt,
    ParallelRegion,
    Pragma,
    Prefetch,
    Stmt,
    Store,
    with_lets,
)
from refcomp.passes.analysis.contents import holds


def outline_parallel(func: PrimFunc) -> PrimFunc:
    """Return `func` with each outermost parallel loop as a ParallelRegion."""
    if not holds(func, PARALLEL) and not holds(func, Pragma):
        return func
    count = 0

    def visit(stmt: Stmt) -> Stmt:
        nonlocal count
        if isinstance(stmt, ParallelRegion):
            return stmt
        is_strided = isinstance(stmt, Pragma) and stmt.key == STRIDE_PATTERN
        if isinstance(stmt, Pragma) and is_strided:
            stmt = stmt.body
        if isinstance(stmt, For) and stmt.kind == PARALLEL:
            if calls_python(stmt.body):
                stmt = with_fields(stmt, kind=SERIAL)
                return map_children(stmt, visit, only=Stmt)
            name = f"{func.name}.parallel{count}"
            count += 1
            return _outline(stmt, name, is_strided)
        return map_children(stmt, visit, only=Stmt)

    return func.with_body(visit(func.body))


def _outline(loop: For, name: str, is_strided: bool) -> Stmt:
    minimum = loop.minimum
    extent = loop.extent
    # Each task evaluates its share of the range, but memory may change meanwhile.
    lets: list[tuple[Var, Expr]] = []
    if not isinstance(minimum, IntImm | Var):
        var = Var(f"{loop.var.name}.minimum", minimum.dtype)
        lets.append((var, minimum))
        minimum = var
    if not isinstance(extent, IntImm | Var):
        var = Var(f"{loop.var.name}.extent", extent.dtype)
        lets.append((var, extent))
        extent = var
    make = _strided_region if is_strided else _region
    region = make(loop, name, minimum, extent)
    return with_lets(lets, region, loop.origin)


def _region(loop: For, name: str, minimum: Expr, extent: Expr) -> ParallelRegion:
    task = Var("task", I64)
    tasks = Var("tasks", I64)
    begin = Var("begin", I64)
    end = Var("end", I64)
    count = cast(I64, extent)
    dtype = loop.var.dtype
    first = cast(dtype, begin)
    chunk = with_fields(
        loop,
        minimum=first if as_int(minimum) == 0 else minimum + first,
        extent=cast(dtype, end - begin),
        kind=SERIAL,
        body=_make_serial(loop.body),
    )
    # The shares of two tasks differ by at most one iteration.
    first_own = FloorDiv(count * task, tasks)
    first_of_next = FloorDiv(count * (task + 1), tasks)
    lets: list[tuple[Var, Expr]] = [(begin, first_own), (end, first_of_next)]
    body = with_lets(lets, chunk, loop.origin)
    captures = _captures(body, {task, tasks})
    return ParallelRegion(name, captures, task, tasks, body, loop.origin)


def _strided_region(
    loop: For, name: str, minimum: Expr, extent: Expr
) -> ParallelRegion:
    """Return the region whose task takes each iteration that is `task` modulo the tasks."""
    task = Var("task", I64)
    tasks = Var("tasks", I64)
    turn = Var("turn", I64)
    place = cast(loop.var.dtype, task + turn * tasks)
    value = place if as_int(minimum) == 0 else minimum + place
    inner = LetStmt(loop.var, value, _make_serial(loop.body), loop.origin)
    turns = FloorDiv(cast(I64, extent) - task + tasks - 1, tasks)
    body = For(turn, IntImm(0, I64), turns, SERIAL, inner, loop.origin)
    captures = _captures(body, {task, tasks})
    return ParallelRegion(name, captures, task, tasks, body, loop.origin)


def _make_serial(stmt: Stmt) -> Stmt:
    if isinstance(stmt, Pragma) and stmt.key == STRIDE_PATTERN:
        return _make_serial(stmt.body)
    stmt = map_children(stmt, _make_serial, only=Stmt)
    if isinstance(stmt, For) and stmt.kind == PARALLEL:
        return with_fields(stmt, kind=SERIAL)
    return stmt


def _captures(body: Stmt, bound: set[Node]) -> tuple[Var | Buffer, ...]:
    """Return what `body` uses and does not bind. Each binding stands above its uses."""
    used: dict[Var | Buffer, None] = {}
    inside = set(bound)
    seen: set[int] = set()
    stack: list[Node] = [body]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, For | LetStmt | Let | Allocate):
            inside.update(bound_by(node))
        if isinstance(node, Var):
            used[node] = None
        if isinstance(node, Load | Store | AddressOf | Prefetch):
            used[node.buffer] = None
        parts = list[Node](children(node))
        if isinstance(node, Allocate | AddressOf):  # a callee is passed the shape
            parts = [*node.buffer.shape, *parts]
        stack.extend(reversed(parts))
    return tuple(item for item in used if item not in inside)
