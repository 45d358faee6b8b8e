"""Divides loops by their guards, so that whole tiles are computed without.

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

A guard is a conjunct of a condition that is linear in the loop's variable (see `loop_guards`). Over
the main part of the loop, in which all guards surely hold, they are gone; before it and behind it
stand loops over the rest, which keep them. Where a guard is the whole body, and holds in the main
part and nowhere else, nothing is left to do in the rest, and the loop only becomes shorter. A
parallel loop is not divided, as its threads would wait for each other twice: a branch around
its body chooses. Vectorized loops get masks later, and unrolled ones decide in each copy.

Outer loops are divided first, then those within each part, so that the nest of a whole tile has no
guard at all. Code grows by this, and so: a statement stands at most `MAX_COPIES` times, a function
gains at most `MAX_NODES` nodes, unrolled loops written out, and a guard that surely holds in
less than half of a constant number of iterations is left where it is.

Requires: nothing before it. Ensures: order and number of all that is done; every copy binds names
of its own. Level: nested, kept. What is in a kernel, or around one, is left as it is: there,
threads of one group would run different loops. Refuses nothing.
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
from refcomp.passes.analysis.loop_guards import (
    Guard,
    conjuncts,
    guards_of,
    holds_choice,
)
from refcomp.passes.simplify_expressions import facts_of

MAX_COPIES = 16
MAX_NODES = 20_000


@dataclass(frozen=True, slots=True)
class _Cut:
    """The main part is [begin, end), without `guards`; what is done before and behind it."""

    begin: Expr
    end: Expr
    guards: Sequence[Guard]
    has_before: bool
    has_behind: bool

    @property
    def num_bodies(self) -> int:
        return 1 + self.has_before + self.has_behind


def partition_loops(func: PrimFunc) -> PrimFunc:
    """`func` with loops divided by their guards."""
    return func.with_body(_Partition().stmt(func.body, facts_of(func), MAX_COPIES))


class _Partition:
    """Divides loops, outer ones first; `copies` is how often a statement may still be copied."""

    def __init__(self) -> None:
        self._room = MAX_NODES
        self._weight = memoised(_weight)
        self._holds_choice = memoised(holds_choice)
        self._holds_kernel = memoised(_holds_kernel)

    def stmt(self, stmt: Stmt, facts: Facts, copies: int) -> Stmt:
        """`stmt` with its loops divided, where `facts` hold around it."""
        if not self._holds_choice(stmt):
            return stmt
        match stmt:
            case For():
                return self._for(stmt, facts, copies)
            case LetStmt():
                facts = facts.let(stmt.var, stmt.value)
            case IfThenElse():
                return self._if(stmt, facts, copies)
        return self._inside(stmt, facts, copies)

    def _inside(self, stmt: Stmt, facts: Facts, copies: int) -> Stmt:
        return map_children(
            stmt, lambda child: self.stmt(child, facts, copies), only=Stmt
        )

    def _if(self, stmt: IfThenElse, facts: Facts, copies: int) -> Stmt:
        def visit(child: Stmt) -> Stmt:
            holds = child is stmt.then_case
            known = facts.assume(stmt.condition if holds else Not(stmt.condition))
            return self.stmt(child, known, copies)

        return map_children(stmt, visit, only=Stmt)

    def _for(self, loop: For, facts: Facts, copies: int) -> Stmt:
        # An inner loop of a vectorized one keeps bounds that are the same for all lanes.
        if loop.kind in (*THREAD_TAGS, VECTORIZED):
            return loop
        cut = self._cut(loop, facts, copies)
        if cut is None:
            inner = facts.bind(loop.var, loop.minimum, loop.extent)
            return self._inside(loop, inner, copies)
        self._room -= (cut.num_bodies - 1) * self._weight(loop.body)
        divide = (
            self._branch
            if loop.kind == PARALLEL and cut.num_bodies > 1
            else self._divide
        )
        return divide(loop, cut, facts, copies // cut.num_bodies)

    # Where a loop is cut.

    def _cut(self, loop: For, facts: Facts, copies: int) -> _Cut | None:
        if loop.kind not in (SERIAL, PARALLEL) or copies < 2:
            return None
        if (
            buffers_in(loop.minimum)
            or buffers_in(loop.extent)
            or self._holds_kernel(loop.body)
        ):
            return None
        guards = guards_of(loop, facts, self._holds_choice)
        guards = [g for g in guards if _is_worth_it(g, loop)]
        if not guards:
            return None
        cut = _cut_by(loop, guards, facts)
        growth = (cut.num_bodies - 1) * self._weight(loop.body)
        if (
            cut.num_bodies > copies
            or growth > self._room
            or _is_empty(cut.begin, cut.end, facts)
        ):
            return None
        return cut

    # What is made of it.

    def _divide(self, loop: For, cut: _Cut, facts: Facts, copies: int) -> Stmt:
        stop = simplify(Add(loop.minimum, loop.extent), facts)
        parts = []
        if cut.has_before:
            parts.append(self._rest(loop, loop.minimum, cut.begin, facts, copies))
        main = _without(loop.body, cut.guards)
        parts.append(
            self._part(loop, loop.var, cut.begin, cut.end, main, facts, copies)
        )
        if cut.has_behind:
            parts.append(self._rest(loop, cut.end, stop, facts, copies))
        return block(parts, loop.origin)

    def _rest(
        self, loop: For, begin: Expr, end: Expr, facts: Facts, copies: int
    ) -> Stmt:
        var = Var(loop.var.name, loop.var.dtype)
        body = with_fresh_names(loop.body, {loop.var: var})
        return self._part(loop, var, begin, end, body, facts, copies)

    def _part(
        self,
        loop: For,
        var: Var,
        begin: Expr,
        end: Expr,
        body: Stmt,
        facts: Facts,
        copies: int,
    ) -> Stmt:
        extent = simplify(Sub(end, begin), facts)
        body = self.stmt(body, facts.bind(var, begin, extent), copies)
        return with_fields(loop, var=var, minimum=begin, extent=extent, body=body)

    def _branch(self, loop: For, cut: _Cut, facts: Facts, copies: int) -> Stmt:
        known = facts.bind(loop.var, loop.minimum, loop.extent)
        tests: list[Expr] = [GE(loop.var, cut.begin)] * cut.has_before
        tests += [LT(loop.var, cut.end)] * cut.has_behind
        is_main = reduce(And, tests)
        main = self.stmt(_without(loop.body, cut.guards), known.assume(is_main), copies)
        stop = Add(loop.minimum, loop.extent)
        is_single = not cut.has_before and prove(
            LE(Sub(stop, cut.end), IntImm(1, stop.dtype)), facts
        )
        rest = with_fresh_names(loop.body, {loop.var: cut.end} if is_single else {})
        rest = self.stmt(rest, known.assume(Not(is_main)), copies)
        return with_fields(loop, body=IfThenElse(is_main, main, rest, loop.origin))


def _cut_by(loop: For, guards: Sequence[Guard], facts: Facts) -> _Cut:
    """The largest part of the loop in which all guards hold, between the loop's ends."""
    stop: Expr = Add(loop.minimum, loop.extent)
    lows = [g for g in guards if g.range.low is not None]
    highs = [g for g in guards if g.range.high is not None]
    bounds = [Min(stop, g.range.low) for g in lows if g.range.low is not None]
    begin = simplify(reduce(Max, bounds, loop.minimum), facts)
    if highs:
        end = reduce(
            Min, [g.range.high for g in highs if g.range.high is not None], stop
        )
        stop, end = simplify(stop, facts), simplify(Max(begin, end), facts)
    else:
        stop = end = simplify(stop, facts)
    has_before = bool(lows) and not _is_only_under(loop.body, lows)
    has_behind = bool(highs) and not _is_only_under(loop.body, highs)
    return _Cut(
        begin,
        end,
        guards,
        has_before and not _is_empty(loop.minimum, begin, facts),
        has_behind and not _is_empty(end, stop, facts),
    )


