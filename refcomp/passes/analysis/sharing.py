"""Finds which subexpressions of a function are evaluated more than once, and where one would do.

Every expression gets a number by its structure, the same for equal ones. A *place* is where
expressions are evaluated: a statement, or a part of an expression that may not be evaluated (a
branch of if_then_else) or sees a name of its own (the body of a let). Integer arithmetic that
reads no memory is *pure*, and equal wherever it stands; anything else has a number of its own for
each statement, since memory may change between two. `Sharing.decide` gives each place its lets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from refcomp.ir import expr as ir
from refcomp.ir.buffer import AddressOf, Load
from refcomp.ir.expr import Expr, Var
from refcomp.ir.node import Node, child_fields, data_fields

MAX_LETS = (
    100  # of pure arithmetic in one place: a chain of lets is as deep as it is long
)


class LetScope:
    """Where expressions are evaluated. `lets` are the numbers to bind there, with their names.

    A barrier is the part of an expression that `part` names, by number and field.
    """

    __slots__ = ("barriers", "depth", "lets", "memo", "parent", "part")

    def __init__(
        self, parent: LetScope | None, part: tuple[int, str] | None = None
    ) -> None:
        self.parent, self.part = parent, part
        self.depth: int = parent.depth + 1 if parent else 0
        self.lets: list[tuple[int, Var]] = []
        self.barriers: dict[tuple[int, str], LetScope] = {}
        # Numbers of the impure expressions of this statement.
        self.memo: dict[int, int] = parent.memo if parent and part else {}

    def barrier(self, number: int, field: str) -> LetScope:
        """The place of the part `field` of expression `number`, evaluated here."""
        key = number, field
        if key not in self.barriers:
            self.barriers[key] = LetScope(self, key)
        return self.barriers[key]


def barrier_fields(expr: Expr) -> tuple[str, ...]:
    """The parts of `expr` that are places of their own."""
    if isinstance(expr, ir.IfThenElseExpr):
        return ("true_value", "false_value")
    return ("body",) if isinstance(expr, ir.Let) else ()


class Sharing:
    """Numbers, uses and decisions. `rebound` are variables that several statements bind."""

    def __init__(self, rebound: Iterable[Var]) -> None:
        self._impure_vars = set(rebound)
        self._numbers: dict[Any, int] = {}
        self._exprs: list[Expr] = []
        self._children: list[tuple[tuple[int, str], ...]] = []
        self._is_pure: list[bool] = []
        self._uses: list[list[LetScope]] = []
        self._pure_memo: dict[int, int] = {}

    def use(self, expr: Expr, place: LetScope) -> None:
        """Notes that `place`, a statement, evaluates `expr`."""
        self._uses[self.number(expr, place)].append(place)

    def number(self, expr: Expr, place: LetScope) -> int:
        """The number of `expr` where it is evaluated in `place`."""
        known = self._pure_memo.get(id(expr))
        if known is None:
            known = place.memo.get(id(expr))
        return self._assign_number(expr, place) if known is None else known

    def expr(self, number: int) -> Expr:
        """An expression of that number."""
        return self._exprs[number]

    def decide(self) -> bool:
        """Gives the places their lets; whether there are any."""
        found = False
        # Parents have greater numbers: where they are evaluated says where their children are.
        for number in range(len(self._exprs) - 1, -1, -1):
            before = self._uses[number]
            places = self._bind(number, before) if self._may_bind(number) else before
            found |= len(places) < len(before)
            for place in places:
                for child, field in self._children[number]:
                    where = place.barrier(number, field) if field else place
                    self._uses[child].append(where)
            self._uses[number] = []
        return found

    # Numbers.

    def _assign_number(self, expr: Expr, place: LetScope) -> int:
        if isinstance(expr, ir.Let):
            self._impure_vars.add(expr.var)
        numbers = [(self.number(part, place), field) for part, field in _parts(expr)]
        pure = self._has_pure_node(expr) and all(
            self._is_pure[child] for child, _ in numbers
        )
        key = (type(expr), *_data_of(expr), *numbers, None if pure else id(place.memo))
        if key not in self._numbers:
            self._numbers[key] = len(self._exprs)
            self._exprs.append(expr)
            self._children.append(tuple(numbers))
            self._is_pure.append(pure)
            self._uses.append([])
        memo = self._pure_memo if pure else place.memo
        memo[id(expr)] = self._numbers[key]
        return self._numbers[key]

    def _has_pure_node(self, expr: Expr) -> bool:
        if isinstance(expr, Var):
            return expr not in self._impure_vars
        if isinstance(
            expr, Load | ir.Call | ir.PureExtern | ir.Let | ir.IfThenElseExpr
        ):
            return False
        return not expr.dtype.is_float

    # Decisions.

    def _may_bind(self, number: int) -> bool:
        expr = self._exprs[number]
        if isinstance(expr, Var | ir.IntImm | ir.FloatImm | ir.Ramp | AddressOf):
            return (
                False  # a ramp must stay visible in its access, an address in its call
            )
        if isinstance(expr, ir.Broadcast) and isinstance(
            expr.value, ir.IntImm | ir.FloatImm
        ):
            return False
        is_index = expr.dtype.is_int and expr.dtype.lanes > 1
        return not (is_index and self._is_pure[number])

    def _bind(self, number: int, uses: list[LetScope]) -> list[LetScope]:
        """Where `number` is evaluated at last; several uses in one tree of places become one."""
        trees: dict[int, list[LetScope]] = {}
        for place in uses:
            trees.setdefault(id(_root(place)), []).append(place)
        return [
            place
            for tree in trees.values()
            for place in self._bind_in_tree(number, tree)
        ]

    def _bind_in_tree(self, number: int, uses: list[LetScope]) -> list[LetScope]:
        if len(uses) < 2:
            return uses
        meeting = _meeting_place(uses)
        if _is_certain(meeting, uses):
            if self._is_pure[number] and len(meeting.lets) >= MAX_LETS:
                return uses
            meeting.lets.append((number, Var("t", self._exprs[number].dtype)))
            return [meeting]
        groups: dict[int, list[LetScope]] = {}
        for place in uses:
            groups.setdefault(id(_below(meeting, place)), []).append(place)
        return [
            place
            for group in groups.values()
            for place in self._bind_in_tree(number, group)
        ]


def _parts(expr: Expr) -> list[tuple[Expr, str]]:
    """The child expressions, each with its field where that is a place of its own, else ''."""
    if isinstance(expr, ir.BinaryExpr):
        return [(expr.a, ""), (expr.b, "")]
    inside, parts = barrier_fields(expr), list[tuple[Expr, str]]()
    for name in child_fields(type(expr)):
        value = getattr(expr, name)
        several = value if isinstance(value, tuple) else (value,)
        field = name if name in inside else ""
        parts.extend((part, field) for part in several if part is not None)
    return parts


def _data_of(expr: Expr) -> list[Any]:
    if isinstance(expr, ir.FloatImm):
        return [expr.value.hex(), expr.dtype]  # 0.0 is not -0.0
    if isinstance(expr, Var):
        return [id(expr)]
    if isinstance(expr, ir.BinaryExpr):
        return []
    values = (getattr(expr, name) for name in data_fields(type(expr)))
    return [id(value) if isinstance(value, Node) else value for value in values]


def _root(place: LetScope) -> LetScope:
    while place.parent is not None:
        place = place.parent
    return place


def _meeting_place(places: list[LetScope]) -> LetScope:
    """The innermost place that all of `places` lie in."""
    first = places[0]
    for place in places[1:]:
        while first is not place:
            deeper_is_first = first.depth >= place.depth
            parent = first.parent if deeper_is_first else place.parent
            assert parent is not None, "places of one tree meet at its root"
            first, place = (parent, place) if deeper_is_first else (first, parent)
    return first


def _is_certain(outer: LetScope, uses: list[LetScope]) -> bool:
    """Whether each run through `outer` reaches a use; a barrier is reached for certain only where
    the other branch is a barrier that reaches one too."""
    behind: dict[tuple[int, int], dict[str, tuple[LetScope, list[LetScope]]]] = {}
    for place in uses:
        barrier = _first_barrier(outer, place)
        if barrier is None:
            return True
        assert barrier.part is not None
        number, field = barrier.part
        branches = behind.setdefault((id(barrier.parent), number), {})
        branches.setdefault(field, (barrier, []))[1].append(place)
    return any(
        branches.keys() == {"true_value", "false_value"}
        and all(_is_certain(barrier, inner) for barrier, inner in branches.values())
        for branches in behind.values()
    )


def _first_barrier(outer: LetScope, inner: LetScope) -> LetScope | None:
    """The outermost barrier inside `outer` around `inner`."""
    found = None
    while inner is not outer:
        found = inner if inner.part else found
        assert inner.parent is not None
        inner = inner.parent
    return found


def _below(outer: LetScope, inner: LetScope) -> LetScope:
    """The place directly inside `outer` on the way to `inner`, which lies deeper."""
    while inner.parent is not outer:
        assert inner.parent is not None
        inner = inner.parent
    return inner


def count_bindings(vars_bound: Iterable[Var]) -> list[Var]:
    """The variables that occur more than once."""
    return [var for var, count in Counter(vars_bound).items() if count > 1]
