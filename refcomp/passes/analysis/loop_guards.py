"""Finds the conditions in a loop that hold in one range of its iterations.

For `partition_loops`. A guard is one conjunct of the condition of a branch, or of a lazy
choice inside an expression. With it comes a range of the loop's variable: inside this
range the condition holds, whatever the loops inside do. A condition is not a guard if it
reads memory, or if `arith.solve` cannot solve it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from refcomp.arith import Facts, prove, simplify
from refcomp.arith.solve import HalfOpenRange, solve
from refcomp.ir.expr import GE, LT, And, Expr, IfThenElseExpr, Let, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, memoised
from refcomp.ir.stmt import For, IfThenElse, LetStmt
from refcomp.ir.structure import structurally_equal
from refcomp.passes.analysis.scope_facts import facts_in

_MAX_PLACES = 256  # conditions in one loop; a loop with more of them has no guards


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that holds if the loop's variable lies in a range."""

    condition: Expr
    # The ends are expressions that can be evaluated outside of the loop.
    range: HalfOpenRange
    # The condition stands in a loop of the body.
    is_inside_loop: bool


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """Yield the conditions whose conjunction is `condition`, in order."""
    if isinstance(condition, And) and condition.dtype.lanes == 1:
        yield from conjuncts(condition.a)
        yield from conjuncts(condition.b)
    else:
        yield condition


def guards_of(
    loop: For, facts: Facts, has_choice: Callable[[Node], bool] | None = None
) -> list[Guard]:
    """Return the guards in the body of a loop.

    Args:
        loop: the loop.
        facts: what is known around it.
        has_choice: `holds_choice`, memoised, for callers that examine many loops.
    """
    search = _Search(loop.var, facts, has_choice or memoised(holds_choice))
    inside = facts.bind(loop.var, loop.minimum, loop.extent)
    search.visit(loop.body, inside, hidden=(), is_inside=False)
    if search.places > _MAX_PLACES:
        return []
    return [guard for guard in search.found.values() if guard is not None]


class _Search:
    """A walk through the body of a loop.

    Attributes:
        places: the number of conditions so far.
        found: the guards by the ids of their conditions. None for a condition that is a
            guard at some of its places only, or with different ranges.
    """

    def __init__(
        self, var: Var, outside: Facts, has_choice: Callable[[Node], bool]
    ) -> None:
        self.places = 0
        self.found: dict[int, Guard | None] = {}
        self._var = var
        self._outside = outside
        self._has_choice = has_choice
        self._seen: set[tuple[int, int]] = set()
        self._facts: list[Facts] = []  # kept alive, so that no id is used again

    def visit(
        self, node: Node, facts: Facts, hidden: tuple[Var, ...], is_inside: bool
    ) -> None:
        """Record the guards in `node`.

        Args:
            node: a statement or an expression.
            facts: what is known there.
            hidden: the variables bound inside of the loop, innermost first.
            is_inside: True in a loop of the body.
        """
        if (id(node), id(facts)) in self._seen:
            return
        self._seen.add((id(node), id(facts)))
        self._facts.append(facts)
        for child in filter(self._has_choice, children(node)):
            inner = facts
            if self.places <= _MAX_PLACES:  # else the guards are not used
                inner = facts_in(node, child, facts)
            names = hidden
            if isinstance(node, For | Let | LetStmt) and child is node.body:
                names = (node.var, *hidden)
            self.visit(child, inner, names, is_inside or isinstance(node, For))
        if isinstance(node, IfThenElse | IfThenElseExpr):
            for condition in conjuncts(node.condition):
                self._record(condition, facts, hidden, is_inside)

    def _record(
        self, condition: Expr, facts: Facts, hidden: tuple[Var, ...], is_inside: bool
    ) -> None:
        self.places += 1
        if self.places > _MAX_PLACES:
            return
        guard = self._guard(condition, facts, hidden, is_inside)
        known = self.found.setdefault(id(condition), guard)
        if known is None:
            return
        # One tree may stand at several places. It is one condition for the rewrite, which
        # finds it by its id.
        if guard is None or not _is_same(known.range, guard.range):
            self.found[id(condition)] = None

    def _guard(
        self, condition: Expr, facts: Facts, hidden: tuple[Var, ...], is_inside: bool
    ) -> Guard | None:
        found = solve(condition, self._var, hidden, facts)
        if found is None:
            return None
        low = found.low
        high = found.high
        # A condition further outside may cut off the range already. Then nothing is left
        # to gain.
        if high is not None:
            high = simplify(high, self._outside)
            if prove(GE(self._var, high), facts):
                return None
        if low is not None:
            low = simplify(low, self._outside)
            if prove(LT(self._var, low), facts):
                return None
        ends = HalfOpenRange(low, high, found.is_exact)
        return Guard(condition, ends, is_inside)


def holds_choice(recurse: Callable[[Node], bool], node: Node) -> bool:
    """Return True if a branch or a lazy choice is in `node`; to be memoised."""
    if isinstance(node, IfThenElse | IfThenElseExpr):
        return True
    return any(map(recurse, children(node)))


def _is_same(a: HalfOpenRange, b: HalfOpenRange) -> bool:
    if a.is_exact != b.is_exact:
        return False
    for end, other in ((a.low, b.low), (a.high, b.high)):
        if end is other:
            continue
        if end is None or other is None or not structurally_equal(end, other):
            return False
    return True