def _is_worth_it(guard: Guard, loop: For) -> bool:
    """Whether the guard holds in half of the iterations at least, as far as can be told.

    In a parallel loop it must stand in an inner loop: the branch that replaces it stands outside.
    """
    if loop.kind == PARALLEL and not guard.is_inside_loop:
        return False
    begin, extent = as_int(loop.minimum), as_int(loop.extent)
    if begin is None or extent is None:
        return True
    low, high = as_int(guard.range.low), as_int(guard.range.high)
    first = begin if low is None else max(begin, low)
    last = begin + extent if high is None else min(begin + extent, high)
    return 2 * (last - first) >= extent


def _is_only_under(body: Stmt, guards: Sequence[Guard]) -> bool:
    """Whether nothing is done where one of the guards does not hold, which they do exactly."""
    if not isinstance(body, IfThenElse) or body.else_case is not None:
        return False
    around = {id(condition) for condition in conjuncts(body.condition)}
    return all(
        guard.range.is_exact and id(guard.condition) in around for guard in guards
    )


def _is_empty(begin: Expr, end: Expr, facts: Facts) -> bool:
    return prove(LE(end, begin), facts)


def _without(body: Stmt, guards: Sequence[Guard]) -> Stmt:
    """`body` where the guards are known to hold."""
    known = {id(guard.condition) for guard in guards}

    def visit(recurse: Rewrite, node: Node) -> Node:
        if not isinstance(node, IfThenElse | IfThenElseExpr):
            return map_children(node, recurse)
        left = [part for part in conjuncts(node.condition) if id(part) not in known]
        if not left:
            return recurse(
                node.then_case if isinstance(node, IfThenElse) else node.true_value
            )
        return with_fields(
            map_children(node, recurse), condition=recurse(reduce(And, left))
        )

    return rewriter(visit)(body)


def _holds_kernel(recurse: Callable[[Stmt], bool], node: Stmt) -> bool:
    if isinstance(node, LaunchKernel) or (
        isinstance(node, For) and node.kind in THREAD_TAGS
    ):
        return True
    return any(recurse(child) for child in children(node) if isinstance(child, Stmt))


def _weight(recurse: Callable[[Node], int], node: Node) -> int:
    """The number of nodes when unrolled loops are written out."""
    weight = 1 + sum(recurse(child) for child in children(node))
    if (
        isinstance(node, For)
        and node.kind == UNROLLED
        and isinstance(node.extent, IntImm)
    ):
        weight *= max(1, node.extent.value)
    return weight
