"""Puts barriers between accesses of different threads to one element of memory.

Before::

    func product(A: f32[n, 64], B: f32[n, 64] out) {
      for bx in range(n) blockIdx.x {
        for tx in range(64) threadIdx.x {
          alloc S: f32[64] shared {
            for k in range(4) {
              S[tx] = A[bx, (tx + k) % 64]
              B[bx, tx] = B[bx, tx] + S[63 - tx]
            }
          }
        }
      }
    }

After::

    func product(A: f32[n, 64], B: f32[n, 64] out) {
      for bx in range(n) blockIdx.x {
        for tx in range(64) threadIdx.x {
          alloc S: f32[64] shared {
            for k in range(4) {
              barrier
              S[tx] = A[bx, (tx + k) % 64]
              barrier
              B[bx, tx] = B[bx, tx] + S[63 - tx]
            }
          }
        }
      }
    }

Two accesses of shared or global memory conflict if one of them is a write, and different threads of
a group may access the same element. See `analysis.thread_conflicts`. They need a barrier on each
path from one to the other, also on paths around loops. A barrier that other barriers make redundant
is left out. All threads of a group must reach a barrier. So a condition around a barrier is first
moved to the statements inside of it. If these change memory that the condition reads, the condition
is evaluated before them.

A kernel whose threads are independent, by the pragma of `launch_parallel_loops`, gets no barriers.

Requires: kernels in canonical form. Ensures: no conflict within a group is left without a
barrier. Conflicts between groups are ignored, as no barrier would help. Level: nested,
kept. It refuses (Unsupported) a loop that needs a barrier and whose range differs between
threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.arith import Facts, prove
from refcomp.foundation.errors import Unsupported
from refcomp.ir.buffer import LOCAL, WRITE, Buffer, BufferLoad
from refcomp.ir.expr import EQ, Expr, Not, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import INDEPENDENT_THREADS, is_bound, kernel_nest
from refcomp.ir.rewrite import map_children, same_items, walk, with_changes
from refcomp.ir.stmt import (
    BLOCK_TAGS,
    THREADS_IN_BLOCK_TAGS,
    Allocate,
    AtomicUpdate,
    Barrier,
    Block,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    Pragma,
    Stmt,
    block,
    line_of,
    place_of,
)
from refcomp.passes.analysis.scope_facts import facts_of
from refcomp.passes.analysis.spread_conditions import read_first, spread
from refcomp.passes.analysis.thread_conflicts import (
    Holds,
    Named,
    Ranged,
    Scope,
    ThreadAccess,
    ThreadConflicts,
    in_earlier_iteration,
    narrowed,
    reads_in,
)


def insert_barriers(func: PrimFunc) -> PrimFunc:
    """Return `func` with the barriers that its kernels need."""
    return func.with_body(_visit_host(func.body, facts_of(func)))


def _visit_host(stmt: Stmt, facts: Facts) -> Stmt:
    """Return `stmt`, which is not in a kernel, with barriers in its kernels."""
    if not isinstance(stmt, For):
        return map_children(stmt, lambda child: _visit_host(child, facts), only=Stmt)
    if is_bound(stmt):
        return _visit_kernel(stmt, facts)
    inner = facts.bind(stmt.var, stmt.minimum, stmt.extent)
    return with_changes(stmt, body=_visit_host(stmt.body, inner))


def _is_independent(body: Stmt) -> bool:
    return isinstance(body, Pragma) and body.key == INDEPENDENT_THREADS


def _visit_kernel(loop: For, facts: Facts) -> Stmt:
    nest = kernel_nest(loop)
    threads = [loop for loop in nest.loops if loop.kind in THREADS_IN_BLOCK_TAGS]
    if not threads or _is_independent(nest.body):
        return loop
    groups = [loop for loop in nest.loops if loop.kind in BLOCK_TAGS]
    for group in groups:
        facts = facts.bind(group.var, group.minimum, group.extent)
    # Threads conflict only in memory that they share and that one of them writes.
    watched: set[Buffer] = set()
    for item in walk(nest.body):
        if isinstance(item, BufferStore | AtomicUpdate) and item.buffer.scope != LOCAL:
            watched.add(item.buffer)
    conflicts = ThreadConflicts(threads, facts)
    placement = _BarrierPlacement(conflicts, threads, frozenset(watched))
    body = placement.place(nest.body, frozenset(group.var for group in groups))
    for bound in reversed(nest.loops):
        body = with_changes(bound, body=body)
    return body


@dataclass(frozen=True, slots=True)
class _Reach:
    """The accesses of a statement that may conflict with others before and after it."""

    # Accesses that may come before its first barrier.
    entering: tuple[ThreadAccess, ...] = ()
    # Accesses that may come after its last barrier.
    leaving: tuple[ThreadAccess, ...] = ()
    # Some path through the statement has no barrier.
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class _Part:
    """A statement of a sequence."""

    # None for expressions that are evaluated before the first statement.
    stmt: Stmt | None
    reach: _Reach
    # True for a barrier that this pass added.
    is_added: bool = False


# The reach of a barrier, which separates all accesses before it from all after it.
_CLOSED = _Reach(entering=(), leaving=(), is_open=False)


def _barriers_in(stmt: Stmt) -> int:
    return sum(isinstance(node, Barrier) for node in walk(stmt))


def _joined(parts: Sequence[_Part]) -> _Reach:
    """Return the reach of a sequence."""
    entering: tuple[ThreadAccess, ...] = ()
    leaving: tuple[ThreadAccess, ...] = ()
    is_open = True
    for part in parts:
        reach = part.reach
        if is_open:
            entering += reach.entering
        if not reach.is_open:
            leaving = ()
        leaving += reach.leaving
        is_open = is_open and reach.is_open
    return _Reach(entering, leaving, is_open)


class _BarrierPlacement:
    """Places the barriers of one kernel.

    In its methods, `scope` has the loops, lets and conditions around a statement. `together` has
    the variables of loops around it. All threads of a group run the same iteration of such a loop.
    """

    def __init__(
        self,
        conflicts: ThreadConflicts,
        threads: Sequence[For],
        watched: frozenset[Buffer],
    ) -> None:
        self._conflicts = conflicts
        self._watched = watched
        # Variables whose values may differ between threads.
        self._divergent = {loop.var for loop in threads}

    def place(self, body: Stmt, groups: frozenset[Var]) -> Stmt:
        """Return the body of a kernel with its barriers."""
        return self._visit(body, (), groups)[0]

    def _visit(
        self, stmt: Stmt, scope: Scope, together: frozenset[Var]
    ) -> tuple[Stmt, _Reach]:
        match stmt:
            case Barrier():
                return stmt, _CLOSED
            case LetStmt() if not self._is_transparent(stmt):
                value = _Part(None, self._reads((stmt.value,), scope))
                inner = self._parts(stmt.body, self._named(stmt, scope), together)
                parts = self._separated([value, *inner], together)
                body = self._rebuilt(stmt.body, parts)
                return with_changes(stmt, body=body), _joined(parts)
            case Block() | LetStmt() | Allocate() | Pragma():
                parts = self._parts(stmt, scope, together)
                return self._rebuilt(stmt, parts), _joined(parts)
            case For():
                return self._loop(stmt, scope, together)
            case IfThenElse():
                return self._branch(stmt, scope, together)
            case BufferStore() | AtomicUpdate():
                return self._access(stmt, scope, together)
        return stmt, _Reach()

    # Sequences.

    def _parts(self, stmt: Stmt, scope: Scope, together: frozenset[Var]) -> list[_Part]:
        """Return the statements in `stmt`, in sequence, and the barriers between them."""
        if isinstance(stmt, Allocate | Pragma):
            return self._parts(stmt.body, scope, together)
        if isinstance(stmt, LetStmt) and self._is_transparent(stmt):
            return self._parts(stmt.body, self._named(stmt, scope), together)
        stmts = stmt.stmts if isinstance(stmt, Block) else (stmt,)
        visited: list[_Part] = []
        for item in stmts:
            changed, reach = self._visit(item, scope, together)
            visited.append(_Part(changed, reach))
        return self._separated(visited, together)

    def _is_transparent(self, stmt: Stmt) -> bool:
        """Return True if the statements inside may join the sequence around `stmt`.

        Then a barrier before its first statement is as good as one before itself.
        """
        if isinstance(stmt, LetStmt):
            return not self._reads((stmt.value,), ()).leaving
        return isinstance(stmt, Allocate | Pragma)

    def _rebuilt(self, stmt: Stmt, parts: Sequence[_Part]) -> Stmt:
        """Return `stmt` with the statements of `parts`, which `_parts` returned."""
        if isinstance(stmt, Allocate | LetStmt | Pragma) and self._is_transparent(stmt):
            return with_changes(stmt, body=self._rebuilt(stmt.body, parts))
        stmts = [part.stmt for part in parts if part.stmt is not None]
        old = stmt.stmts if isinstance(stmt, Block) else (stmt,)
        return stmt if same_items(stmts, old) else block(stmts, stmt.origin)

    def _named(self, stmt: LetStmt, scope: Scope) -> Scope:
        if self._may_differ(stmt.value):
            self._divergent.add(stmt.var)
        return (*scope, Named(stmt.var, stmt.value))

    def _separated(
        self,
        parts: Sequence[_Part],
        together: frozenset[Var],
        before: tuple[ThreadAccess, ...] = (),
    ) -> list[_Part]:
        """Return `parts` with barriers between those that conflict.

        Each barrier stands as late as possible, since a late barrier separates more accesses.
        `before` has the accesses before the first part.
        """
        placed: list[_Part] = []
        for part in parts:
            reach = part.reach
            if part.stmt and self._any_conflict(before, reach.entering, together):
                barrier = Barrier(part.stmt.origin)
                placed.append(_Part(barrier, _CLOSED, is_added=True))
                before = ()
            placed.append(part)
            if not reach.is_open:
                before = ()
            before += reach.leaving
        return placed

    def _any_conflict(
        self,
        before: Sequence[ThreadAccess],
        after: Sequence[ThreadAccess],
        together: frozenset[Var],
    ) -> bool:
        return any(
            self._conflicts.between(p, q, together) for p in before for q in after
        )

    # Loops.

    def _loop(
        self, loop: For, scope: Scope, together: frozenset[Var]
    ) -> tuple[Stmt, _Reach]:
        entry = Ranged(loop.var, loop.minimum, loop.extent)
        is_even = not self._may_differ(loop.minimum, loop.extent)
        if not is_even:
            self._divergent.add(loop.var)
        inside = together | {loop.var}
        bounds = _Part(None, self._reads((loop.minimum, loop.extent), scope))
        parts = self._parts(loop.body, (*scope, entry), inside)
        # Without `bounds`: the range is read once, not in each iteration.
        parts = self._separated([bounds, *parts], inside)[1:]
        parts = self._around_back_edge(parts, entry, inside)
        result = with_changes(loop, body=self._rebuilt(loop.body, parts))
        # Also a barrier that an inner loop needs, even if its own range is the same.
        if not is_even and _barriers_in(result) > _barriers_in(loop):
            raise Unsupported(
                f"the loop {loop.var.name} needs a barrier, "
                "but threads run it a different number of times",
                where=place_of(loop.origin),
                at=line_of(loop.origin),
                why="all threads of a group must reach each barrier",
                remedy="give the loop the same range in all threads, "
                "and put its body under a condition",
            )
        iterations = _Part(result, self._run(parts, entry, scope))
        return result, _joined([bounds, iterations])

    def _around_back_edge(
        self, parts: list[_Part], entry: Ranged, together: frozenset[Var]
    ) -> list[_Part]:
        """Return the parts of a loop's body, also separated from earlier iterations."""
        parts = self._separated(parts, together, self._earlier(parts, entry))
        # The barriers of the back edge may make others redundant.
        for barrier in [part for part in parts if part.is_added]:
            without = [part for part in parts if part is not barrier]
            again = self._separated(without, together, self._earlier(without, entry))
            if len(again) == len(without):
                parts = without
        return parts

    def _earlier(
        self, parts: Sequence[_Part], entry: Ranged
    ) -> tuple[ThreadAccess, ...]:
        # A barrier in each iteration separates all iterations but the previous one.
        is_previous = any(not part.reach.is_open for part in parts)
        return in_earlier_iteration(_joined(parts).leaving, entry, is_previous)

    def _run(self, parts: Sequence[_Part], entry: Ranged, scope: Scope) -> _Reach:
        """Return the reach of all iterations.

        If each iteration has a barrier, only accesses of the first and of the last iteration can
        conflict with statements outside.
        """
        reach = _joined(parts)
        if reach.is_open:
            return reach
        is_first = EQ(entry.var, entry.minimum)
        is_last = EQ(entry.var, entry.minimum + entry.extent - 1)
        facts = self._conflicts.facts(scope)
        return _Reach(
            entering=narrowed(reach.entering, is_first),
            leaving=narrowed(reach.leaving, is_last),
            is_open=not prove(entry.extent > 0, facts),
        )

    # Conditions.

    def _branch(
        self, stmt: IfThenElse, scope: Scope, together: frozenset[Var]
    ) -> tuple[Stmt, _Reach]:
        reads = _Part(None, self._reads((stmt.condition,), scope))
        cases = [(stmt.condition, stmt.then_case)]
        if stmt.else_case is not None:
            cases.append((Not(stmt.condition), stmt.else_case))
        stmts: list[Stmt] = []
        reaches: list[_Reach] = []
        for condition, case in cases:
            parts = self._parts(case, (*scope, Holds(condition)), together)
            parts = self._separated([reads, *parts], together)
            stmts.append(self._rebuilt(case, parts))
            reaches.append(_joined(parts[1:]))
        result = with_changes(stmt, then_case=stmts[0])
        if stmt.else_case is not None:
            result = with_changes(result, else_case=stmts[1])
        if result is not stmt:
            # A barrier was added, but it must not stand in a branch that only some threads take.
            return self._visit(spread(result), scope, together)
        if stmt.else_case is None:
            reaches.append(_Reach())
        either = _Reach(
            entering=tuple(a for reach in reaches for a in reach.entering),
            leaving=tuple(a for reach in reaches for a in reach.leaving),
            is_open=any(reach.is_open for reach in reaches),
        )
        return stmt, _joined([reads, _Part(stmt, either)])

    # Accesses.

    def _access(
        self, stmt: BufferStore | AtomicUpdate, scope: Scope, together: frozenset[Var]
    ) -> tuple[Stmt, _Reach]:
        reads = self._reads((*stmt.indices, stmt.value), scope)
        if stmt.buffer not in self._watched:
            return stmt, reads
        effect = WRITE if isinstance(stmt, BufferStore) else stmt.operator
        write = ThreadAccess(stmt.buffer, stmt.indices, effect, scope)
        if self._any_conflict(reads.leaving, [write], together):
            # The reads become a let, so that a barrier can stand before the write.
            return self._visit(read_first(stmt), scope, together)
        accesses = (*reads.leaving, write)
        return stmt, _Reach(accesses, accesses)

    def _reads(self, exprs: Sequence[Expr], scope: Scope) -> _Reach:
        reads = tuple(
            access
            for expr in exprs
            for access in reads_in(expr, scope)
            if access.buffer in self._watched
        )
        return _Reach(reads, reads)

    def _may_differ(self, *exprs: Expr) -> bool:
        """Return True if threads of a group may see different values.

        A read of memory counts as different, since the memory may change between two reads.
        """
        return any(
            isinstance(item, BufferLoad) or item in self._divergent
            for expr in exprs
            for item in walk(expr)
        )
