"""The conditions in a loop that surely hold in one range of its iterations.

For `partition_loops`. A guard is one conjunct of the condition of a branch, or of a lazy choice
inside an expression, together with the range of the loop's variable in which it holds whatever the
loops inside do. Conditions that read memory are no guards, and neither are those of which
`refcomp.arith.solve` knows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from refcomp.arith import Facts, prove, simplify
from refcomp.arith.solve import HalfOpenRange, solve
from refcomp.ir.expr import GE, LT, And, Expr, IfThenElseExpr, Let, Not, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, memoised
from refcomp.ir.stmt import For, IfThenElse, LetStmt
from refcomp.ir.structure import structurally_equal

_MOST_PLACES = 256  # of one loop; a loop with more choices than that has no guards


@dataclass(frozen=True, slots=True)
class Guard:
    """`condition` holds where the loop's variable lies in `range`, whose ends stand outside the
    loop. `is_inside_loop`: it stands in a loop of the body."""

    condition: Expr
    range: HalfOpenRange
    is_inside_loop: bool


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The conditions that `condition` is the conjunction of, in order."""
    if isinstance(condition, And) and condition.dtype.lanes == 1:
        yield from conjuncts(condition.a)
        yield from conjuncts(condition.b)
    else:
        yield condition


def guards_of(
    loop: For, facts: Facts, has_choice: Callable[[Node], bool] | None = None
) -> list[Guard]:
    """The guards in the loop's body, where `facts` hold around the loop.

    `has_choice` is `holds_choice`, memoised, where many loops of one function are asked for.
    """
    search = _Search(loop.var, facts, has_choice or memoised(holds_choice))
    search.visit(loop.body, facts.bind(loop.var, loop.minimum, loop.extent), (), False)
    return [] if search.places > _MOST_PLACES else search.guards()


class _Search:
    """Visits a body, with what is known and the inner variables (innermost first) at each place."""

    def __init__(
        self, var: Var, outside: Facts, has_choice: Callable[[Node], bool]
    ) -> None:
        self.places = 0
        self._var, self._outside = var, outside
        # A condition may stand at several places; it is a guard when it is the same one at all.
        self._found: dict[int, Guard | None] = {}
        self._seen: set[tuple[int, int]] = set()
        self._facts: list[Facts] = []  # kept, so that no id is given to another
        self._has_choice = has_choice

    def guards(self) -> list[Guard]:
        """What was found."""
        return [guard for guard in self._found.values() if guard is not None]

    def visit(
        self, node: Any, facts: Facts, hidden: tuple[Var, ...], is_inside: bool
    ) -> None:
        """Notes the guards in `node`."""
        if (id(node), id(facts)) in self._seen:
            return
        self._seen.add((id(node), id(facts)))
        self._facts.append(facts)
        for child in filter(self._has_choice, children(node)):
            inner = (
                facts if self.places > _MOST_PLACES else _facts_of(node, child, facts)
            )
            names = (node.var, *hidden) if _is_bound_in(node, child) else hidden
            self.visit(child, inner, names, is_inside or isinstance(node, For))
        if isinstance(node, IfThenElse | IfThenElseExpr):
            for condition in conjuncts(node.condition):
                self._note(condition, facts, hidden, is_inside)

    def _note(
        self, condition: Expr, facts: Facts, hidden: tuple[Var, ...], is_inside: bool
    ) -> None:
        self.places += 1
        if self.places > _MOST_PLACES:
            return
        guard = self._guard(condition, facts, hidden, is_inside)
        known = self._found.setdefault(id(condition), guard)
        if known is not None and (
            guard is None or not _is_same(known.range, guard.range)
        ):
            self._found[id(condition)] = None

    def _guard(
        self, condition: Expr, facts: Facts, hidden: tuple[Var, ...], is_inside: bool
    ) -> Guard | None:
        found = solve(condition, self._var, hidden, facts)
        if found is None:
            return None
        low = None if found.low is None else simplify(found.low, self._outside)
        high = None if found.high is None else simplify(found.high, self._outside)
        # Where another condition around has cut the range off already, there is nothing to gain.
        if high is not None and prove(GE(self._var, high), facts):
            return None
        if low is not None and prove(LT(self._var, low), facts):
            return None
        return Guard(condition, HalfOpenRange(low, high, found.is_exact), is_inside)


def holds_choice(recurse: Callable[[Node], bool], node: Node) -> bool:
    """Whether a branch or a lazy choice is in `node`; to be memoised."""
    if isinstance(node, IfThenElse | IfThenElseExpr):
        return True
    return any(recurse(child) for child in children(node))


def _is_bound_in(node: Node, child: Node) -> bool:
    return isinstance(node, For | Let | LetStmt) and child is node.body


def _facts_of(node: Node, child: Node, facts: Facts) -> Facts:
    """What is known in `child` of `node`."""
    if isinstance(node, For) and child is node.body:
        return facts.bind(node.var, node.minimum, node.extent)
    if isinstance(node, Let | LetStmt) and child is node.body:
        return facts.let(node.var, node.value)
    if isinstance(node, IfThenElse | IfThenElseExpr) and child is not node.condition:
        first = node.then_case if isinstance(node, IfThenElse) else node.true_value
        return facts.assume(node.condition if child is first else Not(node.condition))
    return facts


def _is_same(a: HalfOpenRange, b: HalfOpenRange) -> bool:
    ends = ((a.low, b.low), (a.high, b.high))
    return a.is_exact == b.is_exact and all(
        x is y or (x is not None and y is not None and structurally_equal(x, y))
        for x, y in ends
    )
