"""Kernels within a function: where they are, their loops, and the rules that they keep.

A kernel is an outermost bound loop with all that is in it (Note [Kernels] of `refcomp.ir.stmt`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from refcomp.ir.buffer import BufferLoad, Load
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IfThenElseExpr, IntImm, Let, Var
from refcomp.ir.gpu_intrinsics import is_of_a_wave
from refcomp.ir.intrinsics import is_subgroup_call
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, variables_in, walk
from refcomp.ir.stmt import (
    BLOCK_TAGS,
    CALLS,
    THREAD_TAGS,
    THREADS_IN_BLOCK_TAGS,
    Allocate,
    Barrier,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
)

# From the outermost loop to the innermost one.
NEST_ORDER = (*reversed(BLOCK_TAGS), *reversed(THREADS_IN_BLOCK_TAGS))


@dataclass(frozen=True, slots=True, eq=False)
class KernelNest:
    """The bound loops of a kernel, outermost first, and the program of one thread."""

    loops: tuple[For, ...]
    body: Stmt

    def loop(self, tag: str) -> For | None:
        """The loop of that tag, if there is one."""
        return next((loop for loop in self.loops if loop.kind == tag), None)

    def extents(self, tags: tuple[str, ...]) -> tuple[Expr, ...]:
        """The extents of the loops of `tags`, 1 for those that are not there."""
        loops = [self.loop(tag) for tag in tags]
        dtype = self.loops[0].var.dtype
        return tuple(
            IntImm(1, dtype) if loop is None else loop.extent for loop in loops
        )

    @property
    def grid(self) -> tuple[Expr, ...]:
        """How many groups there are in x, y and z."""
        return self.extents(BLOCK_TAGS)

    @property
    def block(self) -> tuple[Expr, ...]:
        """How many threads a group has in x, y and z."""
        return self.extents(THREADS_IN_BLOCK_TAGS)


def is_bound(stmt: Node) -> bool:
    """Whether `stmt` is a loop whose iterations are threads, or groups of them."""
    return isinstance(stmt, For) and stmt.kind in THREAD_TAGS


def kernel_nest(loop: For) -> KernelNest:
    """The nest that begins with the bound loop `loop`."""
    loops, body = [loop], loop.body
    while isinstance(body, For) and is_bound(body):
        loops.append(body)
        body = body.body
    return KernelNest(tuple(loops), body)


def asks_others(expr: object) -> bool:
    """Whether threads compute `expr` together: all of a group have to come to it."""
    return is_subgroup_call(expr) or is_of_a_wave(expr)


def kernels_in(root: Stmt) -> Iterator[For]:
    """The outermost bound loops below `root`, in order."""
    stack: list[Node] = [root]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, For) and is_bound(stmt):
            yield stmt
        else:
            stack.extend(
                child
                for child in reversed([*children(stmt)])
                if isinstance(child, Stmt)
            )


def kernel_fault(root: Stmt) -> tuple[str, Stmt] | None:
    """The first rule of kernels that is broken below `root`, and the guilty statement."""
    starts = list(kernels_in(root))
    for stmt in _statements(root, frozenset(map(id, starts))):
        if isinstance(stmt, Barrier):
            return "a Barrier lies outside a kernel", stmt
        if isinstance(stmt, Allocate) and stmt.buffer.scope == "shared":
            return f"{stmt.buffer.name} is shared, but allocated outside a kernel", stmt
    for start in starts:
        nest = kernel_nest(start)
        fault = _nest_fault(nest) or _body_fault(nest)
        if fault is not None:
            return fault
    return None


def _statements(root: Stmt, without: frozenset[int] = frozenset()) -> Iterator[Stmt]:
    """The statements below `root`, but not those within the ones of these ids."""
    stack: list[Node] = [root]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, Stmt) and id(stmt) not in without:
            yield stmt
            stack.extend(
                child
                for child in reversed([*children(stmt)])
                if isinstance(child, Stmt)
            )


def _nest_fault(nest: KernelNest) -> tuple[str, Stmt] | None:
    tags = [loop.kind for loop in nest.loops]
    positions = [NEST_ORDER.index(tag) for tag in tags]
    bound = {loop.var for loop in nest.loops}
    for k, loop in enumerate(nest.loops):
        if k and positions[k] <= positions[k - 1]:
            return f"a loop of {tags[k]} lies within one of {tags[k - 1]}", loop
        if as_int(loop.minimum) != 0:
            return f"the loop of {loop.kind} does not begin at 0", loop
        if bound.intersection(variables_in(loop.extent)):
            return f"the extent of {loop.kind} depends on another bound loop", loop
    return None


def _body_fault(nest: KernelNest) -> tuple[str, Stmt] | None:
    divergent: set[Var] = {v.var for v in nest.loops if v.kind in THREADS_IN_BLOCK_TAGS}
    stack: list[tuple[Node, bool]] = [(nest.body, True)]
    while stack:
        stmt, is_uniform = stack.pop()
        if not isinstance(stmt, Stmt):
            continue
        if is_bound(stmt):
            return "a bound loop lies deeper in a kernel, not at its top", stmt
        if isinstance(stmt, Allocate) and stmt.buffer.scope == "global":
            return f"{stmt.buffer.name} is global, but allocated within a kernel", stmt
        if isinstance(stmt, CALLS):
            return f"the host's function {stmt.name} is called within a kernel", stmt
        if isinstance(stmt, Barrier) and not is_uniform:
            return "a Barrier that some threads of a group may not reach", stmt
        if any(_asks_too_few(child, is_uniform) for child in children(stmt)):
            return "a subgroup's call that some threads of a group may not reach", stmt
        diverges = _diverges(stmt, divergent)
        if diverges and isinstance(stmt, LetStmt | For):
            divergent.add(stmt.var)
        # A let only names a value; a loop or a branch decides who comes here.
        inner = is_uniform and (isinstance(stmt, LetStmt) or not diverges)
        stack.extend((child, inner) for child in reversed([*children(stmt)]))
    return None


def varying_variables(nest: KernelNest) -> set[Var]:
    """The variables whose values may differ between the threads of a group."""
    varying: set[Var] = {
        loop.var for loop in nest.loops if loop.kind in THREADS_IN_BLOCK_TAGS
    }
    for stmt in _statements(nest.body):
        if isinstance(stmt, LetStmt | For) and _diverges(stmt, varying):
            varying.add(stmt.var)
    return varying


def may_vary(expr: Expr, varying: set[Var]) -> bool:
    """Whether `expr` may have other values in other threads of a group; `varying` are the variables
    that may, those of lets within it included."""
    return _may_differ(expr, varying) or any(
        isinstance(item, Let) for item in walk(expr)
    )


def _asks_too_few(node: Node, is_uniform: bool) -> bool:
    """Whether an expression asks other threads for their values where they may not be."""
    if isinstance(node, Stmt):
        return False
    branches = (
        [node]
        if not is_uniform
        else [
            branch
            for item in walk(node)
            if isinstance(item, IfThenElseExpr)
            for branch in (item.true_value, item.false_value)
        ]
    )
    return any(asks_others(item) for branch in branches for item in walk(branch))


def _diverges(stmt: Stmt, divergent: set[Var]) -> bool:
    """Whether the condition, the range or the value of `stmt` may differ between threads."""
    match stmt:
        case IfThenElse():
            deciding: tuple[Expr, ...] = (stmt.condition,)
        case For():
            deciding = (stmt.minimum, stmt.extent)
        case LetStmt():
            deciding = (stmt.value,)
        case _:
            return False
    return any(_may_differ(expr, divergent) for expr in deciding)


def _may_differ(expr: Expr, divergent: set[Var]) -> bool:
    for item in walk(expr):
        if isinstance(item, Var) and item in divergent:
            return True
        if isinstance(item, BufferLoad | Load) and item.buffer.scope == "local":
            return True
    return False
