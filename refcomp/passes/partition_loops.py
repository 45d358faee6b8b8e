"""Divides loops by their guards, so that whole tiles are computed without guards.

Before::

    func scale(A: f32[n], B: f32[n] out) {
      for i in range((n + 31) // 32) {
        for j in range(32) vectorized {
          if (i * 32 + j < n) {
            B[i * 32 + j] = A[i * 32 + j] * 2.0f32
          }
        }
      }
    }

After::

    func scale(A: f32[n], B: f32[n] out) {
      for i in range(n // 32) {
        for j in range(32) vectorized {
          B[i * 32 + j] = A[i * 32 + j] * 2.0f32
        }
      }
      for i in range(n // 32, extent=(n + 31) // 32 - n // 32) {
        for j in range(32) vectorized {
          if (i * 32 + j < n) {
            B[i * 32 + j] = A[i * 32 + j] * 2.0f32
          }
        }
      }
    }

A guard is a conjunct of a condition that is linear in the loop's variable (see
`loop_guards`). In the main part of the loop, all guards hold, and are removed. Loops over
the rest stand before and behind the main part, and keep the guards. If a guard is the
whole body, and holds exactly in the main part, the rest is empty: the loop only becomes
shorter.

A parallel loop is not divided, as its threads would wait for each other twice. Instead, a
branch around its body chooses. Vectorized loops get masks later, and unrolled loops
decide in each copy.

Outer loops are divided first, then the loops within each part. So the nest of a whole
tile has no guards at all. Three limits bound the growth of the code:

- A statement stands at most `MAX_COPIES` times.
- A function gains at most `MAX_NODES` nodes, with unrolled loops written out.
- A guard stays if it holds in less than half of a constant number of iterations.

Requires: nothing before it. Ensures: the order and number of all operations; each copy
binds names of its own. Level: nested, kept. Loops in a kernel, or around one, are not
changed: threads of one group would run different loops. It refuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from refcomp.arith import Facts, prove, simplify
from refcomp.ir.constants import as_int
from refcomp.ir.expr import (
    GE,
    LE,
    LT,
    Add,
    And,
    Expr,
    IfThenElseExpr,
    IntImm,
    Max,
    Min,
    Not,
    Sub,
    Var,
)
from refcomp.ir.fresh_names import with_fresh_names
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    Rewrite,
    buffers_in,
    child_statements,
    children,
    map_children,
    memoised,
    rewriter,
    with_fields,
)
from refcomp.ir.stmt import (
    PARALLEL,
    SERIAL,
    THREAD_TAGS,
    UNROLLED,
    VECTORIZED,
    For,
    IfThenElse,
    LaunchKernel,
    LetStmt,
    Stmt,
    block,
)
from refcomp.passes.analysis.contents import holds
from refcomp.passes.analysis.loop_guards import (
    Guard,
    conjuncts,
    guards_of,
    holds_choice,
)
from refcomp.passes.analysis.scope_facts import facts_of

MAX_COPIES = 16
MAX_NODES = 20_000


@dataclass(frozen=True, slots=True)
class _Cut:
    """A division of a loop."""

    # The main part is [begin, end), without `guards`.
    begin: Expr
    end: Expr
    guards: Sequence[Guard]
    # The parts before and behind it are not empty.
    has_before: bool
    has_behind: bool

    @property
    def num_bodies(self) -> int:
        return 1 + self.has_before + self.has_behind


def partition_loops(func: PrimFunc) -> PrimFunc:
    """Return `func` with loops divided by their guards."""
    if not holds(func, IfThenElse, IfThenElseExpr):
        return func
    partition = _Partition()
    return func.with_body(partition.stmt(func.body, facts_of(func), MAX_COPIES))


class _Partition:
    """Divides loops, outer ones first.

    In its methods, `copies` is the number of copies that a statement may still get.
    """

    def __init__(self) -> None:
        # The nodes that all copies may still add to the function.
        self._budget = MAX_NODES
        self._weight = memoised(_weight)
        self._holds_choice = memoised(holds_choice)
        self._holds_kernel = memoised(_holds_kernel)

    def stmt(self, stmt: Stmt, facts: Facts, copies: int) -> Stmt:
        """Return `stmt` with its loops divided, where `facts` hold around it."""
        if not self._holds_choice(stmt):
            return stmt
        if isinstance(stmt, For):
            return self._for(stmt, facts, copies)
        if isinstance(stmt, LetStmt):
            facts = facts.let(stmt.var, stmt.value)
        return self._inside(stmt, facts, copies)

    def _inside(self, stmt: Stmt, facts: Facts, copies: int) -> Stmt:
        def visit(child: Stmt) -> Stmt:
            known = facts
            if isinstance(stmt, IfThenElse):
                is_then = child is stmt.then_case
                holds = stmt.condition if is_then else Not(stmt.condition)
                known = facts.assume(holds)
            return self.stmt(child, known, copies)

        return map_children(stmt, visit, only=Stmt)

    def _for(self, loop: For, facts: Facts, copies: int) -> Stmt:
        # Inside a vectorized loop, bounds of loops must be the same for all lanes.
        if loop.kind in (*THREAD_TAGS, VECTORIZED):
            return loop
        cut = self._cut(loop, facts, copies)
        if cut is None:
            inner = facts.bind(loop.var, loop.minimum, loop.extent)
            return self._inside(loop, inner, copies)
        self._budget -= (cut.num_bodies - 1) * self._weight(loop.body)
        inner_copies = copies // cut.num_bodies
        # Several parallel loops would each wait for the slowest thread.
        if loop.kind == PARALLEL and cut.num_bodies > 1:
            return self._branch(loop, cut, facts, inner_copies)
        return self._divide(loop, cut, facts, inner_copies)

    # Where a loop is cut.

    def _cut(self, loop: For, facts: Facts, copies: int) -> _Cut | None:
        if loop.kind not in (SERIAL, PARALLEL) or copies < 2:
            return None
        # The ends of the parts repeat the bounds. What these read may change meanwhile.
        if buffers_in(loop.minimum) or buffers_in(loop.extent):
            return None
        if self._holds_kernel(loop.body):
            return None
        found = guards_of(loop, facts, self._holds_choice)
        guards = [guard for guard in found if _is_worth_it(guard, loop)]
        if not guards:
            return None
        cut = _cut_by(loop, guards, facts)
        growth = (cut.num_bodies - 1) * self._weight(loop.body)
        if cut.num_bodies > copies or growth > self._budget:
            return None
        if _is_empty(cut.begin, cut.end, facts):
            return None
        return cut

    # How a loop is divided.

    def _divide(self, loop: For, cut: _Cut, facts: Facts, copies: int) -> Stmt:
        main = with_fields(loop, body=_without(loop.body, cut.guards))
        parts = [self._part(main, cut.begin, cut.end, facts, copies)]
        if cut.has_before:
            before = self._rest(loop, loop.minimum, cut.begin, facts, copies)
            parts.insert(0, before)
        if cut.has_behind:
            stop = simplify(Add(loop.minimum, loop.extent), facts)
            behind = self._rest(loop, cut.end, stop, facts, copies)
            parts.append(behind)
        return block(parts, loop.origin)

    def _rest(
        self, loop: For, begin: Expr, end: Expr, facts: Facts, copies: int
    ) -> Stmt:
        var = Var(loop.var.name, loop.var.dtype)
        body = with_fresh_names(loop.body, {loop.var: var})
        rest = with_fields(loop, var=var, body=body)
        return self._part(rest, begin, end, facts, copies)

    def _part(
        self, loop: For, begin: Expr, end: Expr, facts: Facts, copies: int
    ) -> Stmt:
        """Return `loop` over [begin, end), with its inner loops divided."""
        extent = simplify(Sub(end, begin), facts)
        inside = facts.bind(loop.var, begin, extent)
        body = self.stmt(loop.body, inside, copies)
        return with_fields(loop, minimum=begin, extent=extent, body=body)

    def _branch(self, loop: For, cut: _Cut, facts: Facts, copies: int) -> Stmt:
        """Return `loop` with a branch between the main part and the rest in its body."""
        known = facts.bind(loop.var, loop.minimum, loop.extent)
        tests: list[Expr] = []
        if cut.has_before:
            tests.append(GE(loop.var, cut.begin))
        if cut.has_behind:
            tests.append(LT(loop.var, cut.end))
        is_main = reduce(And, tests)
        main = _without(loop.body, cut.guards)
        main = self.stmt(main, known.assume(is_main), copies)
        stop = Add(loop.minimum, loop.extent)
        names: dict[Var, Expr] = {}
        # If the rest is one iteration, the value of the variable is known in it.
        is_single = LE(Sub(stop, cut.end), IntImm(1, stop.dtype))
        if not cut.has_before and prove(is_single, facts):
            names[loop.var] = cut.end
        rest = with_fresh_names(loop.body, names)
        rest = self.stmt(rest, known.assume(Not(is_main)), copies)
        body = IfThenElse(is_main, main, rest, loop.origin)
        return with_fields(loop, body=body)


def _cut_by(loop: For, guards: Sequence[Guard], facts: Facts) -> _Cut:
    """Return the largest part of the loop in which all guards hold."""
    stop: Expr = Add(loop.minimum, loop.extent)
    begin = loop.minimum
    end = stop
    lows: list[Guard] = []
    highs: list[Guard] = []
    for guard in guards:
        if guard.range.low is not None:
            lows.append(guard)
            begin = Max(begin, Min(stop, guard.range.low))
        if guard.range.high is not None:
            highs.append(guard)
            end = Min(end, guard.range.high)
    begin = simplify(begin, facts)
    stop = simplify(stop, facts)
    end = simplify(Max(begin, end), facts) if highs else stop
    has_before = bool(lows) and not _is_only_under(loop.body, lows)
    has_behind = bool(highs) and not _is_only_under(loop.body, highs)
    if has_before and _is_empty(loop.minimum, begin, facts):
        has_before = False
    if has_behind and _is_empty(end, stop, facts):
        has_behind = False
    return _Cut(begin, end, guards, has_before, has_behind)


def _is_worth_it(guard: Guard, loop: For) -> bool:
    """Return True unless the guard is known to hold in less than half of the iterations.

    In a parallel loop, the guard must also stand in an inner loop. Otherwise the branch
    that replaces it would cost as much.
    """
    if loop.kind == PARALLEL and not guard.is_inside_loop:
        return False
    begin = as_int(loop.minimum)
    extent = as_int(loop.extent)
    if begin is None or extent is None:
        return True
    low = as_int(guard.range.low)
    high = as_int(guard.range.high)
    first = begin if low is None else max(begin, low)
    last = begin + extent if high is None else min(begin + extent, high)
    return 2 * (last - first) >= extent


def _is_only_under(body: Stmt, guards: Sequence[Guard]) -> bool:
    """Return True if `body` does nothing outside of the exact ranges of the guards."""
    if not isinstance(body, IfThenElse) or body.else_case is not None:
        return False
    around = {id(condition) for condition in conjuncts(body.condition)}
    for guard in guards:
        if not guard.range.is_exact or id(guard.condition) not in around:
            return False
    return True


def _is_empty(begin: Expr, end: Expr, facts: Facts) -> bool:
    return prove(LE(end, begin), facts)


def _without(body: Stmt, guards: Sequence[Guard]) -> Stmt:
    """Return `body` without the guards, which are known to hold."""
    known = {id(guard.condition) for guard in guards}

    def visit(recurse: Rewrite, node: Node) -> Node:
        if not isinstance(node, IfThenElse | IfThenElseExpr):
            return map_children(node, recurse)
        left = [part for part in conjuncts(node.condition) if id(part) not in known]
        if left:
            rebuilt = map_children(node, recurse)
            condition = reduce(And, left)
            return with_fields(rebuilt, condition=recurse(condition))
        chosen = node.then_case if isinstance(node, IfThenElse) else node.true_value
        return recurse(chosen)

    return rewriter(visit)(body)


def _holds_kernel(recurse: Callable[[Stmt], bool], node: Stmt) -> bool:
    is_bound = isinstance(node, For) and node.kind in THREAD_TAGS
    if is_bound or isinstance(node, LaunchKernel):
        return True
    return any(map(recurse, child_statements(node)))


def _weight(recurse: Callable[[Node], int], node: Node) -> int:
    """Return the number of nodes after unrolled loops are written out."""
    weight = 1 + sum(map(recurse, children(node)))
    if isinstance(node, For) and node.kind == UNROLLED:
        weight *= max(1, as_int(node.extent) or 1)
    return weight
