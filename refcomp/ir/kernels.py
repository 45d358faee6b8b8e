"""Kernels in a function: finding them, their loops, and the rules that they must keep.

A kernel is an outermost bound loop with its body (Note [Kernels] of `refcomp.ir.stmt`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from refcomp.ir.buffer import GLOBAL, LOCAL, SHARED, BufferLoad, Load
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IfThenElseExpr, IntImm, Let, Var
from refcomp.ir.gpu_intrinsics import is_of_a_wave
from refcomp.ir.intrinsics import is_subgroup_call
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    child_expressions,
    child_statements,
    statements_in,
    variables_in,
    walk,
)
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
    LoopKind,
    Stmt,
)

# From the outermost loop to the innermost one.
NEST_ORDER = (*reversed(BLOCK_TAGS), *reversed(THREADS_IN_BLOCK_TAGS))
# The key of a pragma around the body of a kernel whose threads never read what others write.
INDEPENDENT_THREADS = "independent_threads"


@dataclass(frozen=True, slots=True, eq=False)
class KernelNest:
    """The loops of a kernel, and the program of one thread."""

    loops: tuple[For, ...]  # bound, outermost first
    body: Stmt

    def loop(self, tag: LoopKind) -> For | None:
        """Return the loop of a thread tag; None if there is none."""
        return next((loop for loop in self.loops if loop.kind == tag), None)

    def extents(self, tags: tuple[LoopKind, ...]) -> tuple[Expr, ...]:
        """Return the extents of the loops of `tags`, 1 for those that do not exist."""
        one = IntImm(1, self.loops[0].var.dtype)
        loops = [self.loop(tag) for tag in tags]
        return tuple(one if loop is None else loop.extent for loop in loops)

    @property
    def grid(self) -> tuple[Expr, ...]:
        """Return the number of groups in x, y and z."""
        return self.extents(BLOCK_TAGS)

    @property
    def block(self) -> tuple[Expr, ...]:
        """Return the number of threads of a group in x, y and z."""
        return self.extents(THREADS_IN_BLOCK_TAGS)


def is_bound(stmt: Node) -> bool:
    """Return True for a loop whose iterations are threads or groups of threads."""
    return isinstance(stmt, For) and stmt.kind in THREAD_TAGS


def kernel_nest(loop: For) -> KernelNest:
    """Return the nest whose outermost loop is `loop`, a bound loop."""
    loops = [loop]
    body = loop.body
    while isinstance(body, For) and is_bound(body):
        loops.append(body)
        body = body.body
    return KernelNest(tuple(loops), body)


def is_collective(expr: object) -> bool:
    """Return True for a call that exchanges values between threads, which must all reach it."""
    return is_subgroup_call(expr) or is_of_a_wave(expr)


def kernels_in(root: Stmt) -> Iterator[For]:
    """Yield the outermost bound loops below `root`, in order."""
    stack = [root]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, For) and is_bound(stmt):
            yield stmt
        else:
            stack += child_statements(stmt)[::-1]


def kernel_fault(root: Stmt) -> tuple[str, Stmt] | None:
    """Return the first rule of kernels that is broken below `root`, and the wrong statement.

    Return None if all rules are kept (Note [Kernels] of `refcomp.ir.stmt`).
    """
    starts = list(kernels_in(root))
    for stmt in statements_in(root, without=frozenset(starts)):
        if isinstance(stmt, Barrier):
            return "a Barrier lies outside a kernel", stmt
        if isinstance(stmt, Allocate) and stmt.buffer.scope == SHARED:
            return f"{stmt.buffer.name} is shared, but allocated outside a kernel", stmt
    for start in starts:
        nest = kernel_nest(start)
        fault = _nest_fault(nest) or _body_fault(nest)
        if fault is not None:
            return fault
    return None


def _nest_fault(nest: KernelNest) -> tuple[str, Stmt] | None:
    bound = {loop.var for loop in nest.loops}
    for outer, loop in itertools.pairwise(nest.loops):
        if NEST_ORDER.index(loop.kind) <= NEST_ORDER.index(outer.kind):
            return f"a loop of {loop.kind} lies within one of {outer.kind}", loop
    for loop in nest.loops:
        if as_int(loop.minimum) != 0:
            return f"the loop of {loop.kind} does not begin at 0", loop
        if bound.intersection(variables_in(loop.extent)):
            return f"the extent of {loop.kind} depends on another bound loop", loop
    return None


def _body_fault(nest: KernelNest) -> tuple[str, Stmt] | None:
    varying = _thread_variables(nest)
    # (statement, True if all threads of a group execute it together)
    stack: list[tuple[Stmt, bool]] = [(nest.body, True)]
    while stack:
        stmt, is_uniform = stack.pop()
        if is_bound(stmt):
            return "a bound loop lies deeper in a kernel, not at its top", stmt
        if isinstance(stmt, Allocate) and stmt.buffer.scope == GLOBAL:
            return f"{stmt.buffer.name} is global, but allocated within a kernel", stmt
        if isinstance(stmt, CALLS):
            return f"the host's function {stmt.name} is called within a kernel", stmt
        if isinstance(stmt, Barrier) and not is_uniform:
            return "a Barrier that some threads of a group may not reach", stmt
        exprs = child_expressions(stmt)
        if any(_is_collective_apart(expr, is_uniform) for expr in exprs):
            return "a subgroup's call that some threads of a group may not reach", stmt
        is_varying = _varies(stmt, varying)
        if is_varying and isinstance(stmt, LetStmt | For):
            varying.add(stmt.var)
        # A let runs its body in all threads. A loop or a branch may run it in some only.
        inner = is_uniform and (isinstance(stmt, LetStmt) or not is_varying)
        stack.extend((child, inner) for child in reversed(child_statements(stmt)))
    return None


def varying_variables(nest: KernelNest) -> set[Var]:
    """Return the variables whose values may differ between the threads of a group."""
    varying = _thread_variables(nest)
    for stmt in statements_in(nest.body):
        if isinstance(stmt, LetStmt | For) and _varies(stmt, varying):
            varying.add(stmt.var)
    return varying


def _thread_variables(nest: KernelNest) -> set[Var]:
    return {loop.var for loop in nest.loops if loop.kind in THREADS_IN_BLOCK_TAGS}


def may_vary(expr: Expr, varying: set[Var]) -> bool:
    """Return True if `expr` may have different values in the threads of a group.

    The values of `varying` may differ. The result is True for any expression with a Let.
    """
    has_let = any(isinstance(item, Let) for item in walk(expr))
    return has_let or _may_differ(expr, varying)


def _is_collective_apart(expr: Expr, is_uniform: bool) -> bool:
    """Return True if `expr` has a collective call that some threads may not reach."""
    parts: list[Expr] = []
    if not is_uniform:
        parts.append(expr)
    else:
        # Only a branch can keep threads away; the condition may differ between them.
        for item in walk(expr):
            if isinstance(item, IfThenElseExpr):
                parts += [item.true_value, item.false_value]
    return any(is_collective(item) for part in parts for item in walk(part))


def _varies(stmt: Stmt, varying: set[Var]) -> bool:
    """Return True if the condition, range or value of `stmt` may differ between threads."""
    exprs: tuple[Expr, ...] = ()
    match stmt:
        case IfThenElse():
            exprs = (stmt.condition,)
        case For():
            exprs = (stmt.minimum, stmt.extent)
        case LetStmt():
            exprs = (stmt.value,)
    return any(_may_differ(expr, varying) for expr in exprs)


def _may_differ(expr: Expr, varying: set[Var]) -> bool:
    for item in walk(expr):
        if isinstance(item, Var) and item in varying:
            return True
        # Each thread has its own local memory. Other memory holds one value for all of them.
        if isinstance(item, BufferLoad | Load) and item.buffer.scope == LOCAL:
            return True
    return False
